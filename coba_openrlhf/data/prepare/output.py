"""Prepared files: the rows, and a note on where they come from."""

import hashlib
import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from .normalise import Normalised
from .sources import Source
from .specs import Spec

NOTE_ENDING = ".source.json"


def write(folder: Path, name: str, spec: Spec, source: Source, normalised: Normalised) -> dict[str, object]:
    """Write ``NAME.parquet`` and ``NAME.source.json``; both appear only when they are complete.

    Returns:
        The note: origin, revision, licence, number of rows, hashes.

    Raises:
        OSError: The folder cannot be made or written to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    columns = list(normalised.rows[0])
    table = pa.table({column: pa.array([row[column] for row in normalised.rows], pa.string()) for column in columns})
    file = folder / f"{name}.parquet"
    temporary = folder / f".{file.name}.tmp"
    pq.write_table(table, temporary)
    note = {
        "name": name,
        "use": spec.use,
        "origin": source.origin,
        "configuration": spec.config if source.revision else None,
        "split": spec.split if source.revision else None,
        "revision": source.revision,
        "licence": source.licence or _licence_note(spec, source),
        "num_rows": len(normalised.rows),
        "dropped": normalised.dropped,
        "columns": columns,
        "fingerprint": fingerprint(normalised.rows),
        "sha256": hashlib.sha256(temporary.read_bytes()).hexdigest(),
    }
    os.replace(temporary, file)
    temporary = folder / f".{name}{NOTE_ENDING}.tmp"
    temporary.write_text(json.dumps(note, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(temporary, folder / f"{name}{NOTE_ENDING}")
    return note


def fingerprint(rows: list[dict[str, str]]) -> str:
    """Hash over the rows in order, whatever version of parquet writes them."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps(row, ensure_ascii=False, sort_keys=True).encode())
        digest.update(b"\n")
    return digest.hexdigest()[:16]


def _licence_note(spec: Spec, source: Source) -> str:
    if source.revision:
        return "not stated on the hub"
    return f"not known from the file; see the page of {spec.hub} on the hub" if spec.hub else "not known from the file"
