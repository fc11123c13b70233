"""The pictures of a replay."""

# Legend: S = steps, V = visits (one prompt in one step), B = bins of the pass rate.

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib
import numpy as np
from numpy.typing import NDArray

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter

from .log import Log
from .replayed import AS_RUN, Replayed
from .rule import Family

NUM_BINS = 10
# More lines than this cannot be told apart.
MOST_RULES = 8
# Okabe and Ito's colours, told apart with any colour vision; shapes and dashes say the same without colours.
COLOURS = ("black", "#999999", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
DASHES = ("-", "--", "-", "-.", "-", "--", "-.", ":")
MARKERS = "osD^vP*X"
OBJECTIVES = (("signal", "prompts with signal"), ("gradient_share", "gradient-carrying rollouts"))


def choose_rules(rules: Sequence[Replayed]) -> list[Replayed]:
    """The rules of a picture: the first two, which are references, and those with the most signal."""
    rest = sorted(rules[2:], key=lambda rule: -rule.means()["signal"])[: MOST_RULES - 2]
    return [*rules[:2], *(rule for rule in rules[2:] if rule in rest)]


def plot_signal(rules: Sequence[Replayed], log: Log, file: Path) -> None:
    """Share of prompts with signal over the steps, one line per rule, smoothed where there are many steps."""
    figure, ax = plt.subplots(figsize=(8, 5), layout="constrained")
    step_S = np.array([step.step for step in log.steps])
    width = max(len(step_S) // 25, 1)
    shown = choose_rules(rules)
    for rule, colour, dashes in zip(shown, COLOURS, DASHES, strict=False):
        marker = "." if len(step_S) < 3 else None
        ax.plot(step_S, _smooth(rule.columns["signal"], width), dashes, color=colour, marker=marker, label=rule.label)
    over = f"\nmean of {width} steps" if width > 1 else ""
    ax.set(xlabel="training step", ylabel=f"expected prompts with signal{over}", ylim=(0, None))
    ax.yaxis.set_major_formatter(PercentFormatter(1))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    _finish(figure, [ax], file, len(rules) - len(shown))


def plot_budgets(rules: Sequence[Replayed], file: Path) -> None:
    """Mean budget in equal bins of the estimated pass rate; only prompts about which something was known."""
    figure, ax = plt.subplots(figsize=(8, 5), layout="constrained")
    shown = choose_rules(rules)
    for rule, colour, dashes, marker in zip(shown, COLOURS, DASHES, MARKERS, strict=False):
        seen_V = np.concatenate(rule.seen)
        budget_V, pass_rate_V = np.concatenate(rule.budgets)[seen_V], np.concatenate(rule.pass_rates)[seen_V]
        middle_B, budget_B = mean_budgets(pass_rate_V, budget_V)
        ax.plot(middle_B, budget_B, dashes, color=colour, marker=marker, ms=4, label=rule.label)
    if not any(seen_P.any() for rule in shown for seen_P in rule.seen):
        ax.text(0.5, 0.6, "no prompt has been visited twice yet", transform=ax.transAxes, ha="center")
    ax.set_yscale("log", base=2)
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.set(xlabel="estimated pass rate before the step", ylabel="mean rollouts of a prompt", xlim=(0, 1))
    _finish(figure, [ax], file, len(rules) - len(shown))


def mean_budgets(
    pass_rate_V: NDArray[np.float64], budget_V: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Middles of the bins and mean budgets in them, both ``[B]`` without empty bins."""
    bin_V = np.minimum((pass_rate_V * NUM_BINS).astype(np.int64), NUM_BINS - 1)
    count_B = np.bincount(bin_V, minlength=NUM_BINS)
    rows = np.flatnonzero(count_B)
    budget_B = np.bincount(bin_V, weights=budget_V, minlength=NUM_BINS)[rows] / count_B[rows]
    return (rows + 0.5) / NUM_BINS, budget_B


def plot_grid(family: Family, replayed: Mapping[str, Replayed], file: Path) -> None:
    """The objectives over a grid of one option (lines) or two (heat maps).

    Args:
        family: Rules of the grid.
        replayed: Label -> what the rule did; with that of the run.
        file: Where to.
    """
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
    means = [replayed[rule.label].means() for rule in family.rules]
    reference = replayed[AS_RUN].means()
    for ax, (name, title) in zip(axes, OBJECTIVES, strict=True):
        values = np.array([mean[name] for mean in means])
        if len(family.grid) == 1:
            _draw_line(ax, family, values, reference[name])
        else:
            _draw_heat_map(ax, family, values)
        ax.set_title(f"{title} (as run: {reference[name]:.1%})", fontsize="medium")
    figure.suptitle(family.label)
    if len(family.grid) == 1:
        axes[0].legend(framealpha=0.9)
        for ax in axes:
            ax.grid(alpha=0.3)
            ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=150)
    plt.close(figure)


def _draw_line(ax: Axes, family: Family, values: NDArray[np.float64], reference: float) -> None:
    (option, texts), *_ = family.grid.items()
    position = np.array(_positions(texts))
    order = np.argsort(position)
    ax.plot(position[order], values[order], "o-", color=COLOURS[2], label="rules of the grid")
    ax.axhline(reference, color="black", linestyle=":", label=AS_RUN)
    if not _are_numbers(texts):
        ax.set_xticks(range(len(texts)), texts)
    ax.set_xlabel(option)
    ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=1))


def _draw_heat_map(ax: Axes, family: Family, values: NDArray[np.float64]) -> None:
    (row_option, row_texts), (column_option, column_texts) = family.grid.items()
    matrix = values.reshape(len(row_texts), len(column_texts))
    image = ax.imshow(matrix, cmap="cividis", aspect="auto", origin="lower")
    ax.figure.colorbar(image, ax=ax, format=PercentFormatter(1, decimals=1))
    ax.set_yticks(range(len(row_texts)), row_texts)
    ax.set_xticks(range(len(column_texts)), column_texts)
    ax.set(ylabel=row_option, xlabel=column_option)
    if matrix.size <= 100:
        middle = (matrix.min() + matrix.max()) / 2
        for (row, column), value in np.ndenumerate(matrix):
            colour = "black" if value > middle else "white"
            ax.text(column, row, f"{value:.1%}", ha="center", va="center", color=colour, fontsize="small")


def _are_numbers(texts: list[str]) -> bool:
    try:
        return all(np.isfinite(float(text)) for text in texts)
    except ValueError:
        return False


def _positions(texts: list[str]) -> list[float]:
    return [float(text) for text in texts] if _are_numbers(texts) else list(range(len(texts)))


def _smooth(value_S: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    """Mean over ``width`` steps around each, ``[S]``; fewer at the ends."""
    kernel = np.ones(width)
    return np.convolve(value_S, kernel, "same") / np.convolve(np.ones(len(value_S)), kernel, "same")


def _finish(figure: Figure, axes: list[Axes], file: Path, num_left_out: int) -> None:
    for ax in axes:
        ax.grid(alpha=0.3)
        ax.spines[["top", "right"]].set_visible(False)
        title = f"{num_left_out} rules with less signal left out" if num_left_out else None
        ax.legend(framealpha=0.9, fontsize="small", title=title, title_fontsize="small", alignment="left")
    figure.savefig(file, dpi=150)
    plt.close(figure)
