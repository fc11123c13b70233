"""Which candidates enter a step."""

# Legend: C = candidates, P = prompts of the step.

import numpy as np
from numpy.typing import NDArray

from coba_openrlhf.allocation import Allocator

from .rules import Rule


def choose(
    rule: Rule,
    allocator: Allocator,
    candidates: NDArray[np.int64],
    count: int,
    group_size: float,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Admit ``count`` of the candidates."""
    if not rule.choice:
        return candidates
    estimates = allocator.estimate(candidates.tolist())
    a, b = estimates.success_P, estimates.failure_P
    mean = a / (a + b)
    n = int(group_size)
    pn, qn = np.ones_like(a), np.ones_like(a)
    for j in range(n):
        pn *= (a + j) / (a + b + j)
        qn *= (b + j) / (a + b + j)
    mixed = 1 - pn - qn
    score = {
        "mixed": mixed,
        "mixedhard": mixed * (1 - mean),
        "thompson": -np.abs(rng.beta(a, b) - 0.5),
        "uncertain": a * b / (a + b) ** 2,
    }[rule.choice]
    score = score + 1e-9 * rng.random(len(score))
    kept = round(rule.maintenance * count)
    order = np.argsort(-score, kind="stable")
    best, rest = order[: count - kept], order[count - kept :]
    return candidates[np.concatenate((best, rng.permutation(rest)[:kept]))]
