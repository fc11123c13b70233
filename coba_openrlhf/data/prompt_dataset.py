"""Prompts with an identity that survives shuffling, generation and restarts."""

import hashlib
import json
from collections import Counter

import coba_openrlhf.device.ready  # noqa: F401  isort: skip
from openrlhf.datasets import PromptDataset
from openrlhf.datasets.prompts_dataset import preprocess_data
from openrlhf.datasets.utils import blending_datasets

from coba_openrlhf.data.source_name import source_name


class IdentifiedPromptDataset(PromptDataset):
    """OpenRLHF's prompt data set, plus ``prompt_ids`` and ``row_numbers`` (the rows of ``dataset`` that are left).

    An id is a hash of the row's content (source, prompt, label) and of how many equal rows came before it, so
    that it is the same in every run, and two equal rows are still two prompts.

    Args:
        dataset: Rows as loaded by OpenRLHF's ``blending_datasets``.
        tokenizer: Tokenizer of the policy.
        strategy: OpenRLHF strategy (carries the options).
        input_template: ``data.input_template``.
        max_prompt_tokens: Longer prompts are left out and counted in ``num_overlong``.

    Raises:
        ValueError: No prompt is left.
    """

    def __init__(self, dataset, tokenizer, strategy, input_template=None, *, max_prompt_tokens: int) -> None:
        super().__init__(dataset, tokenizer, strategy, input_template=input_template)
        num_rows = len(self.prompts)
        self.datasources = [source_name(cell) for cell in self.datasources]  # as read: also null, or numbers
        lengths = [len(ids) for ids in tokenizer(self.prompts, add_special_tokens=False)["input_ids"]]
        kept = [i for i, length in enumerate(lengths) if length <= max_prompt_tokens]
        self.num_overlong = num_rows - len(kept)
        self.row_numbers = kept
        if not kept:
            raise ValueError(
                f"all {num_rows} prompts are longer than data.max_len - rollout.max_new_tokens = {max_prompt_tokens} "
                f"tokens (shortest: {min(lengths, default=0)})"
            )
        for column in ("prompts", "labels", "images", "datasources"):
            values = getattr(self, column)
            setattr(self, column, [values[i] for i in kept])
        self.prompt_ids = content_ids(self.datasources, self.prompts, self.labels)

    @property
    def fingerprint(self) -> str:
        """Hash over all ids in order: equal exactly for the same prompts in the same order."""
        return hashlib.sha256("".join(self.prompt_ids).encode()).hexdigest()[:16]


def content_ids(datasources: list[str], prompts: list[str], labels: list[object]) -> list[str]:
    """16 hexadecimal digits per row; see ``IdentifiedPromptDataset``."""
    ids = []
    seen: Counter[str] = Counter()
    for row in zip(datasources, prompts, labels, strict=True):
        content = json.dumps([str(cell) for cell in row], ensure_ascii=False)
        seen[content] += 1
        ids.append(hashlib.sha256(f"{seen[content]}\n{content}".encode()).hexdigest()[:16])
    return ids


def load_prompts(strategy, tokenizer, *, evaluation: bool = False) -> IdentifiedPromptDataset:
    """Load ``data.prompt_dataset``, or ``eval.dataset`` for evaluation.

    Returns:
        The data set without overlong prompts.

    Raises:
        ValueError: No usable prompt.
    """
    args = strategy.args
    names = args.eval.dataset if evaluation else args.data.prompt_dataset
    split = args.eval.split if evaluation else args.data.prompt_split
    probabilities = None if evaluation else args.data.prompt_probs
    rows = _load_rows(names, probabilities, split, strategy)[: args.data.max_samples]
    return to_prompts(rows, strategy, tokenizer)


def to_prompts(rows: list[dict[str, object]], strategy, tokenizer) -> IdentifiedPromptDataset:
    """Rows with the template, the system message and the length limit of the options.

    Args:
        rows: Rows with the columns ``data.input_key`` and ``data.label_key``.
        strategy: OpenRLHF strategy (carries the options).
        tokenizer: Tokenizer of the policy.

    Raises:
        ValueError: No usable prompt.
    """
    args = strategy.args
    rows = [_wrapped(row, args.data, args.coba.data.system_prompt) for row in rows]
    room_for_response = args.rollout.max_new_tokens or 1
    return IdentifiedPromptDataset(
        rows,
        tokenizer,
        strategy,
        input_template=args.data.input_template,
        max_prompt_tokens=args.data.max_len - room_for_response,
    )


def render(row: dict[str, object], options, tokenizer, system_prompt: str | None = None) -> str:
    """The prompt of one row as ``load_prompts`` makes it.

    Args:
        row: A row of the data set.
        options: The ``data`` options.
        tokenizer: Tokenizer of the policy.
        system_prompt: ``coba.data.system_prompt``.
    """
    template = tokenizer.apply_chat_template if options.apply_chat_template else None
    prompt, _ = preprocess_data(
        _wrapped(row, options, system_prompt), options.input_template, options.input_key, apply_chat_template=template
    )
    return prompt


def _wrapped(row: dict[str, object], options, system_prompt: str | None) -> dict[str, object]:
    """Upstream ignores ``data.input_template`` in a chat and has no system message; here both go into it."""
    prompt = row[options.input_key]
    if not options.apply_chat_template:
        return row
    if options.input_template and isinstance(prompt, str):
        prompt = options.input_template.format(prompt)
    if system_prompt is not None:
        chat = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
        has_own = bool(chat) and chat[0].get("role") == "system"
        prompt = chat if has_own else [{"role": "system", "content": system_prompt}, *chat]
    return row | {options.input_key: prompt}


def _load_rows(names: str, probabilities: str | None, split: str, strategy) -> list[dict[str, object]]:
    """Rows of all data sets, one after the other, or mixed by ``probabilities``.

    Without probabilities each data set is loaded by itself: upstream joins them as typed tables, which fails
    when one file's answers are whole numbers and the next one's are not.
    """
    args = strategy.args
    seed, at_most = args.train.seed, args.data.max_samples
    if probabilities is not None:
        return list(blending_datasets(names, probabilities, strategy, seed, at_most, dataset_split=split))
    rows: list[dict[str, object]] = []
    for name in names.split(","):
        rows += blending_datasets(name, None, strategy, seed, at_most, dataset_split=split)
    return rows
