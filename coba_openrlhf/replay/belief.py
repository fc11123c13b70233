"""What a whole log says, in hindsight, about the pass rates of a step: for rollouts that the log does not have."""

# Legend: P = prompts of a step, V = visits (one prompt in one step) and D = different prompts of the whole log,
# K = candidates for the weight of a neighbouring step.

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .beta import log_moment
from .logged_step import LoggedStep

# How much a prompt's outcomes count one step earlier or later: the faster a policy moves, the less.
NEARNESS = (0.0, 0.5, 0.8, 0.9, 0.95, 0.98, 1.0)
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
    """One belief per step: the log's prior, and what the same prompts did in other steps.

    Outcomes ``d`` steps away count ``w ** d``; of ``NEARNESS``, ``w`` is the one with which beliefs make the log most
    likely, each step predicted by the others.
    """
    prior = np.array(fit_prior(steps))[:, np.newaxis, np.newaxis]
    # Parameters per step, [2, K, P].
    beliefs = [prior + others for others in _count_others(steps)]
    likelihood_K = np.zeros(len(NEARNESS))
    for step, (success_KP, failure_KP) in zip(steps, beliefs, strict=True):
        log_KP = log_moment(success_KP, failure_KP, step.right_P, step.scored_P - step.right_P)
        likelihood_K += log_KP.sum(axis=1)
    best = int(likelihood_K.argmax())
    return [Belief(success_KP[best], failure_KP[best]) for success_KP, failure_KP in beliefs]


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


def _count_others(steps: Sequence[LoggedStep]) -> list[NDArray[np.float64]]:
    """Weighted successes and failures of the same prompts in all other steps, ``[2, K, P]`` per step."""
    index_of: dict[str, int] = {}
    rows = [np.array([index_of.setdefault(i, len(index_of)) for i in step.prompt_ids]) for step in steps]
    before = _count_before(steps, rows, len(index_of))
    after = _count_before(steps[::-1], rows[::-1], len(index_of))[::-1]
    return [earlier + later for earlier, later in zip(before, after, strict=True)]


def _count_before(
    steps: Sequence[LoggedStep], rows: Sequence[NDArray[np.int64]], num_prompts: int
) -> list[NDArray[np.float64]]:
    """The same for the steps that come before in the sequence; ``rows`` are the places of their prompts in ``D``."""
    weight_K1 = np.array(NEARNESS)[:, np.newaxis]
    last_D, sums_2KD = np.zeros(num_prompts), np.zeros((2, len(NEARNESS), num_prompts))
    counts = []
    for step, row_P in zip(steps, rows, strict=True):
        others_2KP = sums_2KD[:, :, row_P] * weight_K1 ** np.abs(step.step - last_D[row_P])
        outcome_2P = np.stack((step.right_P, step.scored_P - step.right_P))
        sums_2KD[:, :, row_P] = others_2KP + outcome_2P[:, np.newaxis]
        last_D[row_P] = step.step
        counts.append(others_2KP)
    return counts
