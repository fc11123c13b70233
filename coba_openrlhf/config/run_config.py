"""The whole configuration of a run, and the door through which it comes in.

    defaults  <  --config FILE (several: later ones win)  <  --dotted.option value

``load_config`` checks names and types (jsonargparse does the types), ``rules.check`` the combinations.
Both raise ``ConfigError`` before anything expensive starts. A configuration is never changed afterwards.
"""

import dataclasses
import difflib
import re
import typing
from dataclasses import dataclass, field

import jsonargparse
import yaml

from .coba_options import CobaOptions
from .error import ConfigError
from .upstream_options import (
    ActorOptions,
    AlgoOptions,
    CkptOptions,
    CriticOptions,
    DataOptions,
    DsOptions,
    EvalOptions,
    LoggerOptions,
    RefOptions,
    RewardOptions,
    RolloutOptions,
    TrainOptions,
    VllmOptions,
)
from .yaml_file import read_yaml


@dataclass
class RunConfig:
    """All options of ``coba_openrlhf.train_grpo``.

    Args:
        actor: Policy.
        ref: Reference policy.
        data: Training prompts.
        rollout: Sampling.
        coba: Rollout budgets.
        reward: Scores.
        train: Training loop.
        algo: Algorithm.
        vllm: Generation engines.
        ds: DeepSpeed.
        eval: Evaluation.
        ckpt: Checkpoints.
        logger: Logging.
        critic: Not used.
        local_rank: Set by launchers; leave it alone.
        use_ms: Load models and data from ModelScope.
    """

    actor: ActorOptions = field(default_factory=ActorOptions)
    ref: RefOptions = field(default_factory=RefOptions)
    data: DataOptions = field(default_factory=DataOptions)
    rollout: RolloutOptions = field(default_factory=RolloutOptions)
    coba: CobaOptions = field(default_factory=CobaOptions)
    reward: RewardOptions = field(default_factory=RewardOptions)
    train: TrainOptions = field(default_factory=TrainOptions)
    algo: AlgoOptions = field(default_factory=AlgoOptions)
    vllm: VllmOptions = field(default_factory=VllmOptions)
    ds: DsOptions = field(default_factory=DsOptions)
    eval: EvalOptions = field(default_factory=EvalOptions)
    ckpt: CkptOptions = field(default_factory=CkptOptions)
    logger: LoggerOptions = field(default_factory=LoggerOptions)
    critic: CriticOptions = field(default_factory=CriticOptions)
    local_rank: int = -1
    use_ms: bool = False


def flatten(config: object, prefix: str = "") -> dict[str, object]:
    """``{"actor.adam.lr": 1e-6, ...}`` of a configuration or of one of its groups."""
    flat: dict[str, object] = {}
    for f in dataclasses.fields(config):  # type: ignore[arg-type]
        value = getattr(config, f.name)
        if dataclasses.is_dataclass(value):
            flat.update(flatten(value, f"{prefix}{f.name}."))
        else:
            flat[prefix + f.name] = value
    return flat


def to_yaml(config: RunConfig) -> str:
    """The configuration as YAML that ``--config`` reads back to an equal one, except for the API key."""
    if config.logger.wandb.key:
        wandb = dataclasses.replace(config.logger.wandb, key="hidden")
        config = dataclasses.replace(config, logger=dataclasses.replace(config.logger, wandb=wandb))
    plain = yaml.safe_load(yaml.safe_dump(_tuples_to_lists(dataclasses.asdict(config))))
    return yaml.safe_dump(plain, sort_keys=False)


def _tuples_to_lists(node: object) -> object:
    if isinstance(node, dict):
        return {key: _tuples_to_lists(value) for key, value in node.items()}
    return list(node) if isinstance(node, tuple) else node


def make_parser() -> jsonargparse.ArgumentParser:
    """Parser of ``train_grpo``: every option of ``RunConfig`` plus ``--config`` and ``--dry_run``."""
    parser = jsonargparse.ArgumentParser(
        prog="python -m coba_openrlhf.train_grpo",
        description="GRPO with capability-oriented rollout budgets (CoBA-RL) on OpenRLHF, Ray, vLLM and DeepSpeed.",
        exit_on_error=False,
        default_env=False,
    )
    parser.add_argument("--config", action="config", help="YAML file; may be given several times, later ones win.")
    parser.add_argument(
        "--dry_run",
        type=bool,
        default=False,
        help="Check the configuration, print it with the placement and the cost of a step, and exit.",
    )
    parser.add_class_arguments(RunConfig, as_group=False)
    return parser


def load_config(argv: list[str]) -> tuple[RunConfig, bool]:
    """Parse a command line.

    Args:
        argv: Arguments after the program name. OpenRLHF's spellings work: a bare ``--flag`` switches a
            boolean on, and ``--option 0.2 0.28`` gives a pair.

    Returns:
        The configuration and whether ``--dry_run`` was given.

    Raises:
        ConfigError: Unknown key (with the nearest valid one), wrong type, unreadable file.
        SystemExit: After ``--help``.
    """
    kinds = _option_kinds()
    argv = _files_first(_spell_out(argv, kinds))
    _check_names(argv, kinds)
    _refuse_times(argv, kinds)
    parser = make_parser()
    try:
        parsed = parser.parse_args(argv)
        values = parser.instantiate(parsed)
    except (jsonargparse.ArgumentError, TypeError, ValueError) as error:
        raise ConfigError(str(error)) from error
    fields = {f.name: getattr(values, f.name) for f in dataclasses.fields(RunConfig)}
    config = RunConfig(**fields)
    for key, value in flatten(config).items():
        # jsonargparse lets null through from a file, whatever the option's type.
        if value is None and type(None) not in typing.get_args(kinds[key]):
            raise ConfigError(f"{key} must not be null")
    return config, bool(parsed.dry_run)


