"""Import this module before anything from ``openrlhf``.

On import it makes OpenRLHF importable in this process, with or without flash-attn. Training actors also call
``prepare_training_process``.
"""

from . import flash_attn_standin
from .kind import is_cpu

flash_attn_standin.install()


def prepare_training_process() -> None:
    """Give OpenRLHF's training code a device in this process; does nothing where CUDA is used."""
    if is_cpu():
        from . import cuda_standin

        cuda_standin.install()
