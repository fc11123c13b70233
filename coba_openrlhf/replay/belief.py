"""What a whole log says, in hindsight, about the pass rates of a step: for rollouts that the log does not have."""

# Legend: P = prompts of a step, V = visits (one prompt in one step) of the whole log.

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .logged_step import LoggedStep

# Weight of a prompt's outcomes one step earlier or later: policies move.
NEARNESS = 0.8
# The sum of the prior's two parameters: below, pass rates are all 0 or 1; above, all are the same.
_FEWEST, _MOST = 0.02, 1000.0


@dataclass(frozen=True, eq=False)
class Belief:
    """Beta distributions of the pass rates of a step's prompts, without the outcomes of the step itself.

    Attributes:
        success_P: float64 ``[P]``, first parameters, > 0.
        failure_P: float64 ``[P]``, second parameters, > 0.
    """

    success_P: NDArray[np.float64]
    failure_P: NDArray[np.float64]


def compute_beliefs(steps: Sequence[LoggedStep]) -> list[Belief]:
    """One belief per step: the log's prior and what the same prompt did in other steps, near ones counting more.

    Outcomes ``d`` steps away have the weight ``NEARNESS ** d``.
    """
    prior = fit_prior(steps)
    before = _discounted(steps)
    after = _discounted(steps[::-1])[::-1]
    # (success, rollouts) of earlier and of later steps.
    others = [earlier + later for earlier, later in zip(before, after, strict=True)]
    return [Belief(prior[0] + success_P, prior[1] + scored_P - success_P) for success_P, scored_P in others]


def fit_prior(steps: Sequence[LoggedStep]) -> tuple[float, float]:
    """Beta distribution with the first two moments that pass rates have over all visits of the log.

    ``s / n`` and ``s (s-1) / (n (n-1))`` are unbiased for ``p`` and ``p^2``, whatever the budgets were. One visit from
    Jeffreys' prior, Beta(1/2, 1/2), is added, which is all there is if no prompt has two scored rollouts.
    """
    success_V = np.concatenate([step.right_P for step in steps])
    scored_V = np.concatenate([step.scored_P for step in steps])
    rows = scored_V >= 2
    success_V, scored_V = success_V[rows], scored_V[rows]
    num_visits = len(scored_V) + 1
    mean = ((success_V / scored_V).sum() + 1 / 2) / num_visits
    # A graded score below 1 in all has no pairs of successes.
    pairs_V = np.maximum(success_V * (success_V - 1), 0) / (scored_V * (scored_V - 1))
    square = (pairs_V.sum() + 3 / 8) / num_visits
    spread = square - mean**2
    both = float(np.clip((mean - square) / spread, _FEWEST, _MOST)) if spread > 0 else _MOST
    return float(mean * both), float((1 - mean) * both)


def _discounted(steps: Sequence[LoggedStep]) -> list[NDArray[np.float64]]:
    """``[2, P]`` per step: successes and scored rollouts of the same prompts in the steps before it in the sequence."""
    # Prompt -> step of the last visit, and the counts up to and with it.
    memory: dict[str, tuple[int, float, float]] = {}
    sums = []
    for step in steps:
        sum_P = np.zeros((2, len(step.prompt_ids)))
        outcomes = zip(step.prompt_ids, step.right_P.tolist(), step.scored_P.tolist(), strict=True)
        for row, (prompt_id, success, scored) in enumerate(outcomes):
            last = memory.get(prompt_id)
            if last is not None:
                weight = NEARNESS ** abs(step.step - last[0])
                sum_P[:, row] = weight * last[1], weight * last[2]
            memory[prompt_id] = (step.step, sum_P[0, row] + success, sum_P[1, row] + scored)
        sums.append(sum_P)
    return sums
