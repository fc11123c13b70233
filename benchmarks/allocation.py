"""Speed of the allocation: ``python -m benchmarks.allocation [--write]``, about a minute on one core.

Whole calls, value function included, measured in turn in one process (``timing.py``); ratios are those of medians.
Prints Markdown; ``--write`` also puts it into ``benchmarks/results.md``. Ends with an error if two solvers that must
agree do not, or a goal of speed is missed.
"""

# Legend: P = prompts, R = rollouts, N = budgets.

import json
import math
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from benchmarks.goals import Goals, run_benchmark
from benchmarks.oracles import float_budgets, log_linear_budgets, released_budgets, sorted_budgets
from benchmarks.timing import Contestant, cpu_name, interleave
from coba_openrlhf.allocation import STRATEGY_NAMES, AllocationConfig, Allocator, allocate_greedy
from coba_openrlhf.allocation.value import value

ROOT = Path(__file__).parents[1]
NUM_PROMPTS, SHARE = 512, 16  # rollouts per prompt
RULE = {"alpha": 5.8, "beta": 5.2, "tau": 5.0}  # a failure rate of 0.6 under the default settings
BOUNDS = {"budget_min": 2, "budget_max": 128}
LARGE, HUGE = 100_000, (250_000, 500_000, 1_000_000)
HISTORY = 1_000_000

TWINS = {
    "`heapq` loop as released with CoBA-RL (NumPy scalars)": released_budgets,
    "`heapq` loop, strict twin (Python floats)": float_budgets,
    "`heapq` loop on this library's log-linear gains": log_linear_budgets,
    "NumPy sort of all marginal gains": sorted_budgets,
}
RELEASED = next(iter(TWINS))


def measured_rates(num_prompts: int) -> NDArray[np.float64]:
    """Pass rates as 16 earlier rollouts would have measured them, from hard to easy: 17 values, many ties."""
    rng = np.random.default_rng(0)
    return rng.binomial(16, rng.uniform(size=num_prompts)) / 16


def ours(pass_rate_P: NDArray[np.float64], solver: str) -> Callable[[], NDArray[np.int64]]:
    """The whole public call."""
    total = SHARE * len(pass_rate_P)
    return lambda: allocate_greedy(pass_rate_P, total, **RULE, **BOUNDS, solver=solver).budget_P


def objective(budgets: Any, pass_rate_P: NDArray[np.float64], rule: dict[str, float] = RULE) -> float:
    """Summed value of an allocation."""
    return math.fsum(value(budgets, pass_rate_P, **rule))


def batch_table(goals: Goals) -> list[str]:
    """One ordinary batch, all solvers."""
    pass_rate_P = measured_rates(NUM_PROMPTS)
    total = SHARE * NUM_PROMPTS
    for solver in ("heap", "threshold"):
        ours(pass_rate_P, solver)()  # compiles
    heap = Contestant(ours(pass_rate_P, "heap"), calls=15)
    threshold = Contestant(ours(pass_rate_P, "threshold"), calls=25)
    contestants = {"`heap`": heap, "`threshold` (what `auto` takes here)": threshold}
    for name, twin in TWINS.items():
        contestants[name] = Contestant(lambda twin=twin: twin(pass_rate_P, total, **RULE, **BOUNDS))
    contestants["dynamic programming, `exact`"] = Contestant(ours(pass_rate_P, "exact"), every=4)
    interleave(contestants, 13)
    released = contestants[RELEASED].median
    rows = []
    for name, contestant in contestants.items():
        differ = int(np.count_nonzero(np.asarray(contestant.result) != heap.result))
        worth = objective(contestant.result, pass_rate_P)
        assert math.isclose(worth, objective(heap.result, pass_rate_P), rel_tol=1e-12), name
        must = {id(heap): 200, id(threshold): 1500}.get(id(contestant))
        reached = must is None or released / contestant.median >= must
        goal = "" if must is None else goals.cell("batch", reached, f"{must:,} times")
        rows.append(
            f"| {name} | {len(contestant.seconds)} | {1e3 * contestant.median:,.3f} "
            f"| {contestant.median / heap.median:,.2f} | {contestant.median / threshold.median:,.1f} "
            f"| {differ} | {worth:.10f} | {goal} |"
        )
    return [
        f"### {NUM_PROMPTS} prompts, {total:,} rollouts",
        "",
        "| solver | calls | median ms | times `heap` | times `threshold` | prompts unlike `heap` | objective "
        "| must beat the released loop |",
        "|---|---:|---:|---:|---:|---:|---:|---|",
        *rows,
    ]


