"""How likely a group of another size would have carried a signal: rollouts with different outcomes."""

# Legend: P = prompts.

import numpy as np
from numpy.typing import NDArray

from .belief import Belief
from .beta import log_gamma, log_moment
from .logged_step import LoggedStep


def chance_of_signal(
    step: LoggedStep, belief: Belief, size_P: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Chance that ``B`` scored rollouts of a prompt are neither all successes nor all failures.

    The log has ``n`` scored rollouts of the prompt, ``s`` of them successes: ``n_1`` and ``s_1`` in its first wave (0
    in a run without), ``n_2`` and ``s_2`` after it. The group of ``B`` is made of ``k_1 = min(B, n_1)`` of the wave,
    then of ``k_2 = min(B - k_1, n_2)`` of the others, and where the log has too few, of ``k_3`` new ones:

        signal            = 1 - all(s_1, s_2; a, b) - all(n_1 - s_1, n_2 - s_2; b, a)
        all(c1, c2; a, b) = C(c1, k_1) / C(n_1, k_1)       drawn from the wave without replacement
                          * C(c2, k_2) / C(n_2, k_2)       drawn from the others without replacement
                          * E[p^k_3]                       p ~ Beta(a + c1 + c2, b + n - c1 - c2)

    Without new ones it is unbiased for the pass rate that the policy had, whatever that was, also where a rule has seen
    the first wave before it chose ``B``; ``B = n`` gives what happened. New ones matter only to groups without a signal
    in the log, and there they rest on ``belief``, the ``a`` and ``b``.

    Args:
        step: The log of the step. Graded scores count as that much of a success.
        belief: What is known about the pass rates besides.
        size_P: ``[P]``, B, whole numbers >= 0.

    Returns:
        The chances in [0, 1], and which of them rest on ``belief``, both ``[P]``.
    """
    wave_P, rest_P = step.wave_scored_P, step.scored_P - step.wave_scored_P
    drawn_wave_P = np.minimum(size_P, wave_P)
    drawn_rest_P = np.minimum(size_P - drawn_wave_P, rest_P)
    new_P = size_P - drawn_wave_P - drawn_rest_P
    right_P = step.right_P
    right_wave_P = np.minimum(step.wave_success_P, right_P)
    right_rest_P = right_P - right_wave_P

    def drawn_P(count_wave_P: NDArray[np.float64], count_rest_P: NDArray[np.float64]) -> NDArray[np.float64]:
        return _drawn(count_wave_P, wave_P, drawn_wave_P) * _drawn(count_rest_P, rest_P, drawn_rest_P)

    a_P, b_P = belief.success_P + right_P, belief.failure_P + step.scored_P - right_P
    all_right_P = drawn_P(right_wave_P, right_rest_P) * _predicted(a_P, b_P, new_P)
    all_wrong_P = drawn_P(wave_P - right_wave_P, rest_P - right_rest_P) * _predicted(b_P, a_P, new_P)
    chance_P = np.clip(1 - all_right_P - all_wrong_P, 0.0, 1.0)
    # Fractions of successes must not make less of a group that is known to be mixed.
    chance_P[step.mixed_P & (size_P >= step.scored_P)] = 1.0
    several_P = size_P >= 2
    return np.where(several_P, chance_P, 0.0), several_P & (new_P > 0) & ~step.mixed_P


def _drawn(
    count_P: NDArray[np.float64], total_P: NDArray[np.float64], drawn_P: NDArray[np.float64]
) -> NDArray[np.float64]:
    """C(count, drawn) / C(total, drawn): all drawn are among ``count`` of ``total``."""
    share_P = np.zeros(len(count_P))
    rows = count_P > drawn_P - 1  # else there are not enough of them
    count, total, drawn = count_P[rows], total_P[rows], drawn_P[rows]
    # In this order a count of all gives exactly 1.
    log_share = (
        log_gamma(count + 1) - log_gamma(total + 1) + (log_gamma(total - drawn + 1) - log_gamma(count - drawn + 1))
    )
    share_P[rows] = np.exp(log_share)
    return share_P


def _predicted(a_P: NDArray[np.float64], b_P: NDArray[np.float64], new_P: NDArray[np.float64]) -> NDArray[np.float64]:
    """E[p^new] under Beta(a, b)."""
    chance_P = np.ones(len(new_P))
    rows = new_P > 0
    chance_P[rows] = np.exp(log_moment(a_P[rows], b_P[rows], new_P[rows], np.zeros(int(rows.sum()))))
    return chance_P
