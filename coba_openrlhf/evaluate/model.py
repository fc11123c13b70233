"""The model of an evaluation: is it there, how long are its sequences, which one is it."""

import hashlib
import os
from pathlib import Path

from coba_openrlhf.config import ConfigError, RunConfig
from coba_openrlhf.preflight.model_folder import check_model_folder

KEY = "--model"
_PATTERNS = ("*.json", "*.safetensors", "*.bin", "*.model", "*.jinja", "*.txt", "*.tiktoken")
_BLOCK, _NUM_BLOCKS = 1 << 20, 16


def check_folder(name: str) -> None:
    """Check a local model by the names of its files.

    Raises:
        ConfigError: No such folder, or an incomplete one.
    """
    try:
        check_model_folder(name)
    except ConfigError as error:
        raise ConfigError(str(error).replace("actor.model_name_or_path", KEY)) from error


def check_model(config: RunConfig) -> None:
    """Check what can be checked before an engine loads the model.

    Raises:
        ConfigError: The hub has no such model, or sequences are longer than the model's positions.
    """
    name = config.actor.model_name_or_path or ""
    from transformers import AutoConfig

    try:
        positions = getattr(AutoConfig.from_pretrained(name), "max_position_embeddings", None)
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
        raise ConfigError(
            f"{KEY}: {name} is no folder (current folder: {Path.cwd()}) and cannot be loaded from the hub: {reason}"
        ) from error
    if positions is not None and config.data.max_len > positions:
        raise ConfigError(f"--max_len must be <= {positions}, the model's positions, got {config.data.max_len}")


def model_identity(name: str) -> str:
    """What tells models apart in the settings: a hub name, or a hash of a folder's files.

    Of large files the hash has the size and blocks spread over the whole: other weights have another hash,
    without reading all of them.
    """
    if not os.path.isdir(name):
        return name
    digest = hashlib.sha256()
    files = {file for pattern in _PATTERNS for file in Path(name).glob(pattern) if file.name != "manifest.json"}
    for file in sorted(files):
        size = file.stat().st_size
        digest.update(f"{file.name}\n{size}\n".encode())
        with file.open("rb") as stream:
            if size <= _BLOCK * _NUM_BLOCKS:
                digest.update(stream.read())
                continue
            for i in range(_NUM_BLOCKS):
                stream.seek((size - _BLOCK) * i // (_NUM_BLOCKS - 1))
                digest.update(stream.read(_BLOCK))
    return f"sha256 {digest.hexdigest()[:16]}"
