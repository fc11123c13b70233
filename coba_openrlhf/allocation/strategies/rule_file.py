"""Budget rules of the user's own."""

import importlib.util
import sys
from hashlib import sha256
from inspect import isabstract
from pathlib import Path

from .base import Strategy


def rule_identity(name: str) -> str:
    """What a saved state knows a rule file by: its name, its class and its content, wherever it lies.

    Raises:
        ValueError: The file does not exist.
    """
    path, class_name = _split(name)
    return f"{path.name}:{class_name} sha256:{sha256(path.read_bytes()).hexdigest()[:16]}"


def _split(name: str) -> tuple[Path, str]:
    path_text, _, class_name = name.rpartition(":")
    path = Path(path_text)
    if not path.is_file():
        raise ValueError(f"strategy must name an existing file as path/to/rule.py:ClassName, got {name!r}: no {path}")
    return path, class_name


def load_rule(name: str) -> type[Strategy]:
    """The class that ``path/to/rule.py:ClassName`` names; executes the file.

    Raises:
        ValueError: The file or the class does not exist, or is no budget rule. An error of the file itself is
            raised as it is.
    """
    path, class_name = _split(name)
    # A name of its own: two rules called rule.py are two modules. Registered, because pickles ask for it by name.
    module_name = f"coba_rule_{path.stem}_{sha256(str(path.resolve()).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None and spec.loader is not None, path
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[module_name]
        raise
    rule = getattr(module, class_name, None)
    if not isinstance(rule, type) or not issubclass(rule, Strategy):
        raise ValueError(
            f"strategy must name a subclass of coba_openrlhf.allocation.Strategy, got {name!r}: {class_name!r} is "
            + ("not defined in the file" if rule is None else f"{rule!r}")
        )
    if isabstract(rule):
        lacking = ", ".join(sorted(rule.__abstractmethods__))
        raise ValueError(f"strategy {name!r} must define {lacking}, or it cannot be used")
    return rule
