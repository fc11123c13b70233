"""Where rows come from: a file in a folder, or the Hugging Face hub."""

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .error import PrepareError
from .specs import Spec

if TYPE_CHECKING:
    import datasets

ENDINGS = (".jsonl", ".json", ".parquet", ".csv")
# For the first question to the hub; huggingface_hub's own default for all others.
HUB_SECONDS = 10
REASON_CHARACTERS = 200
# Rows at a time: DAPO-Math-17k has 1.8 million, whose Python objects would fill five gigabytes.
BATCH_ROWS = 10_000


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
    """The file of a data set in ``folder``; its rows are read while they are asked for.

    Raises:
        PrepareError: No such file, or (by the rows) it is not readable.
    """
    candidates = [folder / f"{spec.file}{ending}" for ending in ENDINGS]
    file = next((candidate for candidate in candidates if candidate.is_file()), None)
    if file is None:
        raise PrepareError(f"--from {folder} has no file for {name}: looked for {spec.file} with {', '.join(ENDINGS)}")
    return Source(_rows(file), file.name, None, None)


def _rows(file: Path) -> Iterator[Mapping[str, object]]:
    try:
        yield from _READERS[file.suffix](file)
    except (OSError, ValueError, csv.Error) as error:  # a damaged table's ArrowInvalid is a ValueError
        raise PrepareError(f"{file} cannot be read: {error}") from error


def _parquet_rows(file: Path) -> Iterator[Mapping[str, object]]:
    import pyarrow.parquet as pq

    for batch in pq.ParquetFile(file).iter_batches(BATCH_ROWS):
        yield from batch.to_pylist()


def _csv_rows(file: Path) -> Iterator[Mapping[str, object]]:
    with file.open(encoding="utf-8", newline="") as stream:
        yield from csv.DictReader(stream)


def _json_rows(file: Path) -> Iterator[Mapping[str, object]]:
    rows = json.loads(file.read_text(encoding="utf-8"))
    if not isinstance(rows, list):
        raise ValueError("it must hold a list of rows")
    for number, row in enumerate(rows):
        yield _row(row, f"row {number}")


def _jsonl_rows(file: Path) -> Iterator[Mapping[str, object]]:
    # Only \n ends a row: other line separators of Unicode stand inside texts.
    with file.open(encoding="utf-8", newline="\n") as stream:
        for number, line in enumerate(stream, start=1):
            if line.strip():
                try:
                    row = json.loads(line.rstrip())
                except json.JSONDecodeError as error:
                    raise ValueError(f"line {number}: {error.msg} (column {error.colno})") from error
                yield _row(row, f"line {number}")


_READERS = {".parquet": _parquet_rows, ".csv": _csv_rows, ".json": _json_rows, ".jsonl": _jsonl_rows}


def _row(row: object, place: str) -> Mapping[str, object]:
    """A row of JSON, in which escapes can make what is no text.

    Raises:
        ValueError: It is no object, or holds half of a surrogate pair.
    """
    if not isinstance(row, dict):
        raise ValueError(f"{place}: a row must be an object, got {row!r:.100}")
    try:
        json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = ascii(error.object[error.start])
        raise ValueError(f"{place}: {half} is half of a surrogate pair, which is no character") from error
    return row


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
        # Without hf:// a folder of that name in the current one would be taken for it.
        builder = datasets.load_dataset_builder(f"hf://datasets/{spec.hub}", spec.config, revision=info.sha)
        if builder.hash != info.sha:  # after an error, datasets takes what its cache has
            raise ConnectionError(f"revision {info.sha} cannot be loaded, only {builder.hash} is in the cache")
        builder.download_and_prepare()
        dataset = builder.as_dataset(split=spec.split)
    except (OSError, ValueError, RuntimeError, httpx.HTTPError, datasets.exceptions.DatasetsError) as error:
        raise PrepareError(
            f"{name} cannot be downloaded from the Hugging Face hub ({spec.hub}): {_reason(error)}. "
            f"{how_to_place(name, spec)}"
        ) from error
    licence = (info.card_data or {}).get("license")
    licence = ", ".join(licence) if isinstance(licence, list) else licence
    return Source(_hub_rows(dataset), spec.hub, info.sha, licence)


def _hub_rows(dataset: "datasets.Dataset") -> Iterator[Mapping[str, object]]:
    """As Arrow reads them, which is several times faster than row by row and decodes no images."""
    for table in dataset.with_format("arrow").iter(BATCH_ROWS):
        yield from table.to_pylist()


def _reason(error: BaseException) -> str:
    """Why, in one line."""
    import huggingface_hub.errors

    if isinstance(error, huggingface_hub.errors.RepositoryNotFoundError):
        return "it has no such data set, or shows it to some accounts only (then: hf auth login)"
    told = [" ".join(str(reason).split()) or type(reason).__name__ for reason in (error, error.__cause__) if reason]
    text = ": ".join(dict.fromkeys(told)).removesuffix(".")
    return text if len(text) <= REASON_CHARACTERS else f"{text[:REASON_CHARACTERS]}..."


def how_to_place(name: str, spec: Spec) -> str:
    """What to do without the hub."""
    columns = f"{' or '.join(spec.prompt)} (problem) and {' or '.join(spec.label)} (answer)"
    return (
        f"Without the hub, place the file {spec.file}.jsonl (or .json, .parquet, .csv; columns {columns}) into a "
        f"folder and run: python -m coba_openrlhf.data.prepare {name} --from FOLDER"
    )
