"""DeepSpeed policy and reference ranks: OpenRLHF's, with what ragged steps and CPU runs need."""

import socket

import ray

from coba_openrlhf.device import is_cpu
from coba_openrlhf.device.ready import prepare_training_process

from .upstream import PolicyModelActor, ReferenceModelActor, class_replaced, ppo_actor


class PolicyTrainer(ppo_actor.ActorPPOTrainer):
    """One rank's PPO updates.

    Steps may contain zero-weight padding (see ``trainer/padding.py``), so a micro-batch can have no action
    token at all: its loss and gradient are exactly 0, but upstream's per-token means divide by 0.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, dataloader_pin_memory=not is_cpu(), **kwargs)

    def training_step(self, experience, kl_ctl, step, loss_batch_info=None):
        """Upstream's step; the metrics of a micro-batch without action tokens read 0 instead of NaN."""
        status = super().training_step(experience, kl_ctl, step, loss_batch_info)
        if status["num_action_tokens"] == 0:
            for name, value in status["metrics"].items():
                if status["weights"][name] == "token":
                    status["metrics"][name] = value.nan_to_num(0.0)
        return status

    def _init_vllm_sync_group(self, backend):
        if not is_cpu():
            super()._init_vllm_sync_group(backend)
            return
        from coba_openrlhf.device.gloo_broadcast import GlooBroadcast

        address = ray.util.get_node_ip_address()
        with socket.socket() as probe:
            probe.bind(("", 0))
            port = probe.getsockname()[1]
        world_size = len(self.vllm_engines) + 1
        joined = [
            engine.init_process_group.remote(address, port, i + 1, world_size, "coba", "gloo", False)
            for i, engine in enumerate(self.vllm_engines)
        ]
        self._model_update_group = GlooBroadcast(address, port, 0, world_size)
        ray.get(joined)


class PolicyActor(PolicyModelActor):
    """A ZeRO rank of the policy."""

    def __init__(self, *args, **kwargs):
        prepare_training_process()
        super().__init__(*args, **kwargs)

    def init_model_from_pretrained(self, strategy, pretrain, max_steps=None, vllm_engines=None):
        """Load, shard and, on a CPU, verify the model; join the weight-sync group.

        Raises:
            RuntimeError: The sharded parameters are not those of ``pretrain`` (CPU runs only).
        """
        with class_replaced(ppo_actor, "ActorPPOTrainer", PolicyTrainer):
            super().init_model_from_pretrained(strategy, pretrain, max_steps, vllm_engines)
        resumed = bool(self.checkpoint_states)
        if not resumed and strategy.args.ds.lora.rank == 0:
            _verify_parameters(self.actor, strategy, pretrain)


class ReferenceActor(ReferenceModelActor):
    """A ZeRO rank of the frozen reference policy."""

    def __init__(self, *args, **kwargs):
        prepare_training_process()
        super().__init__(*args, **kwargs)

    def init_model_from_pretrained(self, strategy, pretrain):
        """Load, shard and, on a CPU, verify the model; raises as ``PolicyActor`` does."""
        super().init_model_from_pretrained(strategy, pretrain)
        _verify_parameters(self.model, strategy, pretrain)


def _verify_parameters(model, strategy, pretrain):
    """Guard against ZeRO-3's fault over gloo; does nothing where CUDA is used."""
    if is_cpu():
        from coba_openrlhf.device.parameter_guard import compare_with_checkpoint

        compare_with_checkpoint(model.model.module, pretrain, strategy.stage)
