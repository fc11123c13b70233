"""Python files of the user. Reward functions and agents are read but not run: that is the engines' business."""

import ast
import os
from pathlib import Path

from coba_openrlhf.allocation import Allocator
from coba_openrlhf.allocation.config import is_rule_file
from coba_openrlhf.config import ConfigError, RunConfig
from coba_openrlhf.config.allocation import to_allocation_config
from coba_openrlhf.config.namespace import reward_urls
from coba_openrlhf.config.rules import name_options

# Any of these can define a name that the text does not show.
DYNAMIC_NAMES = {"exec", "eval", "globals", "locals", "vars", "setattr", "__getattr__", "__dict__"}


def check_user_code(config: RunConfig) -> None:
    """Check the file of ``reward.remote_url`` or ``train.agent_func_path``.

    Raises:
        ConfigError: No such file, not Python, or without the name that is taken from it.
    """
    for file in reward_urls(config):
        if file.endswith(".py"):
            _check_file("reward.remote_url", file, "reward_func", "a function reward_func(queries, prompts, labels)")
    _check_rule(config)
    if config.train.agent_func_path:
        _check_file("train.agent_func_path", config.train.agent_func_path, "AgentExecutor", "a class AgentExecutor")


def _check_rule(config: RunConfig) -> None:
    """Run a budget rule of the user's own on a small batch: unlike a reward function it needs nothing but numpy."""
    if not is_rule_file(config.coba.strategy):
        return
    try:
        Allocator(to_allocation_config(config.coba, config.train.seed)).warm_up()
    except Exception as error:  # whatever the user's code raises
        detail = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        raise ConfigError(f"coba.strategy: {config.coba.strategy} cannot be used: {name_options(detail)}") from error


def _check_file(key: str, file: str, name: str, what: str) -> None:
    if not os.path.isfile(file):
        raise ConfigError(f"{key}: no such file: {file} (current folder: {Path.cwd()})")
    try:
        tree = ast.parse(Path(file).read_bytes(), filename=file)
    except SyntaxError as error:
        place = f", line {error.lineno}" if error.lineno else ""
        raise ConfigError(f"{key}: {file}{place} is not valid Python: {error.msg}") from error
    except (OSError, ValueError) as error:
        raise ConfigError(f"{key}: {file} cannot be read: {error}") from error
    if not may_define(tree, name):
        raise ConfigError(f"{key}: {file} must define {what}, got no such name at its top level")


def may_define(tree: ast.Module, name: str) -> bool:
    """Whether running the module can leave it with ``name``; yes in every case of doubt."""
    return any(_is_dynamic(node, name) for node in ast.walk(tree)) or any(
        _binds(node, name) for node in _walk_top_level(tree)
    )


def _is_dynamic(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Name(id=used) | ast.Attribute(attr=used) | ast.FunctionDef(name=used):
            return used in DYNAMIC_NAMES or (isinstance(node, ast.Attribute) and used == name)
        case ast.Global(names=names):
            return name in names
        case ast.ImportFrom(names=names):
            return any(alias.name == "*" for alias in names)
    return False


def _binds(node: ast.AST, name: str) -> bool:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return node.name == name
        case ast.Import() | ast.ImportFrom():
            return any((alias.asname or alias.name.partition(".")[0]) == name for alias in node.names)
        case ast.Name(ctx=ast.Store()):
            return node.id == name
        case ast.ExceptHandler() | ast.MatchAs() | ast.MatchStar():
            return node.name == name
    return False


def _walk_top_level(tree: ast.AST):
    """All nodes but those inside functions and classes, whose names stay there."""
    for node in ast.iter_child_nodes(tree):
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield from _walk_top_level(node)
