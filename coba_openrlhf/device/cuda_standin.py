"""The five ``torch.cuda`` calls that OpenRLHF's training actors make unconditionally.

OpenRLHF places tensors on ``torch.cuda.current_device()`` and synchronises around phases. Without CUDA those
calls raise; here they mean "the CPU" and "nothing to wait for".
"""

import torch


class _CpuDevice(str):
    """``"cpu"`` wherever a device is expected.

    ``replay_buffer.py`` builds its target as ``f"cuda:{current_device()}"``, which must stay a device string
    that parses, so formatting gives ``"0"``.
    """

    def __format__(self, spec: str) -> str:
        return "0"


def install() -> None:
    """Replace the five functions in this process.

    Raises:
        RuntimeError: CUDA is available; the real functions must then stay.
    """
    if torch.cuda.is_available():
        raise RuntimeError("the CPU stand-ins must not be installed where CUDA is available")
    torch.cuda.current_device = lambda: _CpuDevice("cpu")  # type: ignore[assignment,return-value]
    torch.cuda.set_device = lambda device: None
    torch.cuda.synchronize = lambda device=None: None
    torch.cuda.empty_cache = lambda: None
    torch.cuda.current_stream = lambda device=None: None  # type: ignore[assignment,return-value]
