"""Local data that cannot be trained on, found before anything starts."""

import json
import re
from decimal import Decimal

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from coba_openrlhf.config import ConfigError
from coba_openrlhf.preflight.data_sets import check_data_sets
from tests.rollouts import base_config


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_rows(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def check(changes=None):
    check_data_sets(base_config({"data.prompt_dataset": "train.jsonl", "coba.verifier": "exact", **(changes or {})}))


def message_of(changes=None):
    with pytest.raises(ConfigError) as error:
        check(changes)
    return str(error.value)


@pytest.mark.parametrize("prompt", [None, 12, 1.5, True, ["a"], {"a": 1}, "", "  "])
def test_prompts_are_text(here, prompt):
    write_rows(here / "train.jsonl", {"input": "1+1=", "answer": "2"}, {"input": prompt, "answer": "2"})
    message = message_of({"data.input_template": "Q: {}"})
    assert message.startswith("data.prompt_dataset: train.jsonl, row 1, column 'input': the prompt ")


def test_chats_need_the_chat_template(here):
    write_rows(here / "train.jsonl", {"input": [{"role": "user", "content": "1+1="}], "answer": "2"})
    check({"data.apply_chat_template": True})
    assert "row 0, column 'input': the prompt must be text, or a list of chat messages with" in message_of()


@pytest.mark.parametrize("chat", [[], ["1+1="], [{"content": "1+1="}], [{"role": "user"}]])
def test_chats_are_lists_of_messages(here, chat):
    write_rows(here / "train.jsonl", {"input": chat, "answer": "2"})
    assert 'a chat must be a list of {"role": ..., "content": ...}' in message_of({"data.apply_chat_template": True})


@pytest.mark.parametrize("verifier", ["exact", "numeric", "math", "multiple_choice"])
@pytest.mark.parametrize("answer", [[["2"]], [], {"value": 2}, "2020-01-01"])
def test_answers_are_text_or_numbers(here, verifier, answer):
    """The reader of JSON lines turns a date into a datetime, whose text is another one."""
    write_rows(here / "train.jsonl", {"input": "1+1=", "answer": answer})
    message = message_of({"coba.verifier": verifier})
    assert message.startswith("data.prompt_dataset: train.jsonl, row 0, column 'answer': the reference answer ")


@pytest.mark.parametrize("answer", [["2"], [2]])
def test_only_mathematics_takes_lists(here, answer):
    write_rows(here / "train.jsonl", {"input": "1+1=", "answer": answer})
    check({"coba.verifier": "math"})
    for verifier in ("exact", "numeric", "multiple_choice"):
        assert f"must be text or a number for verifier {verifier}, got list" in message_of({"coba.verifier": verifier})


def test_answers_are_checked_by_the_verifier_of_their_source(here):
    write_rows(
        here / "train.jsonl",
        {"input": "1+1=", "answer": "two", "datasource": "words"},
        {"input": "1+1=", "answer": "2", "datasource": "digits"},
        {"input": "1+2=", "answer": "three", "datasource": "digits"},
    )
    check()
    message = message_of({"coba.verifier_of": {"digits": "numeric"}})
    assert message.startswith(
        "data.prompt_dataset: train.jsonl, row 2, column 'answer': the reference answer must be a"
    )


def test_a_verifier_for_a_source_that_no_row_has(here):
    write_rows(here / "train.jsonl", {"input": "1+1=", "answer": "2", "datasource": "sums"})
    write_rows(here / "test.jsonl", {"input": "1+1=", "answer": "2"})
    check({"coba.verifier_of": {"default": "math", "sums": "math"}, "eval.dataset": "test.jsonl"})
    assert message_of({"coba.verifier_of": {"sum": "math"}, "eval.dataset": "test.jsonl"}) == (
        "coba.verifier_of: no row has datasource 'sum'; the data have 'default', 'sums' (train.jsonl, test.jsonl)"
    )
    check({"coba.verifier_of": {"sum": "math"}, "eval.dataset": "org/elsewhere"})


@pytest.mark.parametrize("answer", [2, 2.5, True, Decimal("2.50"), "2"])
def test_texts_and_numbers_pass(here, answer):
    datasets.Dataset.from_dict({"input": ["1+1="], "answer": [answer]}).to_parquet("train.parquet")
    check({"data.prompt_dataset": "train.parquet"})


def test_own_rewards_take_any_answer(here):
    write_rows(here / "train.jsonl", {"input": "1+1=", "answer": ["2", "two"]})
    check({"reward.remote_url": "http://localhost"})


def test_rows_beyond_max_samples_do_not_count(here):
    write_rows(here / "train.jsonl", {"input": "1+1=", "answer": "2"}, {"input": "x", "answer": None})
    check({"data.max_samples": 1})
    assert "row 1" in message_of()


@pytest.mark.parametrize(
    ("name", "text"), [("t.jsonl", '{"input": "é", "answer": "2"}\n'), ("t.csv", "input,answer\né,2\n")]
)
@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_files_are_utf8(here, name, text, encoding):
    (here / name).write_bytes(text.encode(encoding))
    message = message_of({"data.prompt_dataset": name})
    assert re.fullmatch(rf"data.prompt_dataset: {name}, line [12]: must be UTF-8 text, got byte 0x(e9|ff)", message)


def test_tables_are_utf8(here):
    latin = pa.Array.from_buffers(pa.string(), 2, pa.array([b"1+1=", b"caf\xe9"], pa.binary()).buffers())
    pq.write_table(pa.table({"input": latin, "answer": ["2", "2"]}), "train.parquet")
    message = message_of({"data.prompt_dataset": "train.parquet"})
    assert message.startswith("data.prompt_dataset: train.parquet, column 'input': must be UTF-8 text, ")


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow"])
def test_damaged_tables(here, name):
    (here / name).write_bytes(b"PAR1 nonsense")
    assert f"{name} has no readable rows: " in message_of({"data.prompt_dataset": name})


@pytest.mark.parametrize("name", ["TRAIN.JSONL", "train.txt", "train", "train.py"])
def test_files_with_other_endings(here, name):
    (here / name).write_text('{"input": "1+1=", "answer": "2"}\n')
    assert f"{name} must end in .json, .jsonl, .csv, .parquet, .arrow, got " in message_of(
        {"data.prompt_dataset": name}
    )


@pytest.mark.parametrize("name", ["./data", "data/a/b", "TRAIN.JSONL"])
def test_missing_files_and_folders(here, name):
    assert f"data.prompt_dataset: no such file or folder: {name} " in message_of({"data.prompt_dataset": name})


@pytest.mark.parametrize("folder", ["me@host", "a,b"])
def test_paths_that_openrlhf_would_split(here, monkeypatch, folder):
    (here / folder).mkdir()
    monkeypatch.chdir(here / folder)
    write_rows(here / folder / "train.jsonl", {"input": "1+1=", "answer": "2"})
    assert "the path must not contain '@' or ','" in message_of()


def test_a_file_has_one_split(here):
    write_rows(here / "train.jsonl", {"input": "1+1=", "answer": "2"})
    assert (
        message_of({"data.prompt_split": "test"}) == "data.prompt_split: train.jsonl has no split 'test'; it has train"
    )
    assert message_of({"eval.dataset": "train.jsonl", "eval.split": "test"}).startswith(
        "eval.split: train.jsonl has no"
    )


def test_folder_of_files(here):
    (here / "data").mkdir()
    write_rows(here / "data" / "train.jsonl", {"input": "1+1=", "answer": "2"})
    write_rows(here / "data" / "test.jsonl", {"input": "1+1=", "answer": None})
    check({"data.prompt_dataset": "data"})
    assert "data.prompt_split: data has no split 'dev'; it has " in message_of(
        {"data.prompt_dataset": "data", "data.prompt_split": "dev"}
    )
    assert "row 0, column 'answer'" in message_of({"data.prompt_dataset": "data", "data.prompt_split": "test"})


def test_folder_without_data(here):
    (here / "data").mkdir()
    assert "data.prompt_dataset: data has no readable rows: " in message_of({"data.prompt_dataset": "data"})


def test_folder_of_save_to_disk(here):
    rows = datasets.Dataset.from_dict({"input": ["1+1="], "answer": ["2"]})
    rows.save_to_disk("single")
    datasets.DatasetDict({"test": rows}).save_to_disk("several")
    check({"data.prompt_dataset": "single"})
    assert "several has no split 'train'; it has test" in message_of({"data.prompt_dataset": "several"})


def test_best_metric_names_a_source_of_the_data(here):
    write_rows(here / "train.jsonl", {"input": "1+1=", "answer": "2"})
    write_rows(here / "eval.jsonl", {"input": "1+1=", "answer": "2", "datasource": "sums"})
    changes = {"eval.dataset": "eval.jsonl", "ckpt.best_metric_key": "eval_sums_pass1"}
    check(changes)
    message = message_of({**changes, "ckpt.best_metric_key": "eval_default_pass1"})
    assert message.startswith("ckpt.best_metric_key: eval.dataset has no datasource 'default'")
    assert message.endswith("it has sums")


@pytest.fixture
def model(here):
    """A folder with a tokenizer that makes one token per word."""
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "[EOS]": 1}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]", eos_token="[EOS]").save_pretrained("model")
    (here / "model" / "config.json").write_text("{}")
    return {"actor.model_name_or_path": "model", "data.max_len": 5, "rollout.max_new_tokens": 2}


