"""The results of an evaluation, as a table for people and as JSON."""

import json
import math
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from coba_openrlhf.evaluation.intervals import CONFIDENCE, Interval
from coba_openrlhf.evaluation.summary import SourceSummary

JSON_FILE, MARKDOWN_FILE = "results.json", "results.md"


def write_results(
    folder: Path,
    summaries: Sequence[SourceSummary],
    settings: dict[str, object],
    *,
    model: str,
    num_overlong: dict[str, int],
) -> None:
    """Write ``results.json`` and ``results.md``.

    Args:
        folder: Folder of the evaluation.
        summaries: One per data source.
        settings: What the responses depend on.
        model: As typed.
        num_overlong: Data source -> problems left out because their prompt is too long.
    """
    tree = {
        "model": model,
        "confidence": CONFIDENCE,
        "benchmarks": {s.source: {**asdict(s), "num_overlong": num_overlong.get(s.source, 0)} for s in summaries},
        "settings": settings,
    }
    _replace(folder / JSON_FILE, json.dumps(_without_nan(tree), indent=2, ensure_ascii=False) + "\n")
    lines = [f"# {model}", "", *_markdown(summaries), "", *_remarks(summaries, num_overlong)]
    lines += ["", "| setting | value |", "|---|---|"]
    lines += [f"| {name} | {json.dumps(value, ensure_ascii=False)} |" for name, value in settings.items()]
    _replace(folder / MARKDOWN_FILE, "\n".join(lines) + "\n")


def render(summaries: Sequence[SourceSummary], num_overlong: dict[str, int]) -> str:
    """The table for a terminal, and what to know about it."""
    cells = _cells(summaries)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))])
        for row in cells
    ]
    return "\n".join([*lines, "", *_remarks(summaries, num_overlong)])


def _markdown(summaries: Sequence[SourceSummary]) -> list[str]:
    head, *rows = _cells(summaries)
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


def _cells(summaries: Sequence[SourceSummary]) -> list[list[str]]:
    ks = sorted({k for s in summaries for k in s.passes if k > 1})
    head = ["benchmark", "problems", "avg@k", *(f"pass@{k}" for k in ks), "truncated", "unscorable", "tokens"]
    rows = [
        [
            s.source,
            str(s.num_problems),
            f"@{s.k} {_interval(s.avg)}",
            *(_interval(s.passes[k]) if k in s.passes else "-" for k in ks),
            f"{s.truncated_rate:.1%}",
            f"{s.unscorable_rate:.1%}",
            f"{s.length_mean:.0f}",
        ]
        for s in summaries
    ]
    return [head, *rows]


def _interval(interval: Interval) -> str:
    if math.isnan(interval.low):
        return f"{interval.value:.3f}"
    return f"{interval.value:.3f} [{interval.low:.3f}, {interval.high:.3f}]"


def _remarks(summaries: Sequence[SourceSummary], num_overlong: dict[str, int]) -> list[str]:
    remarks = [
        f"[low, high]: {CONFIDENCE:.0%} interval over problems (bootstrap). Unscorable responses count as wrong. "
        "tokens: mean response."
    ]
    for source, count in num_overlong.items():
        remarks.append(f"WARNING: {source}: {count} problems are left out, their prompt leaves no room for a response.")
    for s in summaries:
        if s.truncated_rate >= 0.05:
            remarks.append(
                f"WARNING: {s.source}: {s.truncated_rate:.1%} of the responses were cut off at the length limit "
                "(--max_new_tokens, --max_len)."
            )
    return remarks


def _without_nan(node: object) -> object:
    if isinstance(node, dict):
        return {str(key): _without_nan(value) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return [_without_nan(value) for value in node]
    return None if isinstance(node, float) and not math.isfinite(node) else node


def _replace(file: Path, text: str) -> None:
    temporary = file.with_name(f".{file.name}.tmp")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, file)
