"""Local data sets: can they be read, and is every row usable?"""

import functools
import os
import re
from collections.abc import Callable
from pathlib import Path

from coba_openrlhf.config import ConfigError, RunConfig
from coba_openrlhf.data.source_name import source_name
from coba_openrlhf.rewards.verifier_choice import check_label, require_known_sources, verifier_for

from .prompt_lengths import check_lengths

# OpenRLHF tells the format by the end of the name, in lower case.
LOCAL_FORMATS = {".json": "json", ".jsonl": "json", ".csv": "csv", ".parquet": "parquet", ".arrow": "arrow"}
TEXT_FORMATS = (".json", ".jsonl", ".csv")


def check_data_sets(config: RunConfig) -> None:
    """Check training and evaluation data; data sets of the Hugging Face hub are left to the trainer.

    Raises:
        ConfigError: The first fault, with file, row and column.
    """
    data, held_out = config.data, config.eval
    sources: set[str] = set()
    all_local = True
    for key, names, split_key, split in (
        ("data.prompt_dataset", data.prompt_dataset, "data.prompt_split", data.prompt_split),
        ("eval.dataset", held_out.dataset, "eval.split", held_out.split),
    ):
        tables = []
        for name in names.split(",") if names else []:
            rows = _open_local(key, name.strip(), split_key, split)
            if rows is not None:
                rows = rows.select(range(min(len(rows), data.max_samples)))
                _check_rows(key, name.strip(), rows, config)
                sources |= _sources_of(rows)
            all_local &= rows is not None
            tables.append(rows)
        if not tables or any(rows is None for rows in tables):
            continue
        check_lengths(key, tables, config)
        if key == "eval.dataset":
            _check_best_metric(tables, config.ckpt.best_metric_key)
    if all_local:  # rows of other data sets are seen by the trainer
        try:
            require_known_sources(config.coba.verifier_of, sources)
        except ValueError as error:
            raise ConfigError(
                f"{error} ({', '.join(filter(None, (data.prompt_dataset, held_out.dataset)))})"
            ) from error


def read_checked_rows(key: str, name: str, config: RunConfig, source: str = "default"):
    """The rows of a local file, checked for ``data.input_key`` and ``data.label_key``; None if it is not local.

    Args:
        key: Option that names the file.
        name: The file.
        config: A checked configuration.
        source: Data source of rows that name none.

    Raises:
        ConfigError: As ``check_data_sets``; the message names ``key``.
    """
    rows = _open_local(key, name, "split", "train")
    if rows is not None:
        _check_rows(key, name, rows, config, source)
    return rows


def _open_local(key: str, name: str, split_key: str, split: str):
    """The rows of a local file or folder as OpenRLHF will read them; None if ``name`` is neither."""
    suffix = Path(name).suffix
    if suffix in LOCAL_FORMATS:
        if not os.path.isfile(name):
            raise ConfigError(f"{key}: no such file: {name} (current folder: {Path.cwd()})")
    elif os.path.isfile(name):
        raise ConfigError(f"{key}: {name} must end in {', '.join(LOCAL_FORMATS)}, got {suffix or 'no ending'!r}")
    elif not os.path.isdir(name):
        if name.startswith((".", "/", "~")) or name.count("/") > 1 or suffix.lower() in LOCAL_FORMATS:
            raise ConfigError(f"{key}: no such file or folder: {name} (current folder: {Path.cwd()})")
        return None
    if "@" in os.path.realpath(name) or "," in os.path.realpath(name):
        # OpenRLHF splits names at commas, and takes what follows an @ for a folder inside a data set.
        raise ConfigError(f"{key}: the path must not contain '@' or ',', got {os.path.realpath(name)}")
    data = _read(key, name)
    if not isinstance(data, dict):
        return data  # a single table has no splits, and OpenRLHF takes it whatever the option says
    if split not in data:
        raise ConfigError(f"{split_key}: {name} has no split {split!r}; it has {', '.join(data)}")
    return data[split]


