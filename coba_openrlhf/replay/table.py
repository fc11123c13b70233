"""The table that a replay prints."""

import math
from collections.abc import Sequence

from .replayed import Replayed

# Heading, column, format, and which end is best: +1 the highest, -1 the lowest, 0 neither.
LAYOUT = (
    ("signal", "signal", "{:.1%}", 1),
    ("extrapol.", "extrapolated", "{:.1%}", 0),
    ("gradient", "gradient_rollouts", "{:,.1f}", 1),
    ("share", "gradient_share", "{:.1%}", 1),
    ("entropy", "entropy", "{:.3f}", 0),
    ("largest", "largest", "{:.1f}", 0),
    ("brier", "brier", "{:.4f}", -1),
    ("seen", "brier_seen", "{:.4f}", -1),
    ("prior", "brier_prior", "{:.4f}", 0),
    ("calibr.", "calibration_error", "{:.4f}", -1),
    ("tokens", "tokens", "{:,.0f}", -1),
    ("per grad.", "tokens_per_gradient_rollout", "{:,.1f}", -1),
)
LEGEND = """\
signal     expected share of prompts whose rollouts have both outcomes, by the outcomes of the log
extrapol.  share of prompts whose signal is not counted but estimated: without one in the log, and a larger budget now
gradient   expected rollouts in such groups; share: of all rollouts of the step
entropy    of the budgets, 1 = uniform; largest: largest budget of a step
brier      squared error of the estimates; seen: only prompts with a history, to compare with prior, the plain mean
calibr.    mean distance of estimated and realised pass rate
tokens     expected tokens of a step's responses; per grad.: for each gradient-carrying rollout"""
LIMITS = """\
Every rule learns from the outcomes of the log. The policy that a rule would have trained, and the outcomes of its own
numbers of rollouts, are NOT known: the table compares decisions on the same policy, not results of training."""


def render_table(rules: Sequence[Replayed]) -> str:
    """One row per rule, aligned; ``*`` marks the best value of a column."""
    means = [rule.means() for rule in rules]
    columns = [["rule", *(rule.label for rule in rules)]]
    for heading, name, form, best in LAYOUT:
        values = [mean[name] for mean in means]
        marks = _marks(values, best)
        cells = [
            ("-" if math.isnan(value) else form.format(value)) + mark for value, mark in zip(values, marks, strict=True)
        ]
        columns.append([f"{heading} ", *cells])
    widths = [max(map(len, column)) for column in columns]
    lines = []
    for row in zip(*columns, strict=True):
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        lines.append(" ".join(cells).rstrip())
    return "\n".join(lines)


def _marks(values: list[float], best: int) -> list[str]:
    """``*`` for the best values; for none where all are equally good."""
    known = [value for value in values if not math.isnan(value)]
    if not best or not known:
        return [" "] * len(values)
    target = max(known) if best > 0 else min(known)

    def is_best(value: float) -> bool:
        # Sums in another order differ in the last bits.
        return math.isclose(value, target, rel_tol=1e-9)

    if all(map(is_best, known)):
        return [" "] * len(values)
    return ["*" if is_best(value) else " " for value in values]
