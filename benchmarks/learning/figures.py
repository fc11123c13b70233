"""Learning curves with bands over seeds, and all differences of a table with their intervals."""

from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib
import numpy as np
from numpy.typing import NDArray

from coba_openrlhf.evaluation.intervals import t_mean

from .report import Outcome, differences

matplotlib.use("Agg")
from matplotlib import pyplot as plt

COLUMNS = 3
# Okabe and Ito's colours, told apart with any colour vision.
COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#F0E442")


def plot_curves(table: dict[str, Sequence[Outcome]], rules: Sequence[str], path: Path) -> None:
    """One panel per regime: mean accuracy over rollouts, the band is the 95 % interval of the mean over seeds."""
    _plot(table, rules, path, "exact accuracy", lambda outcome: outcome.accuracy_SE)


def plot_solved(table: dict[str, Sequence[Outcome]], rules: Sequence[str], path: Path) -> None:
    """The same for test prompts that the base model had solved: what falls here is forgotten."""
    _plot(table, rules, path, "accuracy on solved prompts", lambda outcome: outcome.solved_SE)


def _plot(
    table: dict[str, Sequence[Outcome]],
    rules: Sequence[str],
    path: Path,
    label: str,
    values: Callable[[Outcome], NDArray[np.float64]],
) -> None:
    height = -(-len(table) // COLUMNS)
    figure, panels = plt.subplots(height, COLUMNS, figsize=(12, 3.4 * height), layout="constrained", squeeze=False)
    for ax in panels.flat[len(table) :]:
        ax.axis("off")
    for ax, (name, outcomes) in zip(panels.flat, table.items(), strict=False):
        for outcome in outcomes:
            value_SE = values(outcome)
            value_SE = value_SE[np.isfinite(value_SE).all(axis=1)]
            if outcome.cell.rule.name not in rules or not len(value_SE):
                continue
            colour = COLOURS[rules.index(outcome.cell.rule.name) % len(COLOURS)]
            bands = [t_mean(value_S) for value_S in value_SE.T]
            ax.plot(outcome.rollouts_E, [b.value for b in bands], color=colour, label=outcome.cell.rule.name)
            if len(value_SE) > 1:
                low, high = [b.low for b in bands], [b.high for b in bands]
                ax.fill_between(outcome.rollouts_E, low, high, color=colour, alpha=0.12, lw=0)
        ax.set(title=name, xlabel="rollouts", ylabel=label)
        ax.grid(alpha=0.3)
        ax.spines[["top", "right"]].set_visible(False)
    handles, labels = max((ax.get_legend_handles_labels() for ax in panels.flat), key=lambda drawn: len(drawn[0]))
    panels[0][0].legend(handles, labels, fontsize="x-small", framealpha=0.9)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def plot_forest(table: dict[str, Sequence[Outcome]], path: Path) -> None:
    """One panel per regime: differences to the first rule with 95 % intervals, filled where Holm's p is below 0.05."""
    count = max(len(outcomes) for outcomes in table.values()) - 1
    height = -(-len(table) // COLUMNS)
    figure, panels = plt.subplots(
        height, COLUMNS, figsize=(12, height * (1 + 0.22 * count)), layout="constrained", squeeze=False, sharey=True
    )
    for ax in panels.flat[len(table) :]:
        ax.axis("off")
    for ax, (name, outcomes) in zip(panels.flat, table.items(), strict=False):
        for place, (interval, p) in enumerate(differences(outcomes)):
            if np.isfinite(interval.low):
                ax.plot([interval.low, interval.high], [place, place], color=COLOURS[1])
            ax.plot(interval.value, place, "o", color=COLOURS[1], mfc=COLOURS[1] if p < 0.05 else "white")
        ax.set_yticks(range(count), [o.cell.rule.name for o in outcomes[1:]], fontsize="x-small")
        ax.axvline(0, color="black", lw=0.8)
        ax.set(title=name, xlabel=f"accuracy minus {outcomes[0].cell.rule.name}")
        ax.grid(alpha=0.3, axis="x")
        ax.spines[["top", "right"]].set_visible(False)
    panels[0][0].invert_yaxis()
    figure.savefig(path, dpi=110)
    plt.close(figure)
