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
    """Admit ``count`` of the candidates: those with the highest expected signal, and a share at random.

    The score is the expected number of mixed groups of ``group_size`` rollouts under the posterior, as the rule
    ``mixed`` counts them; with ``rule.choice`` mixedhard times the expected failure rate.

    Returns:
        ``[P]``, the admitted candidates; all of them for a rule that does not choose.
    """
    if not rule.choice:
        return candidates
    estimates = allocator.estimate(candidates.tolist())
    a_C, b_C = estimates.success_P, estimates.failure_P
    all_right_C, all_wrong_C = np.ones_like(a_C), np.ones_like(a_C)
    for rollout in range(round(group_size)):
        all_right_C *= (a_C + rollout) / (a_C + b_C + rollout)
        all_wrong_C *= (b_C + rollout) / (a_C + b_C + rollout)
    mixed_C = 1 - all_right_C - all_wrong_C
    score_C = {"mixed": mixed_C, "mixedhard": mixed_C * b_C / (a_C + b_C)}[rule.choice]
    # Equal candidates, such as unseen ones, in random order.
    order = np.lexsort((rng.random(len(score_C)), -score_C))
    kept = round(rule.maintenance * count)
    best, rest = order[: count - kept], order[count - kept :]
    return candidates[np.concatenate((best, rng.permutation(rest)[:kept]))]
