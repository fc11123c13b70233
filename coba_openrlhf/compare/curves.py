"""Training runs against each other: their held-out curves at equal steps, rollouts and tokens."""

# Legend: E = evaluations of a run, S = runs of a group (seeds).

import json
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from coba_openrlhf.evaluation.intervals import Interval, t_mean

from .error import CompareError
from .groups import Group
from .row import Row

# Axis -> column of metrics.jsonl.
AXES = {"step": "step", "rollouts": "ledger/rollouts", "tokens": "ledger/generated_tokens"}
_METRIC = re.compile(r"eval_(.+)_pass(\d+)")
NAN = float("nan")


@dataclass(frozen=True)
class Curve:
    """The evaluations of one run.

    Attributes:
        folder: Of the run.
        axes: Axis -> ``[E]``, not decreasing.
        values: (benchmark, metric) -> ``[E]``; NaN where an evaluation has no such value.
    """

    folder: Path
    axes: dict[str, NDArray[np.float64]]
    values: dict[tuple[str, str], NDArray[np.float64]]

    def at(self, key: tuple[str, str], axis: str, x: float) -> float:
        """The metric at ``x``, from ``start`` to ``end``, on a straight line between the evaluations around it."""
        there = np.isfinite(self.values[key])
        return float(np.interp(x, self.axes[axis][there], self.values[key][there]))

    def start(self, key: tuple[str, str], axis: str) -> float:
        """The first ``x`` at which the metric is known."""
        return float(self.axes[axis][np.isfinite(self.values[key])][0])

    def end(self, key: tuple[str, str], axis: str) -> float:
        """The last ``x`` at which the metric is known."""
        return float(self.axes[axis][np.isfinite(self.values[key])][-1])


def read_curve(folder: Path) -> Curve:
    """Read the evaluations in ``metrics.jsonl``; a last line that a killed run left unfinished is skipped.

    Raises:
        CompareError: Damaged, without an evaluation, or without a ledger.
    """
    file = folder / "metrics.jsonl"
    lines = file.read_bytes().splitlines()
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            rows.append(json.loads(line))
        except ValueError as error:
            if number < len(lines):
                raise CompareError(f"{file}, line {number} is not JSON: {error}") from error
    evaluations = [row for row in rows if isinstance(row, dict) and any(_METRIC.fullmatch(name) for name in row)]
    if not evaluations:
        raise CompareError(f"{folder} has no held-out evaluation (eval.dataset); evaluate its model and compare that")
    for column in AXES.values():
        if any(row.get(column) is None for row in evaluations):
            raise CompareError(f"{file}: an evaluation has no {column}")
    names = dict.fromkeys(name for row in evaluations for name in row if _METRIC.fullmatch(name))
    return Curve(
        folder,
        {axis: np.array([row[column] for row in evaluations], np.float64) for axis, column in AXES.items()},
        {
            (match[1], "avg@k" if match[2] == "1" else f"pass@{match[2]}"): _column(evaluations, name)
            for name in names
            if (match := _METRIC.fullmatch(name))
        },
    )


def _column(rows: list[dict], name: str) -> NDArray[np.float64]:
    return np.array([NAN if row.get(name) is None else row[name] for row in rows], np.float64)


def read_curves(groups: list[Group]) -> dict[str, list[Curve]]:
    """The curves of every group."""
    return {group.name: [read_curve(folder) for folder in group.folders] for group in groups}


def common_keys(curves: dict[str, list[Curve]]) -> list[tuple[str, str]]:
    """Benchmarks and metrics that every run has.

    Raises:
        CompareError: There is none.
    """
    every = [curve for group in curves.values() for curve in group]
    common = [key for key in every[0].values if all(key in curve.values for curve in every)]
    common = [key for key in common if all(np.isfinite(curve.values[key]).any() for curve in every)]
    if not common:
        listed = "; ".join(f"{c.folder} has {', '.join(sorted({b for b, _ in c.values}))}" for c in every)
        raise CompareError(f"no benchmark is in all runs: {listed}")
    return common


def compare_curves(curves: dict[str, list[Curve]]) -> tuple[list[Row], list[str]]:
    """All groups against the first one, at the largest step, number of rollouts and of tokens that all have reached.

    Returns:
        Rows by benchmark, metric, axis and group; and notes.

    Raises:
        CompareError: No point of any axis lies between the first and the last evaluation of all runs.
    """
    every = [curve for group in curves.values() for curve in group]
    (base, base_curves), *others = curves.items()
    rows, notes = [], []
    for key in common_keys(curves):
        for axis in AXES:
            x = min(curve.end(key, axis) for curve in every)
            latest = max(every, key=lambda curve: curve.start(key, axis))
            if x < latest.start(key, axis):
                notes.append(
                    f"WARNING: {key[0]} {key[1]} at equal {axis} is left out: one run ends at {x:,.0f}, and "
                    f"{latest.folder} is evaluated from {latest.start(key, axis):,.0f} on (coba.eval.at_start)."
                )
                continue
            base_S = np.array([curve.at(key, axis, x) for curve in base_curves])
            for other, other_curves in others:
                other_S = np.array([curve.at(key, axis, x) for curve in other_curves])
                rows.append(_row(key, axis, x, base, other, base_S, other_S))
    if not rows:
        raise CompareError(" ".join(note.removeprefix("WARNING: ") for note in notes))
    if len(base_curves) == 1:
        notes.append(
            "One run per group: nothing tells how much two seeds differ, so there is no interval. For one over "
            "problems, evaluate both models (python -m coba_openrlhf.evaluate) and compare the evaluations."
        )
    elif len(base_curves) < 5:
        notes.append(f"Intervals are over {len(base_curves)} pairs of runs (Student's t): few, so they are wide.")
    return rows, notes


def _row(
    key: tuple[str, str],
    axis: str,
    x: float,
    base: str,
    other: str,
    base_S: NDArray[np.float64],
    other_S: NDArray[np.float64],
) -> Row:
    difference_S = other_S - base_S
    several = len(difference_S) > 1
    difference = t_mean(difference_S) if several else Interval(float(difference_S[0]), NAN, NAN)
    values = (float(base_S.mean()), float(other_S.mean()))
    return Row(*key, axis, x, base, other, *values, difference, "seeds" if several else "", len(difference_S))
