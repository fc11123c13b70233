"""The problems of an evaluation."""

import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path

from coba_openrlhf.config import ConfigError, RunConfig
from coba_openrlhf.data.prepare.output import NOTE_ENDING
from coba_openrlhf.data.prepare.specs import SPECS
from coba_openrlhf.data.prompt_dataset import content_ids
from coba_openrlhf.data.source_name import source_name
from coba_openrlhf.preflight.data_sets import LOCAL_FORMATS, read_checked_rows

from .command_line import CommandLine

KEY = "--benchmarks"


@dataclass(frozen=True)
class Problems:
    """All problems of all benchmarks, in order.

    Attributes:
        rows: With the columns ``prompt``, ``label`` and ``datasource``.
        row_numbers: Place of each in its benchmark's file.
        ids: Hash of data source, problem and answer: the same for every model and template. Equal rows of one
            source are told apart; the same text in two sources is two problems.
    """

    rows: list[dict[str, object]]
    row_numbers: list[int]
    ids: list[str]


def load_problems(command: CommandLine) -> Problems:
    """Find, read and check all benchmarks.

    Raises:
        ConfigError: No such benchmark (with those that there are), or rows that cannot be used.
    """
    rows: list[dict[str, object]] = []
    row_numbers: list[int] = []
    owner: dict[str, str] = {}
    for name in command.benchmarks:
        file, is_named = find_benchmark(name, command.data)
        keys = ("prompt", "label") if is_named else (command.input_key, command.label_key)
        default_source = name if is_named else Path(name).stem
        table = _read(file, _with_columns(command.config, *keys), default_source)
        table = table.select(range(min(len(table), command.max_problems or len(table))))
        for number, row in enumerate(table):
            source = source_name(row.get("datasource"), default_source)
            if owner.setdefault(source, name) != name:
                raise ConfigError(f"{KEY}: {owner[source]} and {name} both have the data source {source!r}")
            rows.append({"prompt": row[keys[0]], "label": row[keys[1]], "datasource": source})
            row_numbers.append(number)
    ids = content_ids(*([str(row[column]) for row in rows] for column in ("datasource", "prompt", "label")))
    return Problems(rows, row_numbers, ids)


def _read(file: str, config: RunConfig, source: str):
    try:
        rows = read_checked_rows(KEY, file, config, source)
    except ConfigError as error:
        message = str(error).replace("data.input_key", "--input_key").replace("data.label_key", "--label_key")
        raise ConfigError(message) from error
    if rows is None:
        raise ConfigError(f"{KEY}: no such file: {file} (current folder: {Path.cwd()})")
    return rows


def find_benchmark(name: str, data: Path) -> tuple[str, bool]:
    """The file of a benchmark, and whether it was named (a prepared file) rather than a path.

    Raises:
        ConfigError: There is none.
    """
    if Path(name).suffix in LOCAL_FORMATS or os.sep in name:
        return name, False
    for suffix in (".parquet", ".jsonl", ".json", ".csv"):
        file = data / f"{name}{suffix}"
        if file.is_file():
            return str(file), True
    files = [file for file in data.glob("*") if file.suffix in LOCAL_FORMATS and not file.name.endswith(NOTE_ENDING)]
    there = sorted({file.stem for file in files})
    holds = f"{data} holds {', '.join(there)}" if there else f"{data} holds no data set"
    raise ConfigError(
        f"{KEY}: no benchmark {name!r}; {holds}. Known to python -m coba_openrlhf.data.prepare: "
        f"{', '.join(SPECS)}. A file of your own is named by its path, with its ending"
    )


def _with_columns(config: RunConfig, input_key: str, label_key: str) -> RunConfig:
    return dataclasses.replace(config, data=dataclasses.replace(config.data, input_key=input_key, label_key=label_key))
