"""Rows of a published data set in the shape of all prepared ones."""

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .error import PrepareError
from .specs import Spec

# Functions that have the same name in LaTeX, and 1. for a float.
_NUMPY = re.compile(r"\bnp\.((?:arc)?(?:sin|cos|tan))\b")
_POINT = re.compile(r"(?<=\d)\.(?=\s*/)")


@dataclass(frozen=True)
class Normalised:
    """Prepared rows.

    Attributes:
        rows: Each with ``prompt``, ``label``, ``datasource``, ``id`` and the columns that are kept, all text.
        dropped: Reason -> number of rows that were left out.
    """

    rows: list[dict[str, str]]
    dropped: dict[str, int]


def normalise(name: str, spec: Spec, rows: Iterable[Mapping[str, object]], origin: str) -> Normalised:
    """Bring rows into shape.

    Args:
        name: Of the data set; becomes ``datasource``.
        spec: What its columns mean.
        rows: As published.
        origin: File or hub name, for messages.

    Raises:
        PrepareError: A column is missing, or a cell has no text.
    """
    prepared: list[dict[str, str]] = []
    dropped = {"no problem": 0, "no answer": 0, "repeated": 0}
    seen: set[tuple[str, str]] = set()
    for number, row in enumerate(rows):
        try:
            prompt, label = _prompt(spec, row), _label(spec, row)
        except KeyError as error:
            wanted, present = error.args
            raise PrepareError(
                f"{origin}, row {number}: no column {wanted} for {name}; it has {', '.join(present)}"
            ) from error
        except ValueError as error:
            raise PrepareError(f"{origin}, row {number}: {error}") from error
        reason = "no problem" if not prompt else "no answer" if not label else ""
        if not reason and spec.is_repeated:
            reason = "repeated" if (prompt, label) in seen else ""
            seen.add((prompt, label))
        if reason:
            dropped[reason] += 1
            continue
        own_id = _first(row, spec.id)
        prepared.append(
            {"prompt": prompt, "label": label, "datasource": name}
            | {"id": str(number) if own_id is None else _text(own_id)}
            | {f"source_{key}" if key == "answer" else key: _text(row.get(key)) for key in spec.keep}
        )
    if not prepared:
        raise PrepareError(f"{origin} has no usable row for {name}")
    return Normalised(prepared, {reason: count for reason, count in dropped.items() if count})


def _prompt(spec: Spec, row: Mapping[str, object]) -> str:
    cell = _needed(row, spec.prompt)
    if isinstance(cell, list):  # a chat: its only turn is the user's
        if len(cell) != 1 or not isinstance(cell[0], Mapping) or not isinstance(cell[0].get("content"), str):
            raise ValueError(f"the problem must be text or a chat of one message, got {cell!r:.100}")
        cell = cell[0]["content"]
    if cell is None:
        return ""
    if not isinstance(cell, str):
        raise ValueError(f"the problem must be text, got {type(cell).__name__}: {cell!r:.100}")
    text = cell.removeprefix(spec.strip_head).removesuffix(spec.strip_tail).strip()
    context = row.get(spec.context) if spec.context else None
    return f"{context}\n{text}" if context and text else text


def _label(spec: Spec, row: Mapping[str, object]) -> str:
    cell = _needed(row, spec.label)
    if spec.answer_after is not None:
        _, mark, answer = str(cell).rpartition(spec.answer_after)
        # Thousands are separated by commas here, which an answer of several parts would be, too.
        return answer.replace(",", "").strip() if mark else ""
    text = answer_text(cell)
    return _POINT.sub("", _NUMPY.sub(r"\\\1", text)) if spec.has_python else text


def answer_text(cell: object) -> str:
    """A reference answer as text: whole floats without their point, the members of a list joined by commas.

    Raises:
        ValueError: Neither text nor a number nor a list of them.
    """
    if cell is None:
        return ""
    if isinstance(cell, str):
        text = cell.strip()
        # Dollars around the whole, not those between its parts.
        return text[1:-1].strip() if len(text) > 1 and text[0] == text[-1] == "$" and text.count("$") == 2 else text
    if isinstance(cell, bool):
        return str(cell)
    if isinstance(cell, float):
        if not math.isfinite(cell):
            raise ValueError(f"the answer must be finite, got {cell}")
        return str(int(cell)) if cell.is_integer() else repr(cell)
    if isinstance(cell, int):
        return str(cell)
    if isinstance(cell, list):
        return ", ".join(answer_text(member) for member in cell)
    raise ValueError(f"the answer must be text, a number or a list, got {type(cell).__name__}: {cell!r:.100}")


def _text(cell: object) -> str:
    if cell is None:
        return ""
    return cell if isinstance(cell, str) else json.dumps(cell, ensure_ascii=False, default=str)


def _needed(row: Mapping[str, object], names: tuple[str, ...]) -> object:
    for name in names:
        found, cell = _field(row, name)
        if found:
            return cell
    raise KeyError(" or ".join(map(repr, names)), list(row))


def _first(row: Mapping[str, object], names: tuple[str, ...]) -> object:
    return next((cell for name in names for found, cell in [_field(row, name)] if found and cell is not None), None)


def _field(row: Mapping[str, object], name: str) -> tuple[bool, object]:
    node: object = row
    for part in name.split("."):
        if not isinstance(node, Mapping) or part not in node:
            return False, None
        node = node[part]
    return True, node
