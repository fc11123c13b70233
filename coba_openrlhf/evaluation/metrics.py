"""avg@k and pass@k."""

# Legend: N = problems, K = responses per problem.

import math

import numpy as np
from numpy.typing import NDArray


def avg_at_k(score_NK: NDArray[np.float64]) -> float:
    """Mean score over all responses; an unscored response (NaN) counts as 0."""
    return float(np.nan_to_num(score_NK).mean())


def pass_at_k(score_NK: NDArray[np.float64], k: int) -> float:
    """Probability that at least one of ``k`` responses is right, estimated without bias.

    With ``c`` right among ``n`` responses: ``1 - C(n - c, k) / C(n, k)`` (Chen et al. 2021, arXiv 2107.03374).

    Args:
        score_NK: Scores; a response is right when its score is 1.
        k: At most ``K``.

    Raises:
        ValueError: ``k`` is larger than the number of responses.
    """
    n = score_NK.shape[1]
    if not 1 <= k <= n:
        raise ValueError(f"k must be between 1 and the number of responses per problem, got k = {k}, responses = {n}")
    correct_N = (score_NK >= 1.0).sum(axis=1)
    return float(np.mean([1.0 - math.comb(n - c, k) / math.comb(n, k) for c in correct_N.tolist()]))
