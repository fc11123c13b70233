"""Ids by content, and prompts that fit."""

import copy
import json
from types import SimpleNamespace

import coba_openrlhf.device.ready  # noqa: F401  isort: skip
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from coba_openrlhf.data.prompt_dataset import IdentifiedPromptDataset, content_ids, load_prompts, render
from coba_openrlhf.rewards.verifier_choice import require_known_sources
from tests.rollouts import base_args


@pytest.fixture(scope="module")
def tokenizer():
    """One token per word."""
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "one": 1, "two": 2}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]")


def strategy_of(changes=None):
    args = base_args({"data.max_len": 5, "rollout.max_new_tokens": 2, **(changes or {})})
    return SimpleNamespace(args=args, is_rank_0=lambda: False, print=lambda *_: None)


def jsonl(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def ids_of(*rows):
    return content_ids(*(list(column) for column in zip(*rows, strict=True)))


def test_equal_rows_are_two_prompts():
    ids = ids_of(("d", "p", "1"), ("d", "p", "1"), ("d", "p", "1"))
    assert len(set(ids)) == 3
    assert ids[:2] == ids_of(("d", "p", "1"), ("d", "p", "1"))


def test_every_column_counts():
    assert len(set(ids_of(("d", "p", "1"), ("e", "p", "1"), ("d", "q", "1"), ("d", "p", "2")))) == 4


def test_columns_do_not_run_together():
    assert len(set(ids_of(("d", "ab", "c"), ("d", "a", "bc"), ("da", "b", "c"), ('d", "a', "b", "c")))) == 4


def test_id_does_not_depend_on_the_other_rows():
    rows = [("d", "p", "1"), ("d", "q", "2"), ("d", "r", "3")]
    assert ids_of(*rows[::-1]) == ids_of(*rows)[::-1]


def test_ids_are_the_same_in_every_run():
    """Fixed values: a changed hash would orphan every checkpoint."""
    assert ids_of(("default", "1+1=", "2"), ("default", "π ≈ ?", "3,14")) == ["56b83871124d7789", "6f10304a9b1c9497"]


def test_unicode_is_told_apart():
    assert len(set(ids_of(("d", "é", "1"), ("d", "e\u0301", "1"), ("d", "🙂", "1"), ("d", "e", "1")))) == 4


def test_overlong_prompts_are_left_out_and_counted(tokenizer):
    rows = [{"input": text, "answer": text[0]} for text in ("one two one", "one two one two", "two", "a b c d e")]
    dataset = IdentifiedPromptDataset(rows, tokenizer, strategy_of(), max_prompt_tokens=3)
    assert dataset.prompts == ["one two one", "two"]
    assert dataset.labels == ["o", "t"]
    assert dataset.num_overlong == 2
    assert len(dataset) == len(dataset.prompt_ids) == len(dataset.images) == len(dataset.datasources) == 2


def test_no_prompt_left_is_an_error_with_the_numbers(tokenizer):
    rows = [{"input": "one two one two", "answer": "1"}, {"input": "a b c d e", "answer": "1"}]
    with pytest.raises(ValueError, match=r"all 2 prompts are longer than .* = 3 tokens \(shortest: 4\)"):
        IdentifiedPromptDataset(rows, tokenizer, strategy_of(), max_prompt_tokens=3)


def test_fingerprint_is_of_the_prompts_in_order(tokenizer):
    def fingerprint(rows, changes=None):
        return IdentifiedPromptDataset(
            rows, tokenizer, strategy_of(changes), input_template=(changes or {}).get("t"), max_prompt_tokens=3
        ).fingerprint

    rows = [{"input": "one", "answer": "1"}, {"input": "two", "answer": "2"}]
    assert fingerprint(rows) == fingerprint([dict(row) for row in rows])
    assert fingerprint(rows) != fingerprint(rows[::-1])
    assert fingerprint(rows) != fingerprint([{**rows[0], "answer": "3"}, rows[1]])


def test_loading_a_file(tmp_path, tokenizer):
    file = jsonl(
        tmp_path / "train.jsonl",
        [
            {"input": "one", "answer": 1, "datasource": "first"},
            {"input": "a b c d", "answer": 2, "datasource": "first"},
            {"input": "two", "answer": 3, "datasource": "second"},
        ],
    )
    changes = {"data.prompt_dataset": file, "data.input_template": "{} ?"}
    dataset = load_prompts(strategy_of(changes), tokenizer)
    assert dataset.prompts == ["one ?", "two ?"]
    assert dataset.labels == [1, 3]
    assert dataset.datasources == ["first", "second"]
    assert dataset.num_overlong == 1
    assert len(load_prompts(strategy_of({**changes, "data.max_samples": 1}), tokenizer)) == 1


def test_data_sources_are_names(tmp_path, tokenizer):
    """A row without one among rows with one is read as null, and names may be numbers."""
    rows = [{"input": "one", "answer": 1, "datasource": 0}, {"input": "two", "answer": 2}]
    named = [{"input": "one", "answer": 1, "datasource": ""}, {"input": "two", "answer": 2, "datasource": "sums"}]
    files = [jsonl(tmp_path / "numbers.jsonl", rows), jsonl(tmp_path / "named.jsonl", named)]
    dataset = load_prompts(strategy_of({"data.prompt_dataset": ",".join(files)}), tokenizer)
    assert dataset.datasources == ["0", "default", "default", "sums"]
    require_known_sources({"0": "exact", "sums": "exact"}, set(dataset.datasources))


def test_files_with_differing_answer_types_are_joined(tmp_path, tokenizer):
    whole = jsonl(tmp_path / "whole.jsonl", [{"input": "one", "answer": 1}])
    text = jsonl(tmp_path / "text.jsonl", [{"input": "two", "answer": "1/2"}])
    dataset = load_prompts(strategy_of({"data.prompt_dataset": f"{whole},{text}"}), tokenizer)
    assert dataset.prompts == ["one", "two"]
    assert dataset.labels == [1, "1/2"]


def test_held_out_file_is_its_own(tmp_path, tokenizer):
    train = jsonl(tmp_path / "train.jsonl", [{"input": "one", "answer": "1"}])
    held_out = jsonl(tmp_path / "eval.jsonl", [{"input": "two", "answer": "2"}])
    strategy = strategy_of({"data.prompt_dataset": train, "eval.dataset": held_out})
    assert load_prompts(strategy, tokenizer).prompts == ["one"]
    assert load_prompts(strategy, tokenizer, evaluation=True).prompts == ["two"]


def test_the_system_prompt_goes_into_every_chat(tokenizer):
    options = strategy_of({"data.apply_chat_template": True, "data.input_template": "Q {}"}).args.data
    shown = SimpleNamespace(
        apply_chat_template=lambda chat, **_: " | ".join(f"{m['role']}: {m['content']}" for m in chat)
    )
    chat = [{"role": "user", "content": "two"}]
    own = [{"role": "system", "content": "mine"}, *chat]
    assert render({"input": "één"}, options, shown, "Be brief.") == "system: Be brief. | user: Q één"
    assert render({"input": chat}, options, shown, "Be brief.") == "system: Be brief. | user: two"
    assert render({"input": own}, options, shown, "Be brief.") == "system: mine | user: two"
    assert render({"input": "één"}, options, shown) == "user: Q één"
    assert chat == [{"role": "user", "content": "two"}]


def test_the_system_prompt_reaches_training_prompts(tmp_path, tokenizer):
    tokenizer = copy.deepcopy(tokenizer)
    tokenizer.chat_template = "{% for m in messages %}{{ m['content'] }} {% endfor %}"
    file = jsonl(tmp_path / "train.jsonl", [{"input": "two", "answer": "1"}])
    changes = {"data.prompt_dataset": file, "data.apply_chat_template": True, "coba.data.system_prompt": "one"}
    dataset = load_prompts(strategy_of(changes), tokenizer)
    assert dataset.prompts == ["one two "] and dataset.row_numbers == [0]
