"""The rules of a replay: the run's own settings, changed by the command line."""

import dataclasses
import difflib
import functools
import itertools
from dataclasses import dataclass, field
from pathlib import Path

from coba_openrlhf.allocation import AllocationConfig
from coba_openrlhf.config import ConfigError, flatten, load_config
from coba_openrlhf.config.allocation import option_names, to_allocation_config
from coba_openrlhf.config.coba_options import CobaOptions
from coba_openrlhf.config.rules import name_options
from coba_openrlhf.config.yaml_file import read_yaml

from .error import ReplayError

STRATEGY = "coba.strategy"
# The log has counts of successes, not scores.
FIXED = ("coba.pass_rate.success_rule", "coba.pass_rate.success_threshold")
# What a version did that did not know the option, where that is not its default.
_BEFORE_THE_OPTION = {"coba.fallback_steps": "0"}


@dataclass(frozen=True)
class Rule:
    """Settings with a name.

    Attributes:
        label: How the rule is called in tables and pictures.
        config: All settings.
        options: What differs from the run's own, as typed; option -> value.
    """

    label: str
    config: AllocationConfig
    options: dict[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Request:
    """What a command line asks for between two ``--strategy``.

    Attributes:
        options: Option -> value, as typed.
        grid: Option -> values; all combinations are replayed.
    """

    options: dict[str, str]
    grid: dict[str, list[str]]


@dataclass(frozen=True)
class Family:
    """The rules of one request: one, or one per point of its grid.

    Attributes:
        label: What they have in common.
        grid: Option -> values; empty for a single rule.
        rules: In the order of ``itertools.product`` over the grid's values.
    """

    label: str
    grid: dict[str, list[str]]
    rules: list[Rule]


@dataclass(frozen=True)
class RunOptions:
    """The allocation settings of a run.

    Attributes:
        config: The settings.
        absent: Options that the run's ``config.yaml`` lacks, because its version did not know them.
        unknown: Options under ``coba`` in it that this version does not know.
    """

    config: AllocationConfig
    absent: list[str]
    unknown: list[str]


def read_options(run: Path) -> RunOptions:
    """The allocation settings in ``config.yaml``; all its other options are left alone.

    Raises:
        ReplayError: No such file.
        ConfigError: It cannot be read, or a value cannot be.
    """
    file = run / "config.yaml"
    if not file.is_file():
        raise ReplayError(f"{run} is not the folder of a run: it has no config.yaml")
    in_file = _flatten(read_yaml(str(file)))
    names = option_names()
    texts = {option: _text(in_file[option]) for option in names.values() if option in in_file}
    absent = [option for option in names.values() if option not in in_file]
    texts |= {option: text for option, text in _BEFORE_THE_OPTION.items() if option in absent}
    known = flatten(CobaOptions(), "coba.")
    unknown = [key for key in in_file if key.startswith("coba.") and key not in known]
    try:
        config, _ = load_config([f"--{option}={text}" for option, text in texts.items()])
        return RunOptions(to_allocation_config(config.coba, config.train.seed), absent, unknown)
    except ValueError as error:
        raise ReplayError(f"{file}: {_one_line(name_options(str(error)))}") from error


def make_families(base: AllocationConfig, requests: list[Request]) -> list[Family]:
    """The rules that a command line asks for.

    Raises:
        ReplayError: An option, a value or a combination that cannot be.
    """
    families = []
    for request in requests:
        both = sorted(request.options.keys() & request.grid.keys())
        if both:
            raise ReplayError(f"--{both[0]} must be given once, got a value and a --grid of it")
        points = [dict(zip(request.grid, values, strict=True)) for values in itertools.product(*request.grid.values())]
        rules = [make_rule(base, {**request.options, **point}) for point in points]
        families.append(Family(_label(base, request.options), request.grid, rules))
    return families


def make_rule(base: AllocationConfig, options: dict[str, str]) -> Rule:
    """The run's settings with some changed.

    Args:
        base: The run's settings.
        options: Option -> value, as typed.

    Raises:
        ReplayError: An option, a value or a combination that cannot be.
    """
    label = _label(base, options)
    field_of = {option: name for name, option in option_names().items()}
    changes = {field_of[option]: _parse(option, text) for option, text in options.items()}
    try:
        config = dataclasses.replace(base, **changes)  # type: ignore[arg-type]
    except ValueError as error:
        raise ReplayError(f"{label}: {name_options(str(error))}") from error
    _check_waves(base, config, label)
    return Rule(label, config, options)


def check_option(option: str) -> None:
    """Refuse what does not change budgets.

    Raises:
        ReplayError: Unknown, or without an effect in a replay; the message says which.
    """
    if option in FIXED:
        raise ReplayError(f"--{option} cannot be changed: the log has counts of successes, not scores")
    if option in option_names().values():
        return
    if option in _all_options():
        raise ReplayError(f"--{option} does not affect allocation; see --help for the options that do")
    close = difflib.get_close_matches(option, option_names().values(), n=1, cutoff=0.6)
    raise ReplayError(f"unknown option --{option}" + (f"; did you mean --{close[0]}?" if close else "; see --help"))


def _check_waves(base: AllocationConfig, config: AllocationConfig, label: str) -> None:
    if config.pass_rate_source != "probe":
        return
    if base.pass_rate_source != "probe":
        raise ReplayError(
            f"{label}: coba.pass_rate.source probe needs the log of a run with first waves, "
            f"got one with source {base.pass_rate_source}"
        )
    if config.probe_rollouts != base.probe_rollouts:
        raise ReplayError(
            f"{label}: coba.pass_rate.probe_rollouts must be {base.probe_rollouts} as in the run, whose first waves "
            f"are what is known, got {config.probe_rollouts}"
        )


@functools.cache
def _all_options() -> dict[str, object]:
    config, _ = load_config([])
    return flatten(config)


@functools.cache
def _parse(option: str, text: str) -> object:
    """A value of the option's type; cached, because a grid repeats values and the parser takes a while."""
    check_option(option)
    try:
        config, _ = load_config([f"--{option}={text}"])
    except ConfigError as error:
        raise ReplayError(_one_line(str(error))) from error
    return flatten(config)[option]


def _label(base: AllocationConfig, options: dict[str, str]) -> str:
    # As typed; the run's own rule file by its name, as a whole path is long.
    words = [options.get(STRATEGY) or base.strategy.rpartition("/")[2]]
    words += [f"{option.removeprefix('coba.')}={text}" for option, text in options.items() if option != STRATEGY]
    return " ".join(words)


def _flatten(tree: dict[str, object], prefix: str = "") -> dict[str, object]:
    flat: dict[str, object] = {}
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            flat |= _flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def _text(value: object) -> str:
    """A value of a YAML file as the command line spells it."""
    return "null" if value is None else str(value)


def _one_line(text: str) -> str:
    return " ".join(text.split())
