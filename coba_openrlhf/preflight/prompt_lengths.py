"""Does any prompt leave room for a response? The trainer leaves out those that do not."""

import os

from coba_openrlhf.config import ConfigError, RunConfig


def check_lengths(key: str, tables: list, config: RunConfig) -> None:
    """Check that one prompt fits, with the tokenizer of a local model; other models' are left to the trainer.

    Args:
        key: Option that names the data.
        tables: Rows of all its data sets, already checked for columns and types.
        config: A checked configuration.

    Raises:
        ConfigError: The tokenizer does not load, has no chat template but needs one, or no prompt fits.
    """
    model = config.actor.model_name_or_path or ""
    if not os.path.isdir(model):
        return
    tokenizer = _load_tokenizer(model, use_fast=not config.data.disable_fast_tokenizer)
    if hasattr(tokenizer, "image_processor"):
        return
    if config.data.apply_chat_template and not tokenizer.chat_template:
        raise ConfigError(f"data.apply_chat_template: the tokenizer of {model} has no chat template")
    from coba_openrlhf.data.prompt_dataset import render

    longest = config.data.max_len - (config.rollout.max_new_tokens or 1)
    shortest: int | None = None
    num_prompts = 0
    for rows in tables:
        for row in rows:
            try:
                prompt = render(row, config.data, tokenizer, config.coba.data.system_prompt)
            except Exception as error:  # a template is a program of the model's author and can raise anything
                raise ConfigError(f"{key}: row {num_prompts} cannot be rendered as a prompt: {error}") from error
            length = len(tokenizer(prompt, add_special_tokens=False)["input_ids"])
            if length <= longest:
                return
            num_prompts += 1
            shortest = length if shortest is None else min(shortest, length)
    raise ConfigError(
        f"{key}: all {num_prompts} prompts are longer than data.max_len - rollout.max_new_tokens = {longest} tokens "
        f"(shortest: {shortest})"
    )


def _load_tokenizer(model: str, *, use_fast: bool):
    import coba_openrlhf.device.ready  # noqa: F401  isort: skip
    from openrlhf.utils.utils import get_tokenizer

    try:
        return get_tokenizer(model, None, "left", use_fast=use_fast)
    except Exception as error:  # damaged files surface as whatever the library stumbled over
        raise ConfigError(f"actor.model_name_or_path: cannot load the tokenizer of {model}: {error!r}") from error
