"""Every response of an evaluation, in files that appear only when they are complete."""

import os
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

FOLDER = "responses.parquet"
SCHEMA = pa.schema(
    [
        ("datasource", pa.string()),
        ("row", pa.int64()),  # of the benchmark's file
        ("problem_id", pa.string()),  # hash of data source, problem, answer: the same for every model and template
        ("index", pa.int64()),  # of the response, from 0
        ("prompt", pa.string()),  # as the model saw it
        ("label", pa.string()),
        ("response", pa.string()),
        ("score", pa.float64()),  # null: could not be scored
        ("reason", pa.string()),  # of the score, where the verifier gives one
        ("num_tokens", pa.int64()),  # of the response
        ("truncated", pa.bool_()),
    ]
)


class ResponseFiles:
    """``responses.parquet/`` in an evaluation's folder: one file per chunk of problems, one table to any reader.

    Args:
        folder: Folder of the evaluation.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / FOLDER

    def write(self, rows: dict[str, list]) -> None:
        """Add the responses of a chunk, all or none; the columns are those of ``SCHEMA``."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for left in self._folder.glob(".*.tmp"):  # of a killed evaluation
            left.unlink()
        number = 1 + max((int(file.stem.removeprefix("chunk-")) for file in self._files()), default=-1)
        temporary = self._folder / f".{uuid.uuid4().hex}.tmp"
        pq.write_table(pa.table(rows, SCHEMA), temporary)
        os.replace(temporary, self._folder / f"chunk-{number:06d}.parquet")

    def finished(self) -> set[str]:
        """Ids of the problems whose responses are there."""
        return {name for file in self._files() for name in pq.read_table(file, columns=["problem_id"])[0].to_pylist()}

    def read(self) -> pa.Table:
        """All responses, by data source, row and index.

        Raises:
            ValueError: A file is damaged, or there is none.
        """
        files = self._files()
        if not files:
            raise ValueError(f"{self._folder} holds no responses")
        try:
            table = pa.concat_tables([pq.read_table(file, schema=SCHEMA) for file in files])
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{self._folder} has a damaged file: {error}") from error
        return table.sort_by([(name, "ascending") for name in ("datasource", "row", "index")])

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob("chunk-*.parquet"))
