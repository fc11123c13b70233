"""Pass rates as the mean of a Beta distribution that forgets."""

# Legend: P = prompts of one call, K = prompts ever seen.

import numpy as np
from numpy.typing import NDArray

from .history import History


class PosteriorHistory(History):
    """Mean of Beta(s0 m + s, s0 (1-m) + f), whose counts shrink as the policy moves on.

        m  prior mean: the policy's success rate lately (1 - Fbar), so that an unseen prompt starts there
        s0 prior_strength
        s, f successes and failures, each times ``decay`` for every policy version since they were counted

    A prompt that has not been visited for long drifts back to the prior.

    Args:
        decay: Share of the counts kept per policy version, in (0, 1].
        prior_strength: See ``History``.
        optimism: See ``History``.
    """

    def __init__(self, decay: float, prior_strength: float = 2.0, optimism: float = 0.0) -> None:
        super().__init__(prior_strength, optimism, successes=0, failures=0)
        self._decay = decay

    def _counts(self, rows: NDArray[np.int64], version: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        # Late answers of an older policy are not forgotten in advance.
        age_P = np.maximum(version - self._rows["version"][rows], 0)
        kept_P = self._decay**age_P
        return self._rows["successes"][rows] * kept_P, self._rows["failures"][rows] * kept_P

    def _point(
        self,
        success_P: NDArray[np.float64],
        failure_P: NDArray[np.float64],
        posterior_mean_P: NDArray[np.float64],
        seen_P: NDArray[np.bool_],
    ) -> NDArray[np.float64]:
        return posterior_mean_P

    def _add(
        self, rows: NDArray[np.int64], success_P: NDArray[np.float64], failure_P: NDArray[np.float64], version: int
    ) -> None:
        kept_success_P, kept_failure_P = self._counts(rows, version)
        self._rows["successes"][rows] = kept_success_P + success_P
        self._rows["failures"][rows] = kept_failure_P + failure_P
