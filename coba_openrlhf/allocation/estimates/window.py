"""Pass rates as the share of successes in a prompt's last visits."""

# Legend: P = prompts of one call, K = prompts ever seen, W = visits remembered.

import numpy as np
from numpy.typing import NDArray

from .history import History


class WindowHistory(History):
    """Successes / rollouts, pooled over the last ``window`` visits; ``unseen_pass_rate`` without any.

    One visit is one ``update`` that contains the prompt.

    Args:
        window: Visits remembered per prompt, >= 1.
        unseen_pass_rate: Estimate for a prompt without history, in [0, 1].
        prior_strength: See ``History``; for the Beta distribution only.
        optimism: See ``History``.
    """

    def __init__(
        self, window: int, unseen_pass_rate: float, prior_strength: float = 2.0, optimism: float = 0.0
    ) -> None:
        # Oldest visit first; visits that have not happened yet are 0 of 0 and drop out of the pooled sums.
        super().__init__(prior_strength, optimism, successes=window, rollouts=window)
        self._unseen_pass_rate = unseen_pass_rate

    def _counts(self, rows: NDArray[np.int64], version: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        success_P = self._rows["successes"][rows].sum(axis=1)
        return success_P, self._rows["rollouts"][rows].sum(axis=1) - success_P

    def _point(
        self,
        success_P: NDArray[np.float64],
        failure_P: NDArray[np.float64],
        posterior_mean_P: NDArray[np.float64],
        seen_P: NDArray[np.bool_],
    ) -> NDArray[np.float64]:
        pass_rate_P = np.full(len(seen_P), self._unseen_pass_rate)
        pass_rate_P[seen_P] = success_P[seen_P] / (success_P + failure_P)[seen_P]
        return pass_rate_P

    def _add(
        self, rows: NDArray[np.int64], success_P: NDArray[np.float64], failure_P: NDArray[np.float64], version: int
    ) -> None:
        for name, newest_P in (("successes", success_P), ("rollouts", success_P + failure_P)):
            counts_KW = self._rows[name]
            counts_KW[rows, :-1] = counts_KW[rows, 1:]
            counts_KW[rows, -1] = newest_P

    def _check_columns(self, columns: dict[str, NDArray[np.float64]]) -> None:
        super()._check_columns(columns)
        if (columns["successes"] > columns["rollouts"]).any() or (columns["rollouts"].sum(axis=1) <= 0).any():
            raise ValueError("pass-rate state must have 0 <= successes <= rollouts and a rollout per prompt")
