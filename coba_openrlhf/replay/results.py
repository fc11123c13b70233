"""The files of a replay."""

import csv
import json
import math
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .figures import plot_budgets, plot_grid, plot_signal
from .log import Log
from .replayed import COLUMNS, Replayed
from .reproduction import Reproduction
from .rule import Family
from .table import LIMITS

SUMMARY = "summary.json"


def write_results(
    out: Path,
    log: Log,
    replayed: Sequence[Replayed],
    families: Sequence[Family],
    reproduction: Reproduction | None,
    notes: Sequence[str],
) -> list[str]:
    """Write tables and pictures, all or none; those of an earlier replay in the same folder go.

    Args:
        out: Folder, made if it does not exist.
        log: The log.
        replayed: The rules, that of the run first.
        families: What the command line asked for.
        reproduction: Whether the log was reproduced; None if that cannot be told.
        notes: For the summary.

    Returns:
        Names of the files.

    Raises:
        OSError: The folder cannot be made or written to.
    """
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".replay-", dir=out) as name:
        work = Path(name)
        write_csv(replayed, log, work / "replay.csv")
        plot_signal(replayed, log, work / "signal.png")
        plot_budgets(replayed, work / "budgets.png")
        _plot_grids(families, replayed, work)
        files = sorted([SUMMARY, *(file.name for file in work.iterdir())])
        write_summary(replayed, log, reproduction, notes, files, work / SUMMARY)
        for earlier in _files_of_summary(out / SUMMARY):
            (out / earlier).unlink(missing_ok=True)
        for file in files:
            os.replace(work / file, out / file)
    return files


def _plot_grids(families: Sequence[Family], replayed: Sequence[Replayed], folder: Path) -> None:
    of_label = {rule.label: rule for rule in replayed}
    grids = [family for family in families if 0 < len(family.grid) <= 2]
    for number, family in enumerate(grids, start=1):
        plot_grid(family, of_label, folder / ("grid.png" if len(grids) == 1 else f"grid-{number}.png"))


def _files_of_summary(summary: Path) -> list[str]:
    """Names in the summary of an earlier replay; none where there is none."""
    try:
        names = json.loads(summary.read_text(encoding="utf-8"))["files"]
        return [name for name in names if name == os.path.basename(name) and (summary.parent / name).is_file()]
    except (OSError, ValueError, KeyError, TypeError):  # no summary, or not one of a replay
        return []


def write_csv(replayed: Sequence[Replayed], log: Log, file: Path) -> None:
    """One row per rule and step; numbers that are not known are empty."""
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["rule", "step", *COLUMNS])
        for rule in replayed:
            for index, step in enumerate(log.steps):
                values = (float(rule.columns[name][index]) for name in COLUMNS)
                writer.writerow([rule.label, step.step, *(_cell(value) for value in values)])


def write_summary(
    replayed: Sequence[Replayed],
    log: Log,
    reproduction: Reproduction | None,
    notes: Sequence[str],
    files: Sequence[str],
    file: Path,
) -> None:
    """Means per rule, and whether the log was reproduced; numbers that are not known are null."""
    summary = {
        "first_step": log.steps[0].step,
        "last_step": log.steps[-1].step,
        "steps": len(log.steps),
        "reproduced_steps": None if reproduction is None else reproduction.num_equal,
        "limits": " ".join(LIMITS.split()),
        "notes": list(notes),
        "rules": [
            {
                "rule": rule.label,
                "options": rule.options,
                **{name: None if math.isnan(value) else value for name, value in rule.means().items()},
            }
            for rule in replayed
        ],
        "files": list(files),
    }
    file.write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")


def _cell(value: float) -> str:
    if math.isnan(value):
        return ""
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
