"""DeepSpeed settings that a CPU run needs."""

import coba_openrlhf.device.ready  # noqa: F401  isort: skip
from openrlhf.utils.deepspeed import DeepspeedStrategy


class CpuDeepspeedStrategy(DeepspeedStrategy):
    """OpenRLHF's strategy, safe over gloo.

    DeepSpeed's ZeRO-3 starts a batch of asynchronous all-gathers and waits for the last one only. NCCL
    finishes them in order, gloo does not: some parameters are then read before they have arrived, and the
    run continues with garbage weights and no error. ``stage3_allgather_sequential`` waits for each.
    """

    def get_ds_train_config(self, optim_dict=None, *, max_norm=None):
        """Training configuration with sequential gathers and an optimiser that needs no compiler."""
        config = super().get_ds_train_config(optim_dict, max_norm=max_norm)
        self._make_safe(config)
        if optim_dict is not None and optim_dict["type"] == "AdamW":
            # FusedAdam would be compiled with g++ at start; torch's own AdamW is there already.
            config["optimizer"]["params"]["torch_adam"] = True
        return config

    def get_ds_eval_config(self, offload=False):
        """Evaluation configuration with sequential gathers."""
        config = super().get_ds_eval_config(offload=offload)
        self._make_safe(config)
        return config

    @staticmethod
    def _make_safe(config):
        zero = config["zero_optimization"]
        zero["stage3_allgather_sequential"] = True
        # Small models really shard: DeepSpeed's default would keep them whole on every rank.
        zero["stage3_param_persistence_threshold"] = 0
