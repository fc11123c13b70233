"""Plots and a summary of a run folder, also of a run that is still going on or was killed.

    python -m coba_openrlhf.report runs/20260101-120000

Writes ``learning_curve.png``, ``budgets.png`` and ``summary.json`` to ``<run>/report``. Needs numpy, pyarrow and
matplotlib, none of the training stack.
"""

# Legend: S = training steps, V = visits (one prompt in one step), B = bins of the pass rate.

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import numpy as np
import pyarrow.dataset
from numpy.typing import NDArray

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

NUM_BINS = 10
# Okabe and Ito's colours, told apart with any colour vision.
BLUE, ORANGE, GREEN, VERMILLION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
HELD_OUT_STYLES = [("o", VERMILLION), ("s", "#CC79A7"), ("^", "#56B4E9"), ("D", "#F0E442"), ("v", "white")]


class ReportError(ValueError):
    """A folder that no report can be made of."""


@dataclass(frozen=True)
class RunData:
    """What a run has logged.

    Attributes:
        steps: One dictionary of metrics per training step, by step.
        evaluations: One per held-out evaluation, by step.
        visits: Columns ``step``, ``prompt_id``, ``pass_rate``, ``budget``, ..., each ``[V]``, by step.
    """

    steps: list[dict[str, float | None]]
    evaluations: list[dict[str, float | None]]
    visits: dict[str, NDArray]

    def column(self, name: str) -> NDArray[np.float64]:
        """A metric per training step, ``[S]``; NaN where it is missing."""
        return np.array([np.nan if row.get(name) is None else row[name] for row in self.steps], np.float64)


def read_run(run: Path) -> RunData:
    """Read ``metrics.jsonl`` and ``allocations.parquet/``.

    Raises:
        ReportError: Not a run folder, damaged, or without a finished step.
    """
    metrics, allocations = run / "metrics.jsonl", run / "allocations.parquet"
    if not metrics.is_file():
        raise ReportError(f"{run} is not the folder of a run: it has no metrics.jsonl")
    rows = _read_lines(metrics)
    steps = [row for row in rows if "timing/step_total" in row]
    # A step's metrics are written just before its allocations.
    if not steps or not any(allocations.glob("step-*.parquet")):
        raise ReportError(f"{run} has no finished training step yet")
    table = _read_allocations(allocations)
    visits = {name: table[name].to_numpy() for name in table.column_names}
    order = np.argsort(visits["step"], kind="stable")
    evaluations = [row for row in rows if any(name.startswith("eval_") for name in row)]
    return RunData(steps, evaluations, {name: values[order] for name, values in visits.items()})


def _read_allocations(folder: Path) -> pyarrow.Table:
    """All step files as one table, without holes in the columns that a report uses."""
    try:
        table = pyarrow.dataset.dataset(folder, format="parquet").to_table()
    except (pyarrow.ArrowException, OSError) as error:  # names the file
        raise ReportError(f"{folder} has a damaged step file: {error}") from error
    for name in ("step", "prompt_id", "pass_rate", "budget"):
        if name not in table.column_names or table[name].null_count:
            raise ReportError(f"{folder}: every step file must have the column {name!r} without gaps")
    return table


def _read_lines(file: Path) -> list[dict[str, float | None]]:
    """Rows of a JSON-lines file; a last line that a killed run left unfinished is skipped."""
    lines = file.read_bytes().splitlines()
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
        except ValueError as error:  # not JSON, or not even text
            if number < len(lines):
                raise ReportError(f"{file}, line {number} is not JSON: {error}") from error
            break
        if not isinstance(row, dict):
            raise ReportError(f"{file}, line {number} must hold a step's metrics, got {type(row).__name__}")
        rows.append(row)
    return rows


def find_revisits(visits: dict[str, NDArray]) -> NDArray[np.bool_]:
    """Which visits, ``[V]``, met a prompt with history: only those have an estimate of their own."""
    _, first_V = np.unique(visits["prompt_id"].astype(str), return_index=True)
    revisit_V = np.ones(len(visits["step"]), np.bool_)
    revisit_V[first_V] = False
    return revisit_V