def _option_kinds() -> dict[str, object]:
    """Dotted name of every option -> its type."""

    def walk(cls: type, prefix: str) -> dict[str, object]:
        kinds: dict[str, object] = {}
        hints = typing.get_type_hints(cls)
        for f in dataclasses.fields(cls):
            kind = hints[f.name]
            if dataclasses.is_dataclass(kind):
                kinds.update(walk(typing.cast(type, kind), f"{prefix}{f.name}."))
            else:
                kinds[prefix + f.name] = kind
        return kinds

    return {"config": str, "dry_run": bool, **walk(RunConfig, "")}


def _takes_several(kind: object) -> bool:
    return any(typing.get_origin(k) in (tuple, list) for k in (kind, *typing.get_args(kind)))


def _spell_out(argv: list[str], kinds: dict[str, object]) -> list[str]:
    """Rewrite OpenRLHF's argparse spellings into one value per option.

    ``--ds.packing_samples`` becomes ``--ds.packing_samples true`` and ``--actor.adam.betas 0.9 0.95``
    becomes ``--actor.adam.betas [0.9, 0.95]``.
    """
    out: list[str] = []
    i = 0
    while i < len(argv):
        option = argv[i]
        out.append(option)
        i += 1
        if not option.startswith("--") or "=" in option:
            continue
        values = []
        while i < len(argv) and not argv[i].startswith("--"):
            values.append(argv[i])
            i += 1
        kind = kinds.get(option[2:])
        if kind is float and values in (["inf"], ["-inf"]):
            values = [values[0].replace("inf", ".inf")]  # YAML's spelling
        if kind is bool and not values:
            out.append("true")
        elif len(values) > 1 and _takes_several(kind):
            out.append(f"[{', '.join(values)}]")
        elif len(values) == 1 and typing.get_origin(kind) is list and not values[0].startswith("["):
            out.append(f"[{values[0]}]")
        else:
            out.extend(values)
    return out


def _files_first(argv: list[str]) -> list[str]:
    """Move ``--config FILE`` to the front: jsonargparse lets whatever comes later win, files included."""
    files: list[str] = []
    options: list[str] = []
    i = 0
    while i < len(argv):
        width = 2 if argv[i] == "--config" else 1
        (files if argv[i].partition("=")[0] == "--config" else options).extend(argv[i : i + width])
        i += width
    return files + options


def _check_names(argv: list[str], kinds: dict[str, object]) -> None:
    """Refuse unknown options, on the command line and in the files it names."""
    groups = {name.rsplit(".", depth)[0] for name in kinds for depth in range(1, name.count(".") + 1)}
    for i, arg in enumerate(argv):
        if not arg.startswith("--"):
            continue
        name, _, inline = arg[2:].partition("=")
        if name == "config":
            file = inline or (argv[i + 1] if i + 1 < len(argv) else "")
            for key in _keys_of_file(file, kinds):
                if key in groups and key not in kinds:
                    raise ConfigError(f"{file}: {key} must hold options as a mapping, got nothing or a single value")
                if key not in kinds:
                    raise ConfigError(f"{file}: unknown key {key!r}{_nearest(key, kinds)}")
        elif name not in kinds and name not in groups | {"help", "print_config"}:
            raise ConfigError(f"unknown option --{name}{_nearest(name, kinds)}")


def _refuse_times(argv: list[str], kinds: dict[str, object]) -> None:
    """YAML reads 3:7 as 187, minutes and seconds; ``yaml_file.py`` does the same for files."""
    for i, arg in enumerate(argv):
        name, _, inline = arg.removeprefix("--").partition("=")
        text = inline or (argv[i + 1] if arg.startswith("--") and i + 1 < len(argv) else "")
        kind = kinds.get(name)
        is_text = str in (kind, *typing.get_args(kind))
        if arg.startswith("--") and kind is not None and not is_text and re.search(r"\d:\d", text):
            raise ConfigError(f"{name} must be a number, got {text!r}")


def _keys_of_file(file: str, kinds: dict[str, object]) -> list[str]:
    def walk(node: dict[str, object], prefix: str) -> list[str]:
        keys: list[str] = []
        for key, value in node.items():
            # A mapping is a group of options, unless an option's value is one.
            is_group = isinstance(value, dict) and value and f"{prefix}{key}" not in kinds
            keys += walk(value, f"{prefix}{key}.") if is_group else [f"{prefix}{key}"]
        return keys

    return walk(read_yaml(file), "")


def _nearest(name: str, kinds: dict[str, object]) -> str:
    close = difflib.get_close_matches(name, list(kinds), n=1, cutoff=0.6)
    same_leaf = [k for k in kinds if k.rsplit(".", 1)[-1] == name.rsplit(".", 1)[-1]]
    best = close or same_leaf[:1]
    return f"; did you mean {best[0]!r}?" if best else "; see --help for all options"
