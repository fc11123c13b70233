"""Where rows come from: a file in a folder, or the Hugging Face hub."""

import csv
import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from .error import PrepareError
from .specs import Spec

ENDINGS = (".jsonl", ".json", ".parquet", ".csv")
HUB_SECONDS = 20


@dataclass(frozen=True)
class Source:
    """Rows as published, and what is known of their origin.

    Attributes:
        rows: The rows.
        origin: File or hub name, for people.
        revision: Commit on the hub; None for a file.
        licence: As stated on the hub; None if it states none, or for a file.
    """

    rows: Iterable[Mapping[str, object]]
    origin: str
    revision: str | None
    licence: str | None


def open_local(name: str, spec: Spec, folder: Path) -> Source:
    """The file of a data set in ``folder``.

    Raises:
        PrepareError: No such file, or it is not readable.
    """
    candidates = [folder / f"{spec.file}{ending}" for ending in ENDINGS]
    file = next((candidate for candidate in candidates if candidate.is_file()), None)
    if file is None:
        raise PrepareError(f"--from {folder} has no file for {name}: looked for {spec.file} with {', '.join(ENDINGS)}")
    try:
        return Source(_read(file), file.name, None, None)
    except (OSError, ValueError, csv.Error) as error:  # a damaged table's ArrowInvalid is a ValueError
        raise PrepareError(f"{file} cannot be read: {error}") from error


def _read(file: Path) -> list[Mapping[str, object]]:
    if file.suffix == ".parquet":
        import pyarrow.parquet as pq

        return pq.read_table(file).to_pylist()
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".csv":
        return list(csv.DictReader(io.StringIO(text, newline="")))
    if file.suffix == ".json":
        rows = json.loads(text)
    else:
        # Only \n ends a row: other line separators of Unicode stand inside texts.
        rows = [json.loads(line) for line in text.split("\n") if line.strip()]
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("it must hold rows as objects")
    return rows


def open_hub(name: str, spec: Spec) -> Source:
    """The data set on the Hugging Face hub, at the commit that is the newest now.

    Raises:
        PrepareError: It is not there, or there is no network; the message says which file to place where.
    """
    if spec.hub is None:
        raise PrepareError(f"{name} is known from local files only: {how_to_place(name, spec)}")
    import datasets
    import httpx
    import huggingface_hub

    try:
        info = huggingface_hub.HfApi().dataset_info(spec.hub, timeout=HUB_SECONDS)
        rows = datasets.load_dataset(spec.hub, spec.config, split=spec.split, revision=info.sha)
    except (OSError, ValueError, httpx.HTTPError, datasets.exceptions.DatasetsError) as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise PrepareError(
            f"{name} cannot be downloaded from the Hugging Face hub ({spec.hub}): {reason}. {how_to_place(name, spec)}"
        ) from error
    licence = (info.card_data or {}).get("license") if info.card_data else None
    return Source(rows, spec.hub, info.sha, json.dumps(licence) if isinstance(licence, list) else licence)


def how_to_place(name: str, spec: Spec) -> str:
    """What to do without network."""
    columns = f"{' or '.join(spec.prompt)} (problem) and {' or '.join(spec.label)} (answer)"
    return (
        f"Without network, place the file {spec.file}.jsonl (or .json, .parquet, .csv; columns {columns}) into a "
        f"folder and run: python -m coba_openrlhf.data.prepare {name} --from FOLDER"
    )
