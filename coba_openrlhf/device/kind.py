"""Which device a run uses: decided in the driver, inherited by every actor."""

import os

DEVICE_VARIABLE = "COBA_DEVICE"


def device_kind() -> str:
    """``"cuda"`` or ``"cpu"``.

    An actor without GPUs on a GPU cluster (the trainer, the allocator) sees no CUDA device although the run
    is a GPU run, so the driver's decision in ``COBA_DEVICE`` comes first.

    Raises:
        ValueError: ``COBA_DEVICE`` holds something else.
    """
    chosen = os.environ.get(DEVICE_VARIABLE)
    if chosen in ("cpu", "cuda"):
        return chosen
    if chosen:
        raise ValueError(f"{DEVICE_VARIABLE} must be cpu or cuda, got {chosen!r}")
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def is_cpu() -> bool:
    """Whether this run has no CUDA."""
    return device_kind() == "cpu"


def cpu_environment() -> dict[str, str]:
    """Environment variables of every process of a CPU run.

    One OpenMP thread per process: a laptop's cores are shared by engines and ranks. vLLM keeps its worker
    inside the engine actor, its key-value cache at 1 GiB, and leaves threads unbound.
    """
    return {
        DEVICE_VARIABLE: "cpu",
        "DS_ACCELERATOR": "cpu",
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
        "VLLM_CPU_KVCACHE_SPACE": os.environ.get("VLLM_CPU_KVCACHE_SPACE", "1"),
        "VLLM_CPU_OMP_THREADS_BIND": os.environ.get("VLLM_CPU_OMP_THREADS_BIND", "nobind"),
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    }
