"""Speed of the allocation: ``python -m benchmarks.allocation [--write]``.

One batch of 512 prompts and 8192 rollouts, value function included, solved three ways in one process. Prints a
Markdown table; ``--write`` also puts it into ``benchmarks/results.md``.
"""

# Legend: P = prompts, N = admissible budgets.

import argparse
import math
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numba
import numpy as np
from numpy.typing import ArrayLike

from benchmarks.oracles import exact_budgets, released_budgets
from benchmarks.results_file import write_section
from coba_openrlhf import allocate_greedy
from coba_openrlhf.allocation.value import value

NUM_PROMPTS, TOTAL_BUDGET, BUDGET_MIN, BUDGET_MAX = 512, 8192, 2, 128
ALPHA, BETA, TAU = 5.8, 5.2, 5.0  # a failure rate of 0.6 under the default settings


def median_seconds(solve: Callable[[], ArrayLike], repeats: int) -> tuple[float, ArrayLike]:
    """Median wall time of ``repeats`` runs, and the budgets of the last one."""
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        budgets = solve()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds), budgets


def cpu_name() -> str:
    """Model name where Linux tells it, else what ``platform`` knows."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def table() -> str:
    """Run everything and describe it in Markdown."""
    # Pass rates as 16 earlier rollouts would have measured them, from hard to easy.
    rng = np.random.default_rng(0)
    pass_rate_P = rng.binomial(16, rng.uniform(size=NUM_PROMPTS)) / 16
    rule = {"alpha": ALPHA, "beta": BETA, "tau": TAU}
    bounds = {"budget_min": BUDGET_MIN, "budget_max": BUDGET_MAX}

    def solve_heap() -> ArrayLike:
        return allocate_greedy(pass_rate_P, TOTAL_BUDGET, **rule, **bounds).budget_P

    def solve_released() -> ArrayLike:
        return released_budgets(pass_rate_P, TOTAL_BUDGET, **rule, **bounds)

    def solve_exact() -> ArrayLike:
        budget_N = np.arange(BUDGET_MIN, BUDGET_MAX + 1)
        return exact_budgets(value(budget_N, pass_rate_P[:, None], **rule), TOTAL_BUDGET, BUDGET_MIN)

    solve_heap()  # compiles
    rows = []
    for name, solve, repeats in (
        ("`allocate_greedy`, solver `heap` (whole call)", solve_heap, 201),
        ("`heapq` loop as released with CoBA-RL, pure Python", solve_released, 11),
        ("dynamic programming, vectorised NumPy", solve_exact, 1),
    ):
        seconds, budgets = median_seconds(solve, repeats)
        rows.append((name, repeats, seconds, math.fsum(value(budgets, pass_rate_P, **rule))))
    fastest = rows[0][2]
    lines = [
        f"{NUM_PROMPTS} prompts, {TOTAL_BUDGET} rollouts, budgets {BUDGET_MIN} to {BUDGET_MAX}, "
        f"alpha {ALPHA}, beta {BETA}, tau {TAU}; value function included.",
        f"{cpu_name()}, one core; Python {platform.python_version()}, NumPy {np.__version__}, "
        f"numba {numba.__version__}.",
        "",
        "| solver | runs | median ms | times `heap` | objective |",
        "|---|---:|---:|---:|---:|",
        *(
            f"| {name} | {repeats} | {1e3 * seconds:,.3f} | {seconds / fastest:,.0f} | {objective:.12f} |"
            for name, repeats, seconds, objective in rows
        ),
    ]
    return "\n".join(lines) + "\n"


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description="Speed of the allocation.")
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results.md")
    arguments = parser.parse_args(argv)
    text = table()
    print(text, end="")
    if arguments.write:
        write_section("Speed of the allocation", text, "benchmarks.allocation")


if __name__ == "__main__":
    main()
