"""Train all seeds of one cell of a table and record what happened."""

# Legend: S = seeds, P = prompts of a step, N = rollouts of a step, M = test prompts.

from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coba_openrlhf.allocation import Allocator, PromptRevisits

from .accuracy import right_probability
from .base_models import load_or_warm_up
from .grpo import Learner, Rollouts, roll_out
from .prompt_stream import PromptStream
from .rules import Rule
from .tasks import TASKS

TEST_PROMPTS = 256
SHARES = ("signal_prompts", "signal_rollouts", "largest_share", "largest_group", "reward")
SOLVED = 0.8


@dataclass(frozen=True)
class Regime:
    """Where rules are compared.

    Attributes:
        name: As in the tables.
        task: Key of ``TASKS``.
        group_size: Mean rollouts per prompt.
        steps: Updates.
        num_prompts: Prompts of a step.
        is_fresh: Every prompt is met once: one epoch over a set that is large enough.
        warm_up_steps: Of the base models; None for the task's.
    """

    name: str
    task: str
    group_size: int
    steps: int
    num_prompts: int = 32
    is_fresh: bool = False
    warm_up_steps: int | None = None


def train(
    regime: Regime, rule: Rule, learning_rate: float, seeds: list[int], folder: Path, evaluations: int = 20
) -> list[dict[str, Any]]:
    """Rows of the learning curves, one per seed and evaluation.

    Args:
        regime: Task, sizes and steps.
        rule: How rollouts are spent.
        learning_rate: Of Adam.
        seeds: Worlds, base models, orders of prompts and draws: everything that is random.
        folder: Where base models are kept.
        evaluations: How often the accuracy is read, besides the start.
    """
    task = TASKS[regime.task]
    policies = load_or_warm_up(regime.task, seeds, folder, regime.warm_up_steps)
    learner = Learner(policies, learning_rate, rule.weighting)
    size = regime.steps * regime.num_prompts if regime.is_fresh else task.num_prompts
    pools = [task.training_prompts(seed, size) for seed in seeds]
    streams = [PromptStream(size, np.random.default_rng([8, seed])) for seed in seeds]
    rngs = [np.random.default_rng([9, seed]) for seed in seeds]
    revisit_settings = {"share": 0} if rule.revisit is None else rule.revisit
    revisits = [PromptRevisits(**revisit_settings, seed=seed) for seed in seeds]
    group_size = regime.group_size * rule.rollouts
    total = round(group_size * regime.num_prompts)
    config = rule.allocation(round(group_size))
    allocators = [Allocator(config) for _ in seeds]
    allocators[0].warm_up()
    probe = config.probe_rollouts if config.pass_rate_source == "probe" else 0
    tests = [task.test_prompts(seed, TEST_PROMPTS) for seed in seeds]
    start_SM = right_probability(policies, tests)
    rows = _rows(0, 0, np.zeros(len(seeds)), start_SM, start_SM, [])
    spent_tokens_S = np.zeros(len(seeds))
    at = set(np.linspace(0, regime.steps, evaluations + 1).round().astype(int).tolist())
    logs: list[dict[str, NDArray[np.float64]]] = []
    started = process_time()
    for step in range(1, regime.steps + 1):
        ids = [
            _next_prompts(stream, chosen, allocator, regime.num_prompts, group_size)
            for stream, chosen, allocator in zip(streams, revisits, allocators, strict=True)
        ]
        batches = [pool.take(id_P) for pool, id_P in zip(pools, ids, strict=True)]
        if probe:
            first = roll_out(policies, batches, [np.full(regime.num_prompts, probe)] * len(seeds), rngs)
            waves = [(id_P[first.prompt_SN[s]], first.score_SN[s].numpy()) for s, id_P in enumerate(ids)]
            budgets = [
                allocator.allocate(id_P.tolist(), total, probe=(wave[0].tolist(), wave[1])).budget_P
                for allocator, id_P, wave in zip(allocators, ids, waves, strict=True)
            ]
            rollouts = first.joined(roll_out(policies, batches, [budget_P - probe for budget_P in budgets], rngs))
        else:
            budgets = [a.allocate(id_P.tolist(), total).budget_P for a, id_P in zip(allocators, ids, strict=True)]
            rollouts = roll_out(policies, batches, budgets, rngs)
        learner.update(batches, rollouts)
        for s, allocator in enumerate(allocators):
            allocator.observe(
                ids[s][rollouts.prompt_SN[s]].tolist(), rollouts.score_SN[s].numpy(),
                num_tokens=rollouts.num_tokens_SN[s].numpy(),
            )  # fmt: skip
        spent_tokens_S += rollouts.num_tokens_SN.sum(1).numpy()
        logs.append(_step_log(budgets, rollouts))
        if step in at:
            accuracy_SM = right_probability(policies, tests)
            rows += _rows(step, step * total, spent_tokens_S, accuracy_SM, start_SM, logs)
            logs = []
    seconds = (process_time() - started) / len(seeds)
    levels = [test.level_M for test in tests]
    for row in rows:
        s = row.pop("index")
        accuracy_M = row.pop("accuracy_M")
        row |= {"seed": seeds[s], "seconds": seconds}
        row |= {f"level_{k}": float(accuracy_M[levels[s] == k].mean()) for k in range(len(task.levels))}
    return rows


def _next_prompts(
    stream: PromptStream, revisits: PromptRevisits, allocator: Allocator, num_prompts: int, group_size: float
) -> NDArray[np.int64]:
    """Prompts of one step, ``[P]``."""
    count = revisits.count(allocator, num_prompts)
    regular_ids = stream.next(num_prompts - count)
    revisited = revisits.draw(allocator, regular_ids.tolist(), count, group_size)
    return np.concatenate((regular_ids, np.array(revisited, np.int64)))


def _step_log(budgets: list[NDArray[np.int64]], rollouts: Rollouts) -> dict[str, NDArray[np.float64]]:
    """Shares of one step, each ``[S]``."""
    budget_SP = np.stack(budgets)
    success_SP = np.zeros(budget_SP.shape)
    seed_SN = np.arange(len(budgets))[:, None].repeat(rollouts.prompt_SN.shape[1], 1)
    np.add.at(success_SP, (seed_SN, rollouts.prompt_SN.numpy()), rollouts.score_SN.numpy())
    mixed_SP = (success_SP > 0) & (success_SP < budget_SP)
    total_S, largest_S = budget_SP.sum(1), budget_SP.max(1)
    shares = (
        mixed_SP.mean(1), (mixed_SP * budget_SP).sum(1) / total_S, largest_S / total_S, largest_S.astype(float),
        success_SP.sum(1) / total_S,
    )  # fmt: skip
    return dict(zip(SHARES, shares, strict=True))


def _rows(
    step: int,
    num_rollouts: int,
    tokens_S: NDArray[np.float64],
    accuracy_SM: NDArray[np.float64],
    start_SM: NDArray[np.float64],
    logs: list[dict[str, NDArray[np.float64]]],
) -> list[dict[str, Any]]:
    rows = []
    for s, accuracy_M in enumerate(accuracy_SM):
        solved_M = start_SM[s] >= SOLVED
        rows.append(
            {
                "index": s,
                "step": step,
                "rollouts": num_rollouts,
                "tokens": float(tokens_S[s]),
                "accuracy": float(accuracy_M.mean()),
                "accuracy_solved": float(accuracy_M[solved_M].mean()) if solved_M.any() else np.nan,
                "accuracy_M": accuracy_M,
                **{name: float(np.mean([log[name][s] for log in logs])) if logs else np.nan for name in SHARES},
            }
        )
    return rows
