"""A ``--config`` file as the tree it holds."""

import os
from pathlib import Path

import yaml

from .error import ConfigError


def read_yaml(file: str) -> dict[str, object]:
    """The options in ``file``, nested as written.

    Raises:
        ConfigError: No such file, not UTF-8, not YAML, not a mapping, or a key that stands twice.
    """
    if not os.path.isfile(file):
        raise ConfigError(f"--config: no such file: {file!r} (current folder: {Path.cwd()})")
    try:
        text = Path(file).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise ConfigError(f"{file}: must be UTF-8 text, got byte {byte:#04x} at position {error.start}") from error
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from error
    try:
        root, tree = yaml.compose(text, Loader=yaml.SafeLoader), yaml.safe_load(text)
    except (yaml.YAMLError, ValueError) as error:  # a ValueError is a date that does not exist
        raise ConfigError(f"{file}: not valid YAML: {error}") from error
    if not isinstance(tree, dict):
        raise ConfigError(f"{file}: must hold options as a mapping, got {type(tree).__name__}")
    _refuse_repeated_keys(root, file, "", {}, ())
    _refuse_times(root, file)
    return tree


def _refuse_times(node: yaml.Node, file: str) -> None:
    """YAML reads 3:7 as 187, minutes and seconds, and 12:30 as a number where a text was meant."""
    children = node.value if isinstance(node, yaml.SequenceNode) else []
    if isinstance(node, yaml.MappingNode):
        children = [child for pair in node.value for child in pair]
    for child in children:
        _refuse_times(child, file)
    is_number = node.tag in ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
    if isinstance(node, yaml.ScalarNode) and is_number and ":" in node.value:
        raise ConfigError(
            f"{file}: line {node.start_mark.line + 1}: {node.value} would be read as minutes and seconds; write a "
            "number, or quote a text"
        )


def _refuse_repeated_keys(
    node: yaml.Node, file: str, prefix: str, line_of: dict[str, int], parents: tuple[yaml.Node, ...]
) -> None:
    """YAML's loader keeps the last of two blocks of one name and drops the first without a word."""
    if not isinstance(node, yaml.MappingNode):
        return
    if any(node is parent for parent in parents):
        raise ConfigError(f"{file}: {prefix.rstrip('.')!r} must not contain itself")
    for key_node, value_node in node.value:
        name, line = f"{prefix}{key_node.value}", key_node.start_mark.line + 1
        if name in line_of:
            raise ConfigError(f"{file}: key {name!r} must stand once, got it in lines {line_of[name]} and {line}")
        line_of[name] = line
        _refuse_repeated_keys(value_node, file, f"{name}.", line_of, (*parents, node))
