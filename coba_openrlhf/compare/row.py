"""One line of a comparison."""

from dataclasses import dataclass

from coba_openrlhf.evaluation.intervals import Interval


@dataclass(frozen=True)
class Row:
    """A group against the first one.

    Attributes:
        benchmark: Data source.
        metric: ``avg@k``, ``pass@8``, ...
        axis: What is equal: ``step``, ``rollouts``, ``tokens``; empty for evaluations.
        at: Value of the axis; NaN for evaluations.
        base: Name of the first group.
        other: Name of the other.
        base_value: Mean of the first group.
        other_value: Mean of the other.
        difference: ``other - base`` with its interval; its ends are NaN where nothing tells the spread.
        over: What the interval is over: ``problems``, ``seeds``, or empty.
        count: How many of them.
    """

    benchmark: str
    metric: str
    axis: str
    at: float
    base: str
    other: str
    base_value: float
    other_value: float
    difference: Interval
    over: str
    count: int
