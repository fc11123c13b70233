"""Rules for what a run reads: data sets, the template around prompts, reward files and servers."""

import math
import string
from urllib.parse import urlsplit

from .coba_options import VERIFIER_NAMES
from .error import ConfigError, require
from .run_config import RunConfig


def check_inputs(config: RunConfig) -> None:
    """Check names and texts without looking at files.

    Raises:
        ConfigError: The first violated rule, with key, rule and value.
    """
    for key, names in (
        ("data.prompt_dataset", config.data.prompt_dataset),
        ("eval.dataset", config.eval.dataset),
        ("reward.remote_url", config.reward.remote_url),
    ):
        require(
            not names or all(name.strip() for name in names.split(",")),
            f"{key} must be names between commas, none of them empty, got {names!r}",
        )
    _check_probabilities(config)
    _check_template(config.data.input_template)
    system_prompt = config.coba.data.system_prompt
    require(
        system_prompt is None or config.data.apply_chat_template,
        f"coba.data.system_prompt needs data.apply_chat_template, got {system_prompt!r}",
    )
    _check_rewards(config)
    _check_verifiers(config)


def _check_probabilities(config: RunConfig) -> None:
    text = config.data.prompt_probs
    if text is None:
        return
    try:
        probabilities = [float(part) for part in text.split(",")]
    except ValueError as error:
        raise ConfigError(f"data.prompt_probs must be numbers separated by commas, got {text!r}") from error
    num_sets = len((config.data.prompt_dataset or "").split(","))
    require(
        len(probabilities) == num_sets,
        f"data.prompt_probs must have one number per data set, got {text!r} for {num_sets} in data.prompt_dataset",
    )
    # All data sets are read to their end, which one that is never drawn does not reach.
    require(all(p > 0 for p in probabilities), f"data.prompt_probs must be > 0, got {text!r}")
    total = sum(probabilities)
    require(
        math.isclose(total, 1.0, rel_tol=0, abs_tol=1e-8),
        f"data.prompt_probs must add up to 1, got {text!r} = {total:g}",
    )


def _check_template(template: str | None) -> None:
    if template is None:
        return
    rule = "data.input_template must contain {} once, and every other brace doubled ({{ and }})"
    try:
        fields = [part[1:] for part in string.Formatter().parse(template) if part[1] is not None]
    except ValueError as error:
        raise ConfigError(f"{rule}, got {template!r}: {error}") from error
    require(fields == [("", "", None)], f"{rule}, got {template!r}")


def _check_rewards(config: RunConfig) -> None:
    agent = config.train.agent_func_path
    require(not agent or agent.endswith(".py"), f"train.agent_func_path must be a Python file (.py), got {agent!r}")
    origins = [origin.strip() for origin in (config.reward.remote_url or "").split(",") if origin.strip()]
    if len(origins) == 1 and origins[0].endswith(".py"):
        return
    for origin in origins:
        require(
            _is_server(origin),
            f"reward.remote_url must be one Python file (.py) or http:// or https:// addresses, got {origin!r}",
        )


def _check_verifiers(config: RunConfig) -> None:
    chosen = config.coba.verifier_of
    for source, verifier in chosen.items():
        require(
            verifier in VERIFIER_NAMES,
            f"coba.verifier_of: {source!r} must have one of {', '.join(VERIFIER_NAMES)}, got {verifier!r}",
        )
    for key, value in (
        ("reward.remote_url", config.reward.remote_url),
        ("train.agent_func_path", config.train.agent_func_path),
    ):
        require(not (chosen and value), f"coba.verifier_of has no effect with {key}, got {chosen} and {value!r}")


def _is_server(address: str) -> bool:
    try:
        parts = urlsplit(address)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number
        return False
