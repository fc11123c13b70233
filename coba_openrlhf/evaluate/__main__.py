"""``python -m coba_openrlhf.evaluate``.

    command line ─> problems ─> prompts ─> settings.json ─> engines ─> responses.parquet/ ─> results.json, results.md
    └──────────── refused here, before Ray starts ──────┘

Exit status: 0 when all responses are there, 2 for what cannot be evaluated, 1 for what failed on the way, 130 after
Ctrl-C; what is finished is kept, and the same command continues.
"""

import contextlib
import sys
from collections import Counter
from collections.abc import Sequence

from coba_openrlhf.config import ConfigError

from .command_line import CommandLine, read_command_line


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    try:
        return _run(read_command_line(argv))
    except ConfigError as error:
        print(f"no evaluation: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted: the same command continues", file=sys.stderr)
        return 130


def _run(command: CommandLine) -> int:
    from coba_openrlhf.device import device_kind
    from coba_openrlhf.evaluation import settings_file
    from coba_openrlhf.evaluation.response_files import ResponseFiles
    from coba_openrlhf.preflight.user_code import check_user_code

    from .benchmarks import load_problems
    from .model import check_folder, check_model
    from .settings import settings_of

    try:
        device = device_kind()
    except ValueError as error:
        raise ConfigError(str(error)) from error
    if device == "cpu" and command.config.vllm.tensor_parallel_size > 1:
        raise ConfigError("vllm.tensor_parallel_size must be 1 where there is no CUDA")
    check_folder(command.config.actor.model_name_or_path or "")
    problems = load_problems(command)
    check_model(command.config)
    check_user_code(command.config)
    settings = settings_of(command, problems)

    from .generation import PromptSet, generate, start_engines

    prompts = PromptSet(command, problems)
    with contextlib.ExitStack() as folder:
        try:
            folder.enter_context(settings_file.held(command.out))
            continues = settings_file.claim(command.out, settings)
        except settings_file.SettingsChangedError as error:
            raise ConfigError(
                f"{command.out} holds an evaluation with other settings ({error}); choose another --out"
            ) from error
        except settings_file.FolderInUseError as error:
            raise ConfigError(f"--out: {error}") from error
        except OSError as error:
            raise ConfigError(f"--out: cannot write to {command.out}: {error.strerror}") from error
        files = ResponseFiles(command.out)
        missing = set(prompts.dataset.prompt_ids) - files.finished()
        _announce(command, prompts, len(missing), continues=continues)
        if missing:
            _generate(command, prompts, device, files, start_engines, generate)
        overlong = Counter(str(row["datasource"]) for row in problems.rows) - Counter(prompts.dataset.datasources)
        _finish(command, settings, files, dict(overlong))
    return 0


def _generate(command: CommandLine, prompts, device: str, files, start_engines, generate) -> None:
    import ray

    from coba_openrlhf.launch import close_engines

    try:
        engines = start_engines(command, prompts, device)
        try:
            for p in generate(command, prompts, engines, files):
                print(
                    f"[{p.num_done:>{len(str(p.num_problems))}}/{p.num_problems}] {p.num_responses} responses  "
                    f"{p.num_tokens:,} tokens  {p.num_tokens / p.seconds:,.0f} tokens/s  {p.seconds:,.0f} s"
                    + (f"  about {p.seconds_left:,.0f} s left" if p.num_done < p.num_problems else ""),
                    flush=True,
                )
        finally:
            close_engines(engines)
    finally:
        ray.shutdown()


def _announce(command: CommandLine, prompts, num_missing: int, *, continues: bool) -> None:
    config, total = command.config, len(prompts.dataset)
    k = config.eval.n_samples_per_prompt
    print(f"model         {config.actor.model_name_or_path}")
    print(f"problems      {total} x {k} responses, at temperature {config.eval.temperature:g}")
    if not config.data.apply_chat_template and prompts.tokenizer.chat_template:
        print("chat template off, though the tokenizer has one (--data.apply_chat_template)")
    print(f"folder        {command.out}")
    if continues:
        print(f"continuing    {total - num_missing} problems are there, {num_missing} are left")
    sys.stdout.flush()


def _finish(command: CommandLine, settings: dict[str, object], files, overlong: dict[str, int]) -> None:
    from coba_openrlhf.evaluation.summary import summarise

    from .results import JSON_FILE, MARKDOWN_FILE, render, write_results

    summaries = summarise(files.read(), seed=command.config.train.seed)
    write_results(command.out, summaries, settings, model=command.model, num_overlong=overlong)
    print(f"\n{render(summaries, overlong)}\n")
    print(f"written       {command.out}: {JSON_FILE}, {MARKDOWN_FILE}, responses.parquet")


if __name__ == "__main__":
    sys.exit(main())
