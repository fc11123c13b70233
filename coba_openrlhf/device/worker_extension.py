"""vLLM worker side of the weight sync on a CPU."""

import coba_openrlhf.device.ready  # noqa: F401  isort: skip
import torch
from openrlhf.trainer.ray.vllm_worker_wrap import WorkerWrap
from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead

from .gloo_broadcast import GlooBroadcast


class CpuWorkerWrap(WorkerWrap):
    """Receives the policy's parameters and reloads the engine once they are complete.

    vLLM repacks weights for its CPU kernels, so a single parameter cannot be written into the running model.
    Parameters are collected until the last one (upstream marks it with ``empty_cache=True``) and then go
    through vLLM's own reload, which unpacks, loads and packs again.
    """

    def init_process_group(
        self, master_address, master_port, rank_offset, world_size, group_name, backend="nccl", use_ray=False
    ):
        """Join the sync group; ``backend`` and ``use_ray`` are upstream's arguments and mean nothing here."""
        rank = torch.distributed.get_rank() + rank_offset
        self._model_update_group = GlooBroadcast(master_address, master_port, rank, world_size)
        self._received_weights: list[tuple[str, torch.Tensor]] = []

    def update_weight(self, name, dtype, shape, empty_cache=False):
        """Receive one parameter; on the last one reload the model."""
        if dtype != self.model_config.dtype:
            raise TypeError(f"weight {name} has {dtype}, the engine runs in {self.model_config.dtype}")
        weight = torch.empty(shape, dtype=dtype)
        self._model_update_group.broadcast(weight, src=0)
        self._received_weights.append((name, weight))
        if empty_cache:
            received, self._received_weights = self._received_weights, []
            self.model_runner.reload_weights(weights_iterator=iter(received))
            self._repack_heads()

    def _repack_heads(self):
        """Make output heads follow their weights.

        A head that is tied to the embeddings has no weights of its own to load, so vLLM's reload leaves its packed
        copy as it was: the engine would go on with the head of the model it started from.
        """
        for module in self.model_runner.get_model().modules():
            if isinstance(module, ParallelLMHead):
                module.quant_method.process_weights_after_loading(module)
