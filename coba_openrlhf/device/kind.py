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


def cpu_environment(num_busy: int) -> dict[str, str]:
    """Environment variables of every process of a CPU run.

    Generation and training take turns, so the cores are divided among the processes that are busy together.
    vLLM's key-value cache stays at 1 GiB and its threads unbound.

    Args:
        num_busy: The larger of the number of policy ranks and of engines.
    """
    threads = max(1, (os.cpu_count() or 1) // num_busy)
    return {
        DEVICE_VARIABLE: "cpu",
        "DS_ACCELERATOR": "cpu",
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(threads)),
        "VLLM_CPU_KVCACHE_SPACE": os.environ.get("VLLM_CPU_KVCACHE_SPACE", "1"),
        "VLLM_CPU_OMP_THREADS_BIND": os.environ.get("VLLM_CPU_OMP_THREADS_BIND", "nobind"),
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    }
