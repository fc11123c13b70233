"""avg@k and pass@k."""

# Legend: N = problems, K = responses per problem.

import math

import numpy as np
from numpy.typing import NDArray


def avg_at_k(score_NK: NDArray[np.float64]) -> float:
    """Mean score over all responses; an unscored response (NaN) counts as 0."""
    return float(avg_per_problem(score_NK).mean())


def pass_at_k(score_NK: NDArray[np.float64], k: int) -> float:
    """Probability that at least one of ``k`` responses is right, estimated without bias.

    With ``c`` right among ``n`` responses: ``1 - C(n - c, k) / C(n, k)`` (Chen et al. 2021, arXiv 2107.03374).

    Args:
        score_NK: Scores; a response is right when its score is 1.
        k: At most ``K``.

    Raises:
        ValueError: ``k`` is larger than the number of responses.
    """
    return float(pass_per_problem(score_NK, k).mean())


def avg_per_problem(score_NK: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean score of every problem, ``[N]``."""
    return np.nan_to_num(score_NK).mean(axis=1)


def pass_per_problem(score_NK: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """``pass_at_k`` of every problem, ``[N]``; it raises the same."""
    n = score_NK.shape[1]
    if not 1 <= k <= n:
        raise ValueError(f"k must be between 1 and the number of responses per problem, got k = {k}, responses = {n}")
    correct_N = (score_NK >= 1.0).sum(axis=1)
    return np.array([1.0 - math.comb(n - c, k) / math.comb(n, k) for c in correct_N.tolist()])


def pass_ks(k: int) -> list[int]:
    """The numbers of responses for which pass@ is told: powers of two up to ``k``, and ``k``."""
    powers = [2**i for i in range(k.bit_length()) if 2**i < k]
    return [*powers, k]
