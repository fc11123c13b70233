"""Tables and pictures from trained cells."""

# Legend: S = seeds, E = evaluations of a run.

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coba_openrlhf.evaluation.intervals import Interval, t_mean

from .cells import Cell, read_cell
from .statistics import holm, reach, sign_flip_p
from .tables import LEARNING_RATES, Table
from .training import SHARES, Regime


@dataclass(frozen=True, eq=False)
class Outcome:
    """A rule in a regime.

    Attributes:
        cell: What was trained.
        rollouts_E: Rollouts spent at every evaluation.
        accuracy_SE: Exact accuracy of every seed there.
        solved_SE: Accuracy on the test prompts that the seed's base model had solved; NaN where it had solved none.
        columns: Means over seeds and steps, by name.
    """

    cell: Cell
    rollouts_E: NDArray[np.float64]
    accuracy_SE: NDArray[np.float64]
    solved_SE: NDArray[np.float64]
    columns: dict[str, float]


def read_outcome(cell: Cell, folder: Path) -> Outcome:
    """Read a trained cell."""
    rows = read_cell(cell, folder)
    steps = sorted({row["step"] for row in rows})

    def column(name: str) -> NDArray[np.float64]:
        value = {(row["seed"], row["step"]): row[name] for row in rows}
        return np.array([[value[seed, step] for step in steps] for seed in cell.seeds], np.float64)

    columns = {name: float(column(name)[:, 1:].mean()) for name in SHARES}
    solved_SE = column("accuracy_solved")
    columns |= {
        "solved": float(np.nanmean(solved_SE[:, -1])) if np.isfinite(solved_SE[:, -1]).any() else np.nan,
        "tokens": float(column("tokens")[:, -1].mean()),
        "seconds": float(column("seconds")[:, -1].mean()),
    }
    return Outcome(cell, column("rollouts")[0], column("accuracy"), solved_SE, columns)


def choose_learning_rates(table: Table, seeds: tuple[int, ...], folder: Path) -> dict[tuple[str, str], float]:
    """The rate with the best mean final accuracy on the tuning seeds, by regime and rule."""
    chosen = {}
    for regime in table.regimes:
        for rule in table.rules:
            final = {
                rate: read_outcome(Cell(regime, rule, rate, seeds), folder).accuracy_SE[:, -1].mean()
                for rate in LEARNING_RATES
            }
            chosen[regime.name, rule.name] = max(final, key=final.__getitem__)
    return chosen


def differences(outcomes: Sequence[Outcome]) -> list[tuple[Interval, float]]:
    """Final accuracy minus the first rule's, paired over seeds, with Holm's p-value; for all rules but the first."""
    base_S = outcomes[0].accuracy_SE[:, -1]
    paired = [outcome.accuracy_SE[:, -1] - base_S for outcome in outcomes[1:]]
    adjusted = holm([sign_flip_p(difference_S) for difference_S in paired])
    return [(t_mean(difference_S), p) for difference_S, p in zip(paired, adjusted, strict=True)]


def render(regime: Regime, outcomes: Sequence[Outcome]) -> str:
    """Markdown of one regime."""
    lines = [
        "| rule | lr | accuracy | difference to uniform | p (Holm) | rollouts to uniform's end | accuracy on solved "
        "| prompts with signal | rollouts with signal | largest group | tokens | core s |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for outcome, compared in zip(outcomes, [None, *differences(outcomes)], strict=True):
        mean_E = outcome.accuracy_SE.mean(axis=0)
        cells: list[Any] = [
            outcome.cell.rule.name,
            f"{outcome.cell.learning_rate:g}",
            f"{mean_E[-1]:.3f}",
            "" if compared is None else _difference(*compared),
            "" if compared is None else f"{compared[1]:.3f}",
            _rollouts_needed(outcome, outcomes[0]),
            f"{outcome.columns['solved']:.3f}",
            f"{outcome.columns['signal_prompts']:.2f}",
            f"{outcome.columns['signal_rollouts']:.2f}",
            f"{outcome.columns['largest_group']:.0f}",
            f"{outcome.columns['tokens']:,.0f}",
            f"{outcome.columns['seconds']:.1f}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def render_summary(outcomes: Mapping[str, Sequence[Outcome]]) -> str:
    """Markdown of all regimes: differences of final accuracy to the first rule, clear ones in bold."""
    bases = [row[0] for row in outcomes.values()]
    accuracies = [f"{base.accuracy_SE[:, -1].mean():.3f}" for base in bases]
    shares = [f"{base.columns['signal_prompts']:.2f}" for base in bases]
    compared = [differences(row) for row in outcomes.values()]
    rules = [outcome.cell.rule.name for outcome in next(iter(outcomes.values()))]
    rows = [
        ["rule", *outcomes],
        ["---"] * (1 + len(outcomes)),
        [f"{rules[0]}: accuracy", *accuracies],
        [f"{rules[0]}: prompts with signal", *shares],
        *([name, *(_difference(*row[index]) for row in compared)] for index, name in enumerate(rules[1:])),
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def render_rollouts_needed(outcomes: Mapping[str, Sequence[Outcome]]) -> str:
    """Markdown of the share of the first rule's rollouts after which a mean curve reaches the first rule's end."""
    columns = [[_rollouts_needed(outcome, row[0]) for outcome in row] for row in outcomes.values()]
    rules = [outcome.cell.rule.name for outcome in next(iter(outcomes.values()))]
    rows = [["rule", *outcomes], ["---"] * (1 + len(outcomes)), *map(list, zip(rules, *columns, strict=True))]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def render_learning_rates(table: Table, seeds: tuple[int, ...], folder: Path) -> str:
    """Markdown of the runs that the learning rates were chosen by: mean final accuracy at each rate."""
    rows = [["rule", *(regime.name for regime in table.regimes)], ["---"] * (1 + len(table.regimes))]
    for rule in table.rules:
        cells = [[Cell(regime, rule, rate, seeds) for rate in LEARNING_RATES] for regime in table.regimes]
        means = [[read_outcome(cell, folder).accuracy_SE[:, -1].mean() for cell in row] for row in cells]
        rows.append([rule.name, *(" / ".join(f"{mean:.3f}" for mean in row) for row in means)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _rollouts_needed(outcome: Outcome, base: Outcome) -> str:
    target = float(base.accuracy_SE[:, -1].mean())
    needed = reach(outcome.rollouts_E, outcome.accuracy_SE.mean(axis=0), target) / float(base.rollouts_E[-1])
    return f"{needed:.2f}" if np.isfinite(needed) else "never"


def _difference(interval: Interval, p: float) -> str:
    text = f"{interval.value:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]"
    return f"**{text}**" if p < 0.05 else text
