"""What a comparison writes and prints."""

import csv
import json
import math
import os
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

from .groups import Group
from .row import Row

LEGEND = (
    "Differences are the second minus the first, with a 95% interval over problems (bootstrap of the paired "
    "differences) or over seeds (Student's t). * = the interval does not contain 0. Many comparisons in one table: one "
    "in twenty is marked by chance."
)


def is_clear(row: Row) -> bool:
    """Whether the interval does not contain 0."""
    return row.difference.low > 0 or row.difference.high < 0


def render(rows: Sequence[Row], notes: Sequence[str]) -> str:
    """The table for a terminal, its legend and the notes."""
    head = ["benchmark", "metric", "at", "second - first", "first", "second", "difference", "over"]
    cells = [head, *(_cells(row) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return "\n".join([*lines, "", LEGEND, *notes])


def _cells(row: Row) -> list[str]:
    d = row.difference
    interval = "" if math.isnan(d.low) else f" [{d.low:+.3f}, {d.high:+.3f}]{'*' if is_clear(row) else ''}"
    return [
        row.benchmark,
        row.metric,
        f"{row.at:,.0f} {row.axis}" if row.axis else "",
        f"{row.other} - {row.base}",
        f"{row.base_value:.3f}",
        f"{row.other_value:.3f}",
        f"{d.value:+.3f}{interval}",
        f"{row.count} {row.over}" if row.over else "1 run each",
    ]


def write_tables(folder: Path, groups: Sequence[Group], rows: Sequence[Row], notes: Sequence[str]) -> None:
    """Write ``compare.csv`` and ``compare.json``; numbers that are not known are empty, or null."""
    flat = [_flat(row) for row in rows]
    names = list(flat[0])
    temporary = folder / ".compare.csv.tmp"
    with temporary.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(names)
        writer.writerows([["" if row[name] is None else row[name] for name in names] for row in flat])
    os.replace(temporary, folder / "compare.csv")
    tree = {
        "groups": {group.name: [str(path) for path in group.folders] for group in groups},
        "rows": flat,
        "legend": LEGEND,
        "notes": list(notes),
    }
    temporary = folder / ".compare.json.tmp"
    temporary.write_text(json.dumps(tree, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(temporary, folder / "compare.json")


def _flat(row: Row) -> dict[str, object]:
    cells: dict[str, object] = {f.name: getattr(row, f.name) for f in fields(row) if f.name != "difference"}
    difference = asdict(row.difference)
    cells |= {"difference": difference["value"], "low": difference["low"], "high": difference["high"]}
    return {name: None if isinstance(v, float) and not math.isfinite(v) else v for name, v in cells.items()}
