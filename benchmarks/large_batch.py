"""Time and memory of one large allocation in a process of its own: ``python -m benchmarks.large_batch PROMPTS``."""

# Legend: P = prompts.

import json
import sys
from pathlib import Path
from time import thread_time

import numpy as np

from coba_openrlhf import allocate_greedy


def memory_bytes(name: str) -> int:
    """A line of Linux's account of this process: ``VmRSS``, in RAM now, or ``VmHWM``, its peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


def measure(num_prompts: int, total_budget: int, alpha: float, beta: float) -> dict[str, float]:
    """Processor seconds of one call, and the growth of the process's memory at its peak, the input included."""
    allocate_greedy(np.linspace(0, 1, 512), 8192, alpha=alpha, beta=beta, solver="threshold")  # compiles
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    before = memory_bytes("VmRSS")
    pass_rate_P = np.random.default_rng(0).uniform(size=num_prompts)
    started = thread_time()
    budget_P = allocate_greedy(pass_rate_P, total_budget, alpha=alpha, beta=beta, solver="threshold").budget_P
    seconds = thread_time() - started
    assert int(budget_P.sum()) == total_budget
    return {"seconds": seconds, "growth_bytes": memory_bytes("VmHWM") - before}


if __name__ == "__main__":
    num_prompts = int(sys.argv[1])
    print(json.dumps(measure(num_prompts, 16 * num_prompts, 5.8, 5.2)))
