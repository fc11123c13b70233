"""One command per table: tune, train, compare.

    python -m benchmarks.learning n4
    python -m benchmarks.learning n4 --smoke --out runs/smoke     # seconds: does it run?

Everything that was trained is kept in ``--out`` and used again; a run that was killed continues.
"""

import argparse
import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from .cells import Cell, run_cells
from .figures import plot_curves, plot_forest, plot_solved
from .report import (
    choose_learning_rates,
    read_outcome,
    render,
    render_learning_rates,
    render_rollouts_needed,
    render_summary,
)
from .tables import LEARNING_RATES, SEEDS, TABLES, TUNING_SEEDS, Table

PICTURES = ("curves", "solved", "differences")
SMOKE_STEPS = 3
SMOKE_SEEDS = 2


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.learning", description=__doc__.splitlines()[0])
    parser.add_argument("table", choices=[*TABLES, "all"], help="which table")
    parser.add_argument("--out", type=Path, default=Path("runs/learning"), help="results and base models")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes, one core each")
    parser.add_argument("--smoke", action="store_true", help="two seeds and a few steps: only shows that it runs")
    parser.add_argument("--publish", type=Path, help="a folder that gets a copy of the tables and pictures")
    arguments = parser.parse_args(argv)
    if arguments.workers < 1:
        parser.error(f"--workers must be >= 1, got {arguments.workers}")
    for name in TABLES if arguments.table == "all" else [arguments.table]:
        print(make_table(name, TABLES[name], arguments.out, arguments.workers, arguments.smoke))
        if arguments.publish:
            arguments.publish.mkdir(parents=True, exist_ok=True)
            for file in (f"{name}.md", *(f"{name}-{picture}.png" for picture in PICTURES)):
                shutil.copy(arguments.out / file, arguments.publish / file)


def make_table(name: str, table: Table, folder: Path, workers: int, smoke: bool = False) -> str:
    """Train what is missing, write ``<name>.md`` and its pictures to ``folder``, and return the Markdown."""
    tuning, seeds = TUNING_SEEDS, SEEDS
    if smoke:
        regimes = tuple(replace(regime, steps=SMOKE_STEPS, warm_up_steps=SMOKE_STEPS) for regime in table.regimes)
        table, tuning, seeds = replace(table, regimes=regimes), TUNING_SEEDS[:SMOKE_SEEDS], SEEDS[:SMOKE_SEEDS]
    tried = [(regime, rule, rate) for regime in table.regimes for rule in table.rules for rate in LEARNING_RATES]
    run_cells([Cell(*one, tuning) for one in tried], folder, workers)
    rates = choose_learning_rates(table, tuning, folder)
    cells = {
        regime.name: [Cell(regime, rule, rates[regime.name, rule.name], seeds) for rule in table.rules]
        for regime in table.regimes
    }
    run_cells([cell for row in cells.values() for cell in row], folder, workers)
    outcomes = {regime: [read_outcome(cell, folder) for cell in row] for regime, row in cells.items()}
    parts = [
        f"# {table.title}",
        f"{len(seeds)} seeds, learning rates chosen on {len(tuning)} others. Final accuracy minus uniform's, with 95 % "
        f"interval over seeds; bold: p < 0.05 after Holm. Made by `python -m benchmarks.learning {name}`.",
        render_summary(outcomes),
        "## Rollouts until uniform's final accuracy is reached, as a share of uniform's",
        render_rollouts_needed(outcomes),
    ]
    for regime in table.regimes:
        parts += [f"## {regime.name}", render(regime, outcomes[regime.name])]
    rates_text = " and ".join(f"{rate:g}" for rate in LEARNING_RATES)
    parts += [f"## Final accuracy on the tuning seeds at learning rates {rates_text}"]
    parts += [render_learning_rates(table, tuning, folder)]
    text = "\n\n".join(parts) + "\n"
    (folder / f"{name}.md").write_text(text, encoding="utf-8")
    plot_curves(outcomes, table.drawn, folder / f"{name}-curves.png")
    plot_solved(outcomes, table.drawn, folder / f"{name}-solved.png")
    plot_forest(outcomes, folder / f"{name}-differences.png")
    return text


if __name__ == "__main__":
    main()
