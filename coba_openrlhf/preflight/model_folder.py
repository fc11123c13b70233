"""A local folder with a Hugging Face model: are its parts there?"""

import json
import os
from pathlib import Path

from coba_openrlhf.config import ConfigError

KEY = "actor.model_name_or_path"
# Part of a model -> patterns of which one file must be there.
PARTS = {
    "tokenizer": ("tokenizer*", "vocab*", "*.model", "*.tiktoken"),
    "weights": ("*.safetensors", "*.bin"),
}


def check_model_folder(name: str) -> None:
    """Check a local folder by the names of its files; a Hugging Face id is left to Hugging Face.

    Raises:
        ConfigError: No such folder, or a part of the model is missing.
    """
    looks_local = name.startswith((".", "/", "~")) or name.count("/") > 1
    if not looks_local and not os.path.exists(name):
        return
    folder = Path(name)
    if not os.path.isfile(folder / "config.json"):
        raise ConfigError(f"{KEY}: no config.json in {name} (current folder: {Path.cwd()})")
    _read_json(folder / "config.json")
    for part, patterns in PARTS.items():
        if not any(any(folder.glob(pattern)) for pattern in patterns):
            raise ConfigError(f"{KEY}: no {part} in {name}; looked for {', '.join(patterns)}")
    for index in folder.glob("*.index.json"):
        shards = _read_json(index).get("weight_map", {})
        missing = sorted({shard for shard in shards.values() if not (folder / shard).is_file()})
        if missing:
            raise ConfigError(f"{KEY}: {index} names {', '.join(missing)}, which {name} does not have")


def _read_json(file: Path) -> dict:
    try:
        tree = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{KEY}: {file} is not readable JSON: {error}") from error
    if not isinstance(tree, dict):
        raise ConfigError(f"{KEY}: {file} must hold a mapping, got {type(tree).__name__}")
    return tree
