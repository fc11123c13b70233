"""The command line of an evaluation, and the configuration that it means."""

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from coba_openrlhf.config import ConfigError, RunConfig, check, load_config

EPILOG = """\
MODEL is a folder in Hugging Face format, a name of the Hugging Face hub, or the folder of a training run, whose final
model is taken with the run's template and verifier. A benchmark is a name (a file NAME.parquet or .jsonl in --data,
made by python -m coba_openrlhf.data.prepare) or the path of a JSONL, CSV or parquet file.

Options of training are taken too, among them --data.apply_chat_template, --data.input_template,
--coba.data.system_prompt, --coba.verifier, --vllm.tensor_parallel_size, --vllm.enforce_eager, --config FILE.
"""
# Short option -> option of the configuration.
SHORT = {
    "k": ("eval.n_samples_per_prompt", int, "responses per problem"),
    "temperature": ("eval.temperature", float, "of sampling; 0 is greedy"),
    "top_p": ("coba.eval.top_p", float, "nucleus of sampling, in (0, 1]"),
    "max_new_tokens": ("rollout.max_new_tokens", int, "longest response, in tokens"),
    "max_len": ("data.max_len", int, "longest prompt and response together, in tokens"),
    "seed": ("train.seed", int, "of sampling and of the intervals"),
    "engines": ("vllm.num_engines", int, "vLLM engines; does not change results"),
}
# What training has and an evaluation has not: sharing GPUs with a policy, checkpoints, data of its own.
FIXED = {
    "train.colocate_all": "false",
    "train.colocate_actor_ref": "false",
    "vllm.enable_sleep": "false",
    "ds.enable_sleep": "false",
    "ckpt.load_enable": "false",
    "ckpt.best_metric_key": "none",
    "algo.advantage.is_correction_level": "off",
    "data.input_key": "prompt",
    "data.label_key": "label",
    "data.prompt_dataset": "benchmarks",
    "data.prompt_probs": "null",
    "eval.dataset": "null",
}


@dataclass(frozen=True)
class CommandLine:
    """What was asked for.

    Attributes:
        model: As typed.
        benchmarks: Names and paths.
        data: Folder of prepared benchmarks.
        input_key: Column with the problem, in files that are named by path.
        label_key: Column with the answer, in those.
        out: Folder of the results.
        chunk: Problems per file of responses.
        max_problems: First rows of every benchmark to take; None for all.
        config: Sampling, template, verifier, engines; checked.
    """

    model: str
    benchmarks: list[str]
    data: Path
    input_key: str
    label_key: str
    out: Path
    chunk: int
    max_problems: int | None
    config: RunConfig


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"{message}; see --help")


def read_command_line(argv: Sequence[str] | None) -> CommandLine:
    """Parse and check the arguments.

    Raises:
        ConfigError: An option that does not exist or a value that cannot be used.
        SystemExit: After ``--help``.
    """
    options, rest = _make_parser().parse_known_args(argv)
    benchmarks = [name.strip() for name in options.benchmarks.split(",")]
    if "" in benchmarks or len(set(benchmarks)) < len(benchmarks):
        raise ConfigError(f"--benchmarks must be names between commas, each once, got {options.benchmarks!r}")
    for name in ("k", "chunk", "max_problems", "engines"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise ConfigError(f"--{name} must be >= 1, got {value}")
    run = Path(options.model)
    model, is_run = _model_of(run, options.model)
    out = options.out or (run / "evaluate" if is_run else Path("runs") / f"evaluate-{Path(model).name}")
    config = _configuration(options, rest, model, run / "config.yaml" if is_run else None)
    return CommandLine(
        model=options.model,
        benchmarks=benchmarks,
        data=options.data,
        input_key=options.input_key,
        label_key=options.label_key,
        out=Path(os.path.realpath(out)),
        chunk=options.chunk,
        max_problems=options.max_problems,
        config=config,
    )


def _make_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m coba_openrlhf.evaluate",
        description="avg@k and pass@k of a model on benchmarks, with intervals; an interrupted evaluation continues.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--model", required=True, help="checkpoint folder, hub name, or folder of a run")
    parser.add_argument("--benchmarks", required=True, help="names or files, separated by commas")
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder of prepared data sets (default: data)")
    parser.add_argument("--input_key", default="prompt", help="column with the problem, in files (default: prompt)")
    parser.add_argument("--label_key", default="label", help="column with the answer, in files (default: label)")
    for name, (option, kind, what) in SHORT.items():
        parser.add_argument(f"--{name}", type=kind, help=f"{what} ({option})")
    parser.add_argument("--out", type=Path, help="folder of the results; default: below the run, or runs/")
    parser.add_argument("--chunk", type=int, default=64, help="problems between two savings (default: 64)")
    parser.add_argument("--max_problems", type=int, help="take the first rows of every benchmark only")
    return parser


def _model_of(folder: Path, name: str) -> tuple[str, bool]:
    """The model to load, and whether ``folder`` is a run."""
    if not (folder / "config.yaml").is_file():
        return name, False
    if not (folder / "model" / "config.json").is_file():
        raise ConfigError(f"--model: the run {name} has no final model ({folder / 'model'}); name a checkpoint of it")
    return str(folder / "model"), True


def _configuration(options: argparse.Namespace, rest: list[str], model: str, run_config: Path | None) -> RunConfig:
    words = ["--config", str(run_config)] if run_config else []
    given = {option: getattr(options, name) for name, (option, _, _) in SHORT.items()}
    given = {option: str(value) for option, value in given.items() if value is not None}
    config, dry_run = load_config([*words, *rest, *_spelt({**FIXED, **given, "actor.model_name_or_path": model})])
    if dry_run:
        raise ConfigError("--dry_run belongs to training")
    samples = config.eval.n_samples_per_prompt
    if config.eval.temperature == 0 and samples > 1:
        raise ConfigError(f"--k must be 1 with --temperature 0, where all responses are the same, got {samples}")
    check(config)
    return config


def _spelt(options: dict[str, str]) -> list[str]:
    return [word for name, value in options.items() for word in (f"--{name}", value)]
