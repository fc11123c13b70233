"""What the responses of an evaluation depend on."""

import hashlib
from pathlib import Path

from coba_openrlhf.config.namespace import reward_urls

from .benchmarks import Problems
from .command_line import CommandLine
from .model import model_identity


def settings_of(command: CommandLine, problems: Problems) -> dict[str, object]:
    """Everything that changes responses or scores; not the number of engines, nor how problems are chunked."""
    config = command.config
    return {
        "model": model_identity(config.actor.model_name_or_path or ""),
        "problems": {
            source: _fingerprint(
                [i for row, i in zip(problems.rows, problems.ids, strict=True) if row["datasource"] == source]
            )
            for source in dict.fromkeys(str(row["datasource"]) for row in problems.rows)
        },
        "k": config.eval.n_samples_per_prompt,
        "temperature": config.eval.temperature,
        "top_p": config.rollout.top_p if config.coba.eval.top_p is None else config.coba.eval.top_p,
        "max_new_tokens": config.rollout.max_new_tokens,
        "max_len": config.data.max_len,
        "seed": config.train.seed,
        "apply_chat_template": config.data.apply_chat_template,
        "input_template": config.data.input_template,
        "system_prompt": config.coba.data.system_prompt,
        "verifier": config.coba.verifier,
        "verifier_of": config.coba.verifier_of,
        "verifier_timeout": config.coba.verifier_timeout,
        "verifier_memory_mb": config.coba.verifier_memory_mb,
        "verifier_tolerance": config.coba.verifier_tolerance,
        "reward": [_with_content(url) for url in reward_urls(config)],
        "agent": config.train.agent_func_path and _with_content(config.train.agent_func_path),
    }


def _with_content(name: str) -> str:
    """A reward function's or agent's file with a hash of its text: an edited one scores by another rule."""
    file = Path(name)
    return f"{name}, sha256 {hashlib.sha256(file.read_bytes()).hexdigest()[:16]}" if file.is_file() else name


def _fingerprint(ids: list[str]) -> str:
    return f"{len(ids)} rows, sha256 {hashlib.sha256(''.join(ids).encode()).hexdigest()[:16]}"