def _read(key: str, name: str):
    import datasets

    if Path(name).suffix in TEXT_FORMATS:
        _check_utf8(key, name)
    datasets.disable_progress_bars()
    try:
        if os.path.isfile(name):
            return datasets.load_dataset(LOCAL_FORMATS[Path(name).suffix], data_files=name)
        try:
            return datasets.load_from_disk(name)
        except FileNotFoundError:  # a folder of files, not one written by save_to_disk
            return datasets.load_dataset(name)
    except (StopIteration, OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        # An empty file is a StopIteration or a ValueError, a broken one has its reason in the cause.
        reason = error.__cause__ or error
        raise ConfigError(f"{key}: {name} has no readable rows: {str(reason) or repr(reason)}") from error


def _check_utf8(key: str, name: str) -> None:
    """Some readers notice other encodings only when a row is used, and none says where."""
    try:
        lines = Path(name).read_bytes().split(b"\n")
    except OSError as error:
        raise ConfigError(f"{key}: {name} cannot be read: {error.strerror}") from error
    for number, line in enumerate(lines, start=1):
        try:
            line.decode()
        except UnicodeDecodeError as error:
            byte = line[error.start]
            raise ConfigError(f"{key}: {name}, line {number}: must be UTF-8 text, got byte {byte:#04x}") from error


def _check_rows(key: str, name: str, rows, config: RunConfig, source: str = "default") -> None:
    """Rows must exist, have the columns, and hold prompts and answers that can be used."""
    input_key, label_key = config.data.input_key, config.data.label_key
    for option, column in (("data.input_key", input_key), ("data.label_key", label_key)):
        if column is not None and column not in rows.column_names:
            raise ConfigError(f"{option}: {name} has no column {column!r}; it has {', '.join(rows.column_names)}")
    if len(rows) == 0:
        raise ConfigError(f"{key}: {name} has no rows")
    _check_column(key, name, rows, input_key, functools.partial(_check_prompt, is_chat=config.data.apply_chat_template))
    if not (config.reward.remote_url or config.train.agent_func_path):
        has_sources = "datasource" in rows.column_names
        sources = [source_name(cell, source) for cell in rows["datasource"]] if has_sources else [source] * len(rows)
        verifiers = [verifier_for(s, config.coba.verifier, config.coba.verifier_of) for s in sources]
        _check_column(key, name, rows, label_key, lambda answer, i: check_label(verifiers[i], answer))


def _check_column(key: str, name: str, rows, column: str, check: Callable[[object, int], None]) -> None:
    """Call ``check(cell, row)`` on every cell; its ValueError gets file, row and column."""
    try:
        cells = list(rows[column])
    except UnicodeDecodeError as error:  # a table's text is decoded when it is read
        raise ConfigError(f"{key}: {name}, column {column!r}: must be UTF-8 text, {error}") from error
    for i, cell in enumerate(cells):
        try:
            check(cell, i)
        except ValueError as error:
            raise ConfigError(f"{key}: {name}, row {i}, column {column!r}: {error}") from error


def _check_prompt(prompt: object, row: int, *, is_chat: bool) -> None:
    if isinstance(prompt, str):
        if not prompt.strip():
            raise ValueError("the prompt is empty")
    elif isinstance(prompt, list) and is_chat:
        if not prompt or not all(map(_is_message, prompt)):
            raise ValueError(f'a chat must be a list of {{"role": ..., "content": ...}}, got {prompt!r:.100}')
    else:
        raise ValueError(
            "the prompt must be text, or a list of chat messages with data.apply_chat_template, "
            f"got {type(prompt).__name__}: {prompt!r:.100}"
        )


def _is_message(message: object) -> bool:
    return isinstance(message, dict) and isinstance(message.get("role"), str) and "content" in message


def _sources_of(rows) -> set[str]:
    """Data sources of the rows, as the trainer names them."""
    return set(map(source_name, rows["datasource"])) if "datasource" in rows.column_names else {"default"}


def _check_best_metric(tables: list, metric: str) -> None:
    match = re.fullmatch(r"eval_(.+)_pass\d+", metric)
    if not match:
        return
    sources: set[str] = set()
    for rows in tables:
        sources |= _sources_of(rows)
    if match[1] not in sources:
        raise ConfigError(
            f"ckpt.best_metric_key: eval.dataset has no datasource {match[1]!r}, got {metric!r}; "
            f"it has {', '.join(sorted(sources))}"
        )
