"""Intervals of a mean: over problems by the bootstrap, over a few seeds by Student's t."""

# Legend: N = problems (or pairs), B = resamples, S = seeds, G = points of a grid.

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

CONFIDENCE = 0.95
RESAMPLES = 10_000
# Counts drawn at a time: bounds memory, and never the result.
_CELLS = 4_000_000


@dataclass(frozen=True)
class Interval:
    """A mean and the ends of its interval; the ends are NaN where one value says nothing about the spread."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"

    def scaled(self, factor: float) -> "Interval":
        """All three times ``factor`` > 0."""
        return Interval(self.value * factor, self.low * factor, self.high * factor)


def bootstrap_mean(
    value_N: ArrayLike, *, seed: int = 0, confidence: float = CONFIDENCE, resamples: int = RESAMPLES
) -> Interval:
    """Mean of ``value_N`` with a percentile bootstrap interval: problems are drawn with replacement.

    The problems are the sample: the interval says how the mean would differ on other problems of the same kind,
    answered by as many responses. Responses to one problem are not independent and are never resampled apart.

    Args:
        value_N: One finite value per problem, for example its share of right responses.
        seed: Of the resampling.
        confidence: In (0, 1).
        resamples: Bootstrap resamples, >= 1.

    Raises:
        ValueError: No value, or one that is not finite.
    """
    values: NDArray[np.float64] = np.asarray(value_N, np.float64)
    if values.ndim != 1 or not len(values):
        raise ValueError(f"an interval needs one value per problem, got an array of shape {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError("an interval needs finite values, got NaN or infinity")
    mean = float(values.mean())
    if len(values) == 1:
        return Interval(mean, float("nan"), float("nan"))
    mean_B = _resampled_means(values, np.random.default_rng(seed), resamples)
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(mean_B, [tail, 1.0 - tail])
    return Interval(mean, float(low), float(high))


def t_mean(value_S: ArrayLike, *, confidence: float = CONFIDENCE) -> Interval:
    """Mean of a few values, such as differences of seeds, with Student's interval.

    The bootstrap of two or three values is far too narrow; this one supposes that they are about normal.

    Raises:
        ValueError: No value, or one that is not finite.
    """
    values: NDArray[np.float64] = np.asarray(value_S, np.float64)
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        raise ValueError(f"an interval needs finite values, got {values}")
    mean = float(values.mean())
    if len(values) == 1:
        return Interval(mean, float("nan"), float("nan"))
    half = t_quantile((1.0 + confidence) / 2.0, len(values) - 1) * float(values.std(ddof=1)) / math.sqrt(len(values))
    return Interval(mean, mean - half, mean + half)


def t_quantile(probability: float, degrees: int) -> float:
    """Quantile above the middle of Student's distribution, by integration on a grid; exact to about 1e-6.

    The distribution is the integral of ``cos(u) ** (degrees - 1)`` over the angle ``u = atan(t / sqrt(degrees))``.
    """
    angle_G = np.linspace(0.0, math.pi / 2, 200_001)
    density_G = np.cos(angle_G) ** (degrees - 1)
    area_G = np.concatenate(([0.0], np.cumsum((density_G[1:] + density_G[:-1]) / 2)))
    angle = np.interp((2 * probability - 1) * area_G[-1], area_G, angle_G)
    return float(math.sqrt(degrees) * math.tan(angle))


def _resampled_means(value_N: NDArray[np.float64], rng: np.random.Generator, resamples: int) -> NDArray[np.float64]:
    n = len(value_N)
    step = max(_CELLS // n, 1)
    parts = [
        value_N[rng.integers(n, size=(min(step, resamples - at), n))].mean(axis=1) for at in range(0, resamples, step)
    ]
    return np.concatenate(parts)