def mean_per_bin(
    pass_rate_V: NDArray[np.float64], budget_V: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean pass rate and mean budget in equal bins of the pass rate, both ``[B]``; NaN in empty bins."""
    bin_V = np.minimum((pass_rate_V * NUM_BINS).astype(np.int64), NUM_BINS - 1)
    count_B = np.bincount(bin_V, minlength=NUM_BINS).astype(np.float64)
    count_B[count_B == 0] = np.nan
    sums = (np.bincount(bin_V, weights=values, minlength=NUM_BINS) for values in (pass_rate_V, budget_V))
    pass_rate_B, budget_B = (sum_B / count_B for sum_B in sums)
    return pass_rate_B, budget_B


def held_out_scores(data: RunData) -> dict[str, list[tuple[int, float]]]:
    """``(step, score)`` per held-out set; the score is avg@k, which OpenRLHF calls ``pass1``."""
    scores: dict[str, list[tuple[int, float]]] = {}
    for row in data.evaluations:
        for name, value in row.items():
            if name.startswith("eval_") and name.endswith("_pass1") and value is not None:
                source = name.removeprefix("eval_").removesuffix("_pass1")
                scores.setdefault(source, []).append((int(row["step"]), value))  # type: ignore[arg-type]
    return scores


def summarise(data: RunData) -> dict[str, object]:
    """Key numbers of a run, JSON-able; see ``docs/metrics.md``."""
    budget_V = data.visits["budget"]
    _, index_V = np.unique(data.visits["step"], return_inverse=True)
    sum_S, prompts_S = np.bincount(index_V, weights=budget_V).astype(np.int64), np.bincount(index_V)
    # Nothing runs beside the first step's allocation, so it says nothing about the overlap.
    share_S = (data.column("coba/exposed_seconds") / data.column("timing/step_total"))[1:]
    share_S = share_S[np.isfinite(share_S)]
    return {
        "steps": len(data.steps),
        "held_out": {
            source: dict(zip(("first_step", "first", "last_step", "last"), points[0] + points[-1], strict=True))
            for source, points in held_out_scores(data).items()
        },
        "budgets": {
            "sums": sorted(set(sum_S.tolist())),
            # Short last batches have a smaller sum but the same mean.
            "mean_is_constant": bool((sum_S * prompts_S[0] == sum_S[0] * prompts_S).all()),
            "min": int(budget_V.min()),
            "mean": float(budget_V.mean()),
            "max": int(budget_V.max()),
        },
        "exposed_share": {"median": float(np.median(share_S)), "max": float(share_S.max())} if share_S.size else None,
        "ledger": {k.removeprefix("ledger/"): v for k, v in data.steps[-1].items() if k.startswith("ledger/")},
    }


def plot_learning_curve(data: RunData, file: Path) -> None:
    """Reward and held-out accuracy above, share of prompts with signal below, over training steps."""
    figure, (top, bottom) = plt.subplots(2, 1, figsize=(8, 6), sharex=True, layout="constrained")
    step_S = data.column("step")
    marker = "." if len(step_S) < 3 else None
    for style, colour, value_S, label in (
        ("-", BLUE, data.column("rollout/reward_mean"), "training, mean over rollouts"),
        ("--", ORANGE, 1 - data.column("coba/failure_rate"), "training, mean over prompts' pass rates"),
    ):
        top.plot(step_S, value_S, style, color=colour, marker=marker, label=label)
    for i, (source, points) in enumerate(held_out_scores(data).items()):
        shape, colour = HELD_OUT_STYLES[i % len(HELD_OUT_STYLES)]
        steps, scores = zip(*points, strict=True)
        top.plot(steps, scores, shape, color=colour, ms=8, mec="black", label=f"held-out: {source}", zorder=3)
        for step, score in {points[0], points[-1]}:
            top.annotate(f"{score:.3f}", (step, score), xytext=(0, 8), textcoords="offset points", ha="center")
    low, high = top.get_ylim()
    top.set(ylabel="reward, accuracy", ylim=(min(-0.02, low), max(1.1, high)))
    top.legend(loc="lower right", framealpha=0.9)
    bottom.plot(step_S, 100 * data.column("coba/effective_group_rate"), color=GREEN, marker=marker)
    bottom.set(ylabel="prompts with signal [%]\n(rollouts with both outcomes)", xlabel="training step", ylim=(-2, 102))
    bottom.xaxis.set_major_locator(MaxNLocator(integer=True))
    _save(figure, [top, bottom], file)


def plot_budgets(data: RunData, file: Path) -> None:
    """Budget over estimated pass rate: one point per visit of a prompt that has history, and means of bins."""
    figure, ax = plt.subplots(figsize=(8, 5), layout="constrained")
    revisit_V = find_revisits(data.visits)
    pass_rate_V, budget_V, step_V = (data.visits[name][revisit_V] for name in ("pass_rate", "budget", "step"))
    if revisit_V.any():
        # Many visits share a point: a little seeded noise, far less than the distance of two budgets, shows them.
        x_V, y_V = np.random.default_rng(0).uniform(-1, 1, (2, len(budget_V)))
        x_V, y_V = pass_rate_V + 0.008 * x_V, budget_V * (1 + 0.04 * y_V)
        points = ax.scatter(x_V, y_V, c=step_V, cmap="cividis", s=10, alpha=0.5, linewidths=0)
        bar = figure.colorbar(points, label="training step", ticks=MaxNLocator(integer=True))
        bar.solids.set_alpha(1)
        means = mean_per_bin(pass_rate_V, budget_V)
        ax.plot(*means, "D-", color=VERMILLION, mec="black", label=f"mean per bin of {1 / NUM_BINS:g}")
    else:
        ax.text(0.5, 0.6, "no prompt has been visited twice yet", transform=ax.transAxes, ha="center")
    mean, largest = data.visits["budget"].mean(), data.visits["budget"].max()
    ax.axhline(mean, color="black", linestyle=":", label=f"mean budget: {mean:.4g}")
    ax.set_yscale("log", base=2)
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.set(xlabel="estimated pass rate before the step", ylabel="rollouts of the prompt", xlim=(-0.03, 1.03))
    ax.set_ylim(0.8 * data.visits["budget"].min(), 1.2 * 2 ** np.ceil(np.log2(largest)))
    ax.legend(loc="upper right", framealpha=0.9)
    _save(figure, [ax], file)


def _save(figure: Figure, axes: list[Axes], file: Path) -> None:
    for ax in axes:
        ax.grid(alpha=0.3)
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=150)
    plt.close(figure)


def render(summary: dict, out: Path) -> str:
    """The summary as the lines that ``main`` prints."""
    budgets, ledger, share = summary["budgets"], summary["ledger"], summary["exposed_share"]
    sums = " or ".join(f"{s:,}" for s in budgets["sums"][:4]) + (" ..." if len(budgets["sums"]) > 4 else "")
    constant = "the same mean in every step" if budgets["mean_is_constant"] else "NOT CONSTANT: step means differ"
    lines = [f"steps        {summary['steps']}"]
    for source, s in summary["held_out"].items():
        first, last = (f"{s[end]:.3f} at step {s[end + '_step']}" for end in ("first", "last"))
        lines.append(f"held-out     {source}: {first} -> {last}")
    lines.append(f"budget sums  {sums} rollouts; {constant}")
    lines.append(f"budgets      min {budgets['min']}, mean {budgets['mean']:.4g}, max {budgets['max']}")
    if share:
        lines.append(f"exposed      median {share['median']:.2%}, max {share['max']:.2%} of a step waiting for budgets")
    spent = [f"{v:,.0f} {k.replace('_', ' ')}" for k, v in ledger.items() if not k.startswith("seconds_")]
    seconds = [f"{k[8:]} {v:,.1f}" for k, v in ledger.items() if k.startswith("seconds_")]
    lines += [f"spent        {', '.join(spent)}", f"seconds      {', '.join(seconds)}"]
    return "\n".join([*lines, f"written      {out}/learning_curve.png, budgets.png, summary.json"])


def main(argv: list[str] | None = None) -> int:
    """Run the command line; returns 0, or 2 for a folder that no report can be made of."""
    parser = argparse.ArgumentParser(prog="python -m coba_openrlhf.report", description="Report of a training run.")
    parser.add_argument("run", type=Path, help="folder of the run (coba.run_dir)")
    parser.add_argument("--out", type=Path, help="folder of the report; default: RUN/report")
    options = parser.parse_args(argv)
    out = options.out or options.run / "report"
    try:
        data = read_run(options.run)
        out.mkdir(parents=True, exist_ok=True)
    except (ReportError, OSError) as error:  # an OSError names the file or folder
        print(f"no report: {error}", file=sys.stderr)
        return 2
    summary = summarise(data)
    plot_learning_curve(data, out / "learning_curve.png")
    plot_budgets(data, out / "budgets.png")
    (out / "summary.json").write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    print(render(summary, out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
