"""Are the parameters that ZeRO-3 gathers the ones in the checkpoint?

The gloo fault that ``deepspeed_strategy.py`` avoids is silent: a run with garbage weights trains on. So a CPU
run compares what the sharded model gathers with the files it was loaded from, before the first step.
"""

import deepspeed
import torch
import torch.distributed as dist
from transformers import AutoModelForCausalLM

# Gathers of every parameter: the fault is a race, one clean pass proves little.
NUM_PASSES = 3


def compare_with_checkpoint(model: torch.nn.Module, pretrain: str, zero_stage: int) -> int:
    """Compare every parameter with the Hugging Face checkpoint, on every rank.

    Args:
        model: The module inside the DeepSpeed engine.
        pretrain: Folder or id the module was loaded from.
        zero_stage: ZeRO stage; parameters are gathered at stage 3.

    Returns:
        Number of parameters compared.

    Raises:
        RuntimeError: A gathered parameter differs; the message names the first and how many.
    """
    dtype = next(model.parameters()).dtype
    expected = dict(
        AutoModelForCausalLM.from_pretrained(pretrain, dtype=dtype, trust_remote_code=True).named_parameters()
    )
    differing: list[str] = []
    compared = 0
    params = [(name, param) for name, param in model.named_parameters() if name in expected]
    for _ in range(NUM_PASSES):
        with deepspeed.zero.GatheredParameters([param for _, param in params], enabled=zero_stage == 3):
            for name, param in params:
                compared += 1
                if not torch.equal(param.data, expected[name].data):
                    differing.append(name)
    rank = dist.get_rank() if dist.is_initialized() else 0
    if not params:
        raise RuntimeError(f"rank {rank}: no parameter name of the model occurs in {pretrain}")
    if differing:
        raise RuntimeError(
            f"rank {rank}: {len(differing)} of {compared} gathered parameters differ from {pretrain} "
            f"(first: {differing[0]}); the sharded weights are corrupt, training would be meaningless"
        )
    return compared