def agreement_row(num_batches: int = 200) -> str:
    """All solvers on random batches; raises AssertionError where they must agree and do not."""
    rng = np.random.default_rng(1)
    for _ in range(num_batches):
        num_prompts = int(rng.integers(1, 49))
        coarse_P = rng.integers(0, 17, num_prompts) / 16
        pass_rate_P = coarse_P if rng.uniform() < 0.5 else rng.uniform(size=num_prompts)
        low = int(rng.integers(0, 4))
        bounds = {"budget_min": low, "budget_max": low + int(rng.integers(1, 40))}
        total = int(rng.integers(num_prompts * low, num_prompts * bounds["budget_max"] + 1))
        alpha = float(rng.uniform(1, 10))
        rule = {"alpha": alpha, "beta": 11 - alpha, "tau": float(rng.uniform(1, 12))}
        done = {
            solver: allocate_greedy(pass_rate_P, total, **rule, **bounds, solver=solver).budget_P
            for solver in ("heap", "threshold", "exact")
        }
        done |= {twin.__name__: np.array(twin(pass_rate_P, total, **rule, **bounds)) for twin in TWINS.values()}
        best = objective(done["heap"], pass_rate_P, rule)
        for name, budget_P in done.items():
            assert budget_P.sum() == total and low <= budget_P.min() <= budget_P.max() <= bounds["budget_max"], name
            assert math.isclose(objective(budget_P, pass_rate_P, rule), best, rel_tol=1e-12, abs_tol=1e-12), name
            if name in ("threshold", "log_linear_budgets", "sorted_budgets"):
                assert budget_P.tolist() == done["heap"].tolist(), name
    return (
        f"Agreement on {num_batches} random batches of 1 to 48 prompts, asserted in this run: `threshold`, the sort\n"
        "and the log-linear loop give the budgets of `heap`, prompt by prompt. Dynamic programming and the two loops\n"
        "that subtract values give the same objective to 1e-12: they may order equal gains in their own way."
    )


def large_table(goals: Goals) -> list[str]:
    """A large batch: the two exact solvers must agree bit for bit."""
    rows = []
    uniform_P = np.random.default_rng(0).uniform(size=LARGE)
    for kind, pass_rate_P in (("all different", uniform_P), ("17 values (ties)", measured_rates(LARGE))):
        heap, threshold = Contestant(ours(pass_rate_P, "heap")), Contestant(ours(pass_rate_P, "threshold"), calls=5)
        interleave({"heap": heap, "threshold": threshold}, 9)
        np.testing.assert_array_equal(heap.result, threshold.result)
        ratio = heap.median / threshold.median
        rows.append(
            f"| {kind} | {1e3 * heap.median:,.1f} | {1e3 * threshold.median:,.2f} | {ratio:,.1f} | yes (asserted) "
            f"| {goals.cell('large', threshold.median <= 0.025 and ratio >= 40, 'at most 25 ms, 40 times')} |"
        )
    return [
        f"### {LARGE:,} prompts, {SHARE * LARGE:,} rollouts",
        "",
        "| pass rates | `heap` median ms | `threshold` median ms | ratio | same budgets | must reach |",
        "|---|---:|---:|---:|---|---|",
        *rows,
    ]


def huge_table(goals: Goals) -> list[str]:
    """Time per prompt as batches grow, and the memory of the largest in a process of its own."""
    contestants = {
        num_prompts: Contestant(ours(np.random.default_rng(0).uniform(size=num_prompts), "threshold"), calls=2)
        for num_prompts in HUGE
    }
    interleave({str(num_prompts): contestant for num_prompts, contestant in contestants.items()}, 9)
    rows = []
    command = [sys.executable, "-m", "benchmarks.large_batch"]
    for num_prompts, contestant in contestants.items():
        text = subprocess.run([*command, str(num_prompts)], cwd=ROOT, check=True, capture_output=True, text=True).stdout
        alone = json.loads(text)
        reached = alone["seconds"] < 1 and alone["growth_bytes"] < 500e6
        goal = goals.cell("huge", reached, "less than 1 s and 500 MB") if num_prompts == HUGE[-1] else ""
        rows.append(
            f"| {num_prompts:,} | {1e3 * contestant.median:,.1f} | {1e9 * contestant.median / num_prompts:,.1f} "
            f"| {1e3 * alone['seconds']:,.0f} | {alone['growth_bytes'] / 1e6:,.0f} | {goal} |"
        )
    return [
        f"### Linear in the prompts: `threshold`, {SHARE} rollouts per prompt",
        "",
        "| prompts | median ms | ns per prompt | first call of a fresh process, ms | growth of its peak memory, MB "
        "| must reach |",
        "|---:|---:|---:|---:|---:|---|",
        *rows,
        "",
        "What is not proportional is fresh memory: from some size on, the C library returns a call's arrays to the",
        "kernel, and the next call faults them in again.",
    ]