def test_one_prompt_must_fit(here, model):
    write_rows(here / "train.jsonl", {"input": "a b c d e", "answer": "2"}, {"input": "a b c d", "answer": "2"})
    message = message_of(model)
    assert message.startswith(
        "data.prompt_dataset: all 2 prompts are longer than data.max_len - rollout.max_new_tokens"
    )
    assert message.endswith(" = 3 tokens (shortest: 4)")
    write_rows(here / "more.jsonl", {"input": "a b c", "answer": "2"})
    check({**model, "data.prompt_dataset": "train.jsonl,more.jsonl"})
    assert "all 1 prompts" in message_of({**model, "data.prompt_dataset": "more.jsonl", "data.input_template": "Q {}"})


def test_chat_template_must_exist(here, model):
    write_rows(here / "train.jsonl", {"input": "a", "answer": "2"})
    message = message_of({**model, "data.apply_chat_template": True})
    assert message == "data.apply_chat_template: the tokenizer of model has no chat template"


def test_chat_template_may_refuse_a_chat(here, model):
    (here / "model" / "chat_template.jinja").write_text("{{ raise_exception('roles must alternate') }}")
    write_rows(here / "train.jsonl", {"input": "a", "answer": "2"})
    message = message_of({**model, "data.apply_chat_template": True})
    assert message == "data.prompt_dataset: row 0 cannot be rendered as a prompt: roles must alternate"


def test_damaged_tokenizer(here, model):
    (here / "model" / "tokenizer.json").write_text("{}")
    write_rows(here / "train.jsonl", {"input": "a", "answer": "2"})
    assert message_of(model).startswith("actor.model_name_or_path: cannot load the tokenizer of model: ")
