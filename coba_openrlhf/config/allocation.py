"""From ``--coba.*`` to the allocation library's own configuration."""

import dataclasses
import os

from coba_openrlhf.allocation import AllocationConfig, PromptRevisits
from coba_openrlhf.allocation.config import is_rule_file

from .coba_options import CobaOptions

# Where the option of a library's field is not just ``coba.<field>``.
OPTION_OF_FIELD = {
    "budget_min": "coba.budget.min",
    "budget_max": "coba.budget.max",
    "pass_rate_source": "coba.pass_rate.source",
    "pass_rate_window": "coba.pass_rate.window",
    "pass_rate_decay": "coba.pass_rate.decay",
    "prior_strength": "coba.pass_rate.prior_strength",
    "optimism": "coba.pass_rate.optimism",
    "probe_rollouts": "coba.pass_rate.probe_rollouts",
    "unseen_pass_rate": "coba.pass_rate.unseen",
    "success_rule": "coba.pass_rate.success_rule",
    "success_threshold": "coba.pass_rate.success_threshold",
    "seed": "train.seed",
}


def option_names() -> dict[str, str]:
    """The option that a user types, for every field of ``AllocationConfig``."""
    fields = [field.name for field in dataclasses.fields(AllocationConfig)]
    return {name: OPTION_OF_FIELD.get(name, f"coba.{name}") for name in fields}


def to_revisits(options: CobaOptions, seed: int) -> PromptRevisits:
    """Who draws the prompts that come again.

    Args:
        options: ``coba.*``.
        seed: ``train.seed``.

    Raises:
        ValueError: A value is out of range.
    """
    revisit = options.revisit
    return PromptRevisits(revisit.share, revisit.cooldown, revisit.sharpness, seed)


def to_allocation_config(options: CobaOptions, seed: int) -> AllocationConfig:
    """The allocator's configuration.

    Args:
        options: ``coba.*``.
        seed: ``train.seed``.

    Raises:
        ValueError: A value is out of range; the message uses the library's field names.
    """
    values: dict[str, object] = {}
    for field, option in option_names().items():
        if field == "seed":
            continue
        value: object = options
        for part in option.split(".")[1:]:
            value = getattr(value, part)
        values[field] = value
    if is_rule_file(options.strategy):
        # Actors have other working directories than the driver.
        file, _, name = options.strategy.rpartition(":")
        values["strategy"] = f"{os.path.realpath(file)}:{name}"
    return AllocationConfig(**values, seed=seed)  # type: ignore[arg-type]