class Step:
    """A step of a run with ``num_known`` prompts of history, each of its own pass rate."""

    def __init__(self, num_known: int, rng: np.random.Generator) -> None:
        self.rng = rng
        self.rate_P = rng.uniform(size=num_known)
        self.ids = [f"{prompt:016x}" for prompt in range(num_known)]
        self.allocator = Allocator(AllocationConfig())
        self.allocator.warm_up()
        for start in range(0, num_known, 50_000):
            part = slice(start, start + 50_000)
            score_R = rng.uniform(size=4 * len(self.ids[part])) < np.tile(self.rate_P[part], 4)
            self.allocator.observe(self.ids[part] * 4, score_R)

    def draw(self) -> None:
        """Other prompts in every step, as in a run: their rows are not in the processor's cache."""
        rows = self.rng.choice(len(self.ids), NUM_PROMPTS, replace=False)
        self.batch = [self.ids[row] for row in rows]
        self.rollout_ids = [prompt_id for prompt_id in self.batch for _ in range(SHARE)]
        self.score_R = self.rng.uniform(size=SHARE * NUM_PROMPTS) < np.repeat(self.rate_P[rows], SHARE)

    def __call__(self) -> None:
        """What a training loop asks of the allocator."""
        self.allocator.observe(self.rollout_ids, self.score_R)
        self.allocator.allocate(self.batch, SHARE * NUM_PROMPTS)


def history_table(goals: Goals) -> list[str]:
    """A step of a run: learn from its scores, set the next budgets, with much and with little history."""
    rng = np.random.default_rng(0)
    steps = {num_known: Step(num_known, rng) for num_known in (NUM_PROMPTS, HISTORY)}
    contestants = {str(num_known): Contestant(step) for num_known, step in steps.items()}
    for _ in range(51):
        for step in steps.values():
            step.draw()
        interleave(contestants, 1)
    rows = []
    for num_known, contestant in zip(steps, contestants.values(), strict=True):
        goal = goals.cell("history", contestant.median < 0.01, "less than 10 ms") if num_known == HISTORY else ""
        rows.append(f"| {num_known:,} | {1e3 * contestant.median:,.2f} | {goal} |")
    return [
        f"### `Allocator`: `observe` {SHARE * NUM_PROMPTS:,} scores, then `allocate` for {NUM_PROMPTS} prompts",
        "",
        "| prompts with history | median ms | must reach |",
        "|---:|---:|---|",
        *rows,
    ]


def strategy_table() -> list[str]:
    """Every rule's whole ``Allocator.allocate``, estimates and metrics included."""
    rng = np.random.default_rng(0)
    ids = [f"{prompt:016x}" for prompt in range(NUM_PROMPTS)]
    rollout_ids = [prompt_id for prompt_id in ids for _ in range(SHARE)]
    scores = (rng.uniform(size=len(rollout_ids)) < np.repeat(rng.uniform(size=NUM_PROMPTS), SHARE)).astype(np.float64)
    num_tokens = rng.integers(100, 4000, len(rollout_ids)).astype(np.float64)
    contestants = {}
    for strategy in STRATEGY_NAMES:
        allocator = Allocator(AllocationConfig(strategy=strategy))
        allocator.warm_up()
        allocator.observe(rollout_ids, scores, num_tokens=num_tokens)
        run = lambda allocator=allocator: allocator.allocate(ids, SHARE * NUM_PROMPTS)  # noqa: E731
        contestants[strategy] = Contestant(run, calls=5)
    interleave(contestants, 41)
    for contestant in contestants.values():
        assert int(contestant.result.budget_P.sum()) == SHARE * NUM_PROMPTS
    return [
        f"### Every strategy: whole `Allocator.allocate`, {NUM_PROMPTS} prompts, {SHARE * NUM_PROMPTS:,} rollouts",
        "",
        "| strategy | median µs |",
        "|---|---:|",
        *(f"| `{name}` | {1e6 * contestant.median:,.0f} |" for name, contestant in contestants.items()),
    ]


def report(goals: Goals) -> str:
    """Run everything and describe it in Markdown."""
    header = [
        f"{cpu_name()}, one core; Python {platform.python_version()}, NumPy {np.__version__}, "
        f"numba {numba.__version__}.",
        f"Budgets {BOUNDS['budget_min']} to {BOUNDS['budget_max']}, alpha {RULE['alpha']}, beta {RULE['beta']}, "
        f"tau {RULE['tau']}. Whole calls with argument checks",
        "and value function, in processor time of the calling thread; medians and ratios of one run, the solvers of a",
        "table measured in turn.",
        "",
        "The released loop evaluates the density anew for every value, on NumPy scalars that it clips twice; the goals",
        "are held against a twin that pays for the same operations. The strict twin does the same mathematics on plain",
        "floats. The log-linear loop has the gains of this library: against it, the compiled algorithm alone counts.",
    ]
    tables = [
        [*batch_table(goals), "", agreement_row()],
        large_table(goals),
        huge_table(goals),
        history_table(goals),
        strategy_table(),
    ]
    return "\n".join(header + [line for table in tables for line in ["", *table]]) + "\n"


if __name__ == "__main__":
    run_benchmark("Speed of the allocation", report, "benchmarks.allocation")
