"""The pictures of a comparison."""

# Legend: E = points of a curve, S = runs of a group.

from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.ticker import MaxNLocator

from .curves import AXES, Curve
from .row import Row

# Okabe and Ito's colours, told apart with any colour vision; dashes say the same without colours.
COLOURS = ("black", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#999999")
DASHES = ("-", "--", "-.", ":", "-", "--", "-.", ":")
LABELS = {"step": "training step", "rollouts": "rollouts of training", "tokens": "generated tokens of training"}


def plot_curves(curves: dict[str, list[Curve]], keys: Sequence[tuple[str, str]], folder: Path) -> list[str]:
    """``curves-<axis>.png``: one panel per benchmark and metric; a band from the lowest to the highest run.

    Returns:
        Names of the files.
    """
    files = []
    for axis in AXES:
        figure, panels = plt.subplots(
            1, len(keys), figsize=(5.5 * len(keys), 4), layout="constrained", squeeze=False, sharex=True
        )
        for ax, key in zip(panels[0], keys, strict=True):
            for number, (name, group) in enumerate(curves.items()):
                x_E, value_SE = points(group, key, axis)
                colour = COLOURS[number % len(COLOURS)]
                label = name if len(group) == 1 else f"{name}: mean of {len(group)}, band lowest to highest"
                ax.plot(x_E, value_SE.mean(axis=0), DASHES[number % len(DASHES)], color=colour, marker=".", label=label)
                if len(group) > 1:
                    ax.fill_between(x_E, value_SE.min(axis=0), value_SE.max(axis=0), color=colour, alpha=0.15, lw=0)
            ax.set(xlabel=LABELS[axis], ylabel=f"{key[0]}, {key[1]}")
            ax.xaxis.set_major_locator(MaxNLocator(6, integer=True))
            ax.grid(alpha=0.3)
            ax.spines[["top", "right"]].set_visible(False)
        panels[0][0].legend(framealpha=0.9, fontsize="small")
        files.append(f"curves-{axis}.png")
        figure.savefig(folder / files[-1], dpi=150)
        plt.close(figure)
    return files


def points(group: Sequence[Curve], key: tuple[str, str], axis: str) -> tuple[np.ndarray, np.ndarray]:
    """Where a group's curve is drawn, ``[E]``, and the value of every run there, ``[S, E]``.

    All runs are drawn as far as the shortest one goes, so that the mean is one of the same runs everywhere; nothing is
    drawn where one ends before another begins.
    """
    end = min(curve.end(key, axis) for curve in group)
    start = max(curve.start(key, axis) for curve in group)
    x_E = np.unique(np.concatenate([curve.axes[axis] for curve in group]))
    x_E = x_E[(x_E >= start) & (x_E <= end)]
    return x_E, np.array([[curve.at(key, axis, float(x)) for x in x_E] for curve in group])


def plot_differences(rows: Sequence[Row], folder: Path) -> list[str]:
    """``differences.png``: every difference with its interval, from top to bottom as in the table."""
    figure, ax = plt.subplots(figsize=(8, 1.5 + 0.35 * len(rows)), layout="constrained")
    for place, row in enumerate(rows):
        d = row.difference
        colour = COLOURS[1] if row.over == "problems" else COLOURS[2]
        if np.isfinite(d.low):
            ax.plot([d.low, d.high], [place, place], "-" if row.over == "problems" else "--", color=colour)
        ax.plot(d.value, place, "o", color=colour)
    names = [f"{r.benchmark} {r.metric}\n{r.other} - {r.base}, {r.over or 'one run each'}" for r in rows]
    ax.set_yticks(range(len(rows)), names, fontsize="x-small")
    ax.invert_yaxis()
    ax.axvline(0, color="black", lw=0.8)
    ax.set_xlabel("difference, with 95% interval")
    ax.grid(alpha=0.3, axis="x")
    ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(folder / "differences.png", dpi=150)
    plt.close(figure)
    return ["differences.png"]
