"""Marginal gains: what the next rollout of each prompt is worth, in the forms that the solvers understand.

Every rule that is greedy-exact is one of three families. They share one property, on which all solvers rely: the
gains of a prompt, *as computed*, never increase with its budget.
"""

# Legend: P = prompts of the batch, K = parameters of a family, T = rows of a table,
#         N = budgets budget_min .. budget_max - 1, from which a rollout can be added.

from dataclasses import dataclass
from enum import IntEnum
from math import exp, inf, nextafter

import numpy as np
from numpy.typing import NDArray


class Family(IntEnum):
    """How a gain depends on the budget ``B``."""

    GEOMETRIC = 0  # log gain = intercept - slope * B
    URN = 1  # gain = x(B) + y(B), each times a ratio from one budget to the next
    TABLE = 2  # gain = weight * table[row, B - budget_min]


@dataclass(frozen=True, eq=False)
class Gains:
    """Gains of the steps ``B -> B + 1`` for every prompt; made by one of the three constructors.

    Attributes:
        family: The form.
        param_KP: float64, the parameters of the form, one row each; see the constructors.
        table_TN: float64, for ``TABLE``; of one element otherwise.
        budget_min: The budget that ``x``, ``y`` and the table start at.
    """

    family: Family
    param_KP: NDArray[np.float64]
    table_TN: NDArray[np.float64]
    budget_min: int

    @classmethod
    def geometric(cls, intercept_P: NDArray[np.float64], slope_P: NDArray[np.float64]) -> "Gains":
        """Gains ``exp(intercept - slope * B)``, kept as logarithms: those below the smallest float stay in order.

        Args:
            intercept_P: ``[P]``, finite.
            slope_P: ``[P]``, finite, > 0.

        Raises:
            ValueError: A number breaks its rule.
        """
        _check_range("intercepts", intercept_P, "finite", -inf, inf)
        _check_range("slopes", slope_P, "finite and > 0", 0.0, inf)
        return cls(Family.GEOMETRIC, np.stack((intercept_P, slope_P)), _NO_TABLE, 0)

    @classmethod
    def urn(
        cls,
        x_P: NDArray[np.float64],
        y_P: NDArray[np.float64],
        success_P: NDArray[np.float64],
        failure_P: NDArray[np.float64],
        budget_min: int,
        *,
        learns: bool = True,
    ) -> "Gains":
        """Gains ``x(B) + y(B)`` of Bernoulli rollouts whose rate is drawn from Beta(success, failure), or known.

            x(B+1) = x(B) * (success + B) / (success + failure + 1 + B)         x(B) is proportional to E[p^B (1-p)]
            y(B+1) = y(B) * (failure + B) / (success + failure + 1 + B)         y(B) is proportional to E[(1-p)^B p]

        With ``learns=False`` the rates are known, the ratios constant: ``success`` is p and ``failure`` is 1 - p.
        Only multiplications and divisions: the same bits on every platform, compiled or not.

        Args:
            x_P: ``[P]``, x(0) >= 0.
            y_P: ``[P]``, y(0) >= 0.
            success_P: ``[P]``, > 0 (in [0, 1] for known rates).
            failure_P: ``[P]``, > 0 (``1 - success_P`` for known rates).
            budget_min: The smallest budget.
            learns: Whether the rates are uncertain.

        Raises:
            ValueError: A number breaks its rule.
        """
        for name, values_P in (("x", x_P), ("y", y_P), ("success", success_P), ("failure", failure_P)):
            largest = 1.0 if name in ("success", "failure") and not learns else _LARGEST_FLOAT
            rule = "finite and >= 0" if largest > 1.0 else "in [0, 1]"
            _check_range(f"{name} of an urn", values_P, rule, -_SMALLEST_FLOAT, nextafter(largest, inf))
        growth = 1.0 if learns else 0.0
        rest_P = success_P + failure_P + 1.0 if learns else np.ones_like(success_P)
        x_P, y_P = x_P.astype(np.float64), y_P.astype(np.float64)
        for budget in range(budget_min):
            denominator_P = rest_P + growth * budget
            x_P = x_P * ((success_P + growth * budget) / denominator_P)
            y_P = y_P * ((failure_P + growth * budget) / denominator_P)
        growth_P = np.full_like(x_P, growth)
        return cls(Family.URN, np.stack((x_P, y_P, success_P, failure_P, rest_P, growth_P)), _NO_TABLE, budget_min)

    @classmethod
    def table(
        cls, weight_P: NDArray[np.float64], row_P: NDArray[np.int64], table_TN: NDArray[np.float64], budget_min: int
    ) -> "Gains":
        """Gains ``weight * table[row, B - budget_min]``: any shape, shared by prompts or of each its own.

        Args:
            weight_P: ``[P]``, finite.
            row_P: ``[P]``, the prompt's row of the table.
            table_TN: ``[T, N]``, finite; the products with the weights must not increase along a row.
            budget_min: The budget of the first column.

        Raises:
            ValueError: A row does not exist, a gain is not finite, or larger than the one before it: greedy would not
                be exact.
        """
        gain_TN = np.ascontiguousarray(table_TN, np.float64)
        weight_P, row_P = np.asarray(weight_P, np.float64), np.asarray(row_P)
        if row_P.dtype.kind not in "iu" or row_P.shape != weight_P.shape or row_P.ndim != 1:
            raise ValueError(
                "gains must have a weight and a row (an integer) per prompt, "
                f"got shapes {weight_P.shape} and {row_P.shape}, dtype {row_P.dtype}"
            )
        if gain_TN.ndim != 2 or not 0 <= row_P.min() <= row_P.max() < len(gain_TN):
            raise ValueError(
                f"gains must come from rows of a table, got rows {row_P.min()} .. {row_P.max()} of {gain_TN.shape}"
            )
        if not np.isfinite(weight_P).all() or not np.isfinite(gain_TN).all():
            raise ValueError("gains must be finite, got NaN or infinity among weights or table")
        step_TN = np.diff(gain_TN, axis=1)
        rises_T, falls_T = np.asarray((step_TN > 0).any(axis=1)), np.asarray((step_TN < 0).any(axis=1))
        wrong_P: NDArray[np.bool_] = (rises_T[row_P] & (weight_P > 0)) | (falls_T[row_P] & (weight_P < 0))
        if wrong_P.any():
            prompt = int(np.argmax(wrong_P))
            gain_N = weight_P[prompt] * gain_TN[row_P[prompt]]
            column = int(np.argmax(np.diff(gain_N) > 0))
            budget = budget_min + column
            raise ValueError(
                "gains must not increase with the budget, or greedy is not exact, got "
                f"{gain_N[column]:.6g} for {budget} -> {budget + 1} and {gain_N[column + 1]:.6g} for "
                f"{budget + 1} -> {budget + 2} at prompt {prompt}"
            )
        return cls(Family.TABLE, np.stack((weight_P, row_P.astype(np.float64))), gain_TN, budget_min)

    def scaled(self, factor_P: NDArray[np.float64]) -> "Gains":
        """The gains times ``factor_P`` (> 0)."""
        param_KP = self.param_KP.copy()
        if self.family == Family.GEOMETRIC:
            param_KP[0] += np.log(factor_P)
        else:
            param_KP[: 2 if self.family == Family.URN else 1] *= factor_P
        return Gains(self.family, param_KP, self.table_TN, self.budget_min)

    def price(self, gain: float) -> float:
        """A gain as the solvers report it, in linear units of the rule's value."""
        return exp(gain) if self.family == Family.GEOMETRIC else gain

    def take(self, prompts: NDArray[np.int64]) -> "Gains":
        """The gains of some prompts, in the order of their indices."""
        return Gains(self.family, np.ascontiguousarray(self.param_KP[:, prompts]), self.table_TN, self.budget_min)


_NO_TABLE = np.zeros((1, 1))
_LARGEST_FLOAT, _SMALLEST_FLOAT = float(np.finfo(np.float64).max), 5e-324


def _check_range(name: str, values_P: NDArray[np.float64], rule: str, low: float, high: float) -> None:
    """Raise ValueError unless all values lie in (low, high); two passes, and NaN fails both comparisons."""
    smallest, largest = float(values_P.min()), float(values_P.max())
    if not (low < smallest and largest < high):
        raise ValueError(f"{name} must be {rule}, got values in {smallest:g} .. {largest:g}")
