"""Found before any model loads, with the place that was looked at."""

import json

import pytest

from coba_openrlhf import preflight
from coba_openrlhf.config import ConfigError
from tests.rollouts import base_config


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_rows(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def config_of(changes=None):
    base = {"data.prompt_dataset": "train.jsonl", "ds.attn_implementation": "sdpa", "coba.verifier": "exact"}
    return base_config({**base, **(changes or {})})


def message_of(changes=None, device="cpu"):
    with pytest.raises(ConfigError) as error:
        preflight.check_machine(config_of(changes), device)
    return str(error.value)


def test_good_files_pass(here):
    write_rows(here / "train.jsonl", {"input": "1+1=", "answer": "2"})
    write_rows(here / "eval.jsonl", {"input": "1+2=", "answer": 3})
    preflight.check_machine(config_of({"eval.dataset": "eval.jsonl", "coba.verifier": "numeric"}), "cpu")


def test_missing_data_file(here):
    assert message_of() == f"data.prompt_dataset: no such file: train.jsonl (current folder: {here})"


def test_missing_second_file(here):
    write_rows(here / "train.jsonl", {"input": "1+1=", "answer": "2"})
    assert "no such file: more.csv" in message_of({"data.prompt_dataset": "train.jsonl, more.csv"})
    assert "eval.dataset: no such file: eval.jsonl" in message_of({"eval.dataset": "eval.jsonl"})


@pytest.mark.parametrize(
    ("changes", "option", "wanted"),
    [
        ({"data.input_key": "question"}, "data.input_key", "question"),
        ({"data.label_key": "gold"}, "data.label_key", "gold"),
    ],
)
def test_missing_column_names_file_wanted_and_present(here, changes, option, wanted):
    write_rows(here / "train.jsonl", {"input": "1+1=", "answer": "2"})
    assert message_of(changes) == f"{option}: train.jsonl has no column {wanted!r}; it has input, answer"


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("train.csv", "input,answer\n", "no data"),
        ("train.jsonl", "", "StopIteration"),
        ("train.jsonl", '{"input": \n', "JSON parse error"),
    ],
    ids=["header only", "empty", "broken"],
)
def test_file_without_rows(here, name, text, reason):
    (here / name).write_text(text)
    message = message_of({"data.prompt_dataset": name})
    assert message.startswith(f"data.prompt_dataset: {name} has no readable rows: ")
    assert reason in message


def test_parquet_without_rows(here):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"input": pa.array([], pa.string()), "answer": pa.array([], pa.string())}), "t.parquet")
    assert "t.parquet has no" in message_of({"data.prompt_dataset": "t.parquet"})


@pytest.mark.parametrize(
    ("label", "verifier", "rule"),
    [
        ("", "exact", "empty"),
        (None, "exact", "empty"),
        ("twelve", "numeric", "finite number"),
        ("nan", "numeric", "finite number"),
    ],
)
def test_bad_label_names_file_row_and_column(here, label, verifier, rule):
    rows = [{"input": "1+1=", "answer": "2"}, {"input": "1+2=", "answer": "3"}, {"input": "x", "answer": label}]
    write_rows(here / "train.jsonl", *rows)
    message = message_of({"coba.verifier": verifier})
    assert message.startswith("data.prompt_dataset: train.jsonl, row 2, column 'answer': ")
    assert rule in message


def test_own_rewards_need_no_labels(here):
    (here / "reward.py").write_text("def reward_func(queries, prompts, labels): ...")
    write_rows(here / "train.jsonl", {"input": "1+1="})
    preflight.check_machine(config_of({"data.label_key": None, "reward.remote_url": "reward.py"}), "cpu")


@pytest.mark.parametrize("key", ["reward.remote_url", "train.agent_func_path"])
def test_missing_python_file(here, key):
    write_rows(here / "train.jsonl", {"input": "1+1=", "answer": "2"})
    assert message_of({key: "mine.py"}) == f"{key}: no such file: mine.py (current folder: {here})"


def test_missing_model_folder(here):
    message = message_of({"actor.model_name_or_path": "./model"})
    assert message == f"actor.model_name_or_path: no config.json in ./model (current folder: {here})"


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"ds.attn_implementation": "flash_attention_2"}, ["ds.attn_implementation", "sdpa", "flash_attention_2"]),
        ({"train.colocate_all": True}, ["train.colocate_all"]),
        ({"vllm.tensor_parallel_size": 2}, ["vllm.tensor_parallel_size must be 1", "got 2"]),
        ({"ds.param_dtype": "fp16"}, ["ds.param_dtype must be bf16", "got fp16"]),
    ],
)
def test_what_a_cpu_cannot_do(here, changes, parts):
    write_rows(here / "train.jsonl", {"input": "1+1=", "answer": "2"})
    message = message_of(changes)
    assert all(part in message for part in parts)
    preflight.check_machine(config_of(changes), "cuda")


def test_adam_offload_without_compiler(here, monkeypatch):
    write_rows(here / "train.jsonl", {"input": "1+1=", "answer": "2"})
    monkeypatch.setenv("PATH", str(here))
    assert "ds.adam_offload" in message_of({"ds.adam_offload": True}, device="cuda")


def test_new_run_needs_an_unused_folder(tmp_path):
    preflight.check_run_dir(tmp_path, resume=False, checkpoint=None)
    (tmp_path / "metrics.jsonl").touch()
    preflight.check_run_dir(tmp_path, resume=False, checkpoint=None)
    (tmp_path / "metrics.jsonl").write_text('{"step": 1}\n')
    preflight.check_run_dir(tmp_path, resume=True, checkpoint="global_step1")
    with pytest.raises(ConfigError, match=f"coba.run_dir: {tmp_path} already holds a run.*ckpt.load_enable"):
        preflight.check_run_dir(tmp_path, resume=False, checkpoint=None)


def test_resuming_a_run_without_checkpoint_erases_nothing(tmp_path):
    (tmp_path / "metrics.jsonl").write_text('{"step": 1}\n')
    with pytest.raises(ConfigError, match=r"no complete checkpoint was found.*ckpt.save_steps"):
        preflight.check_run_dir(tmp_path, resume=True, checkpoint=None)


@pytest.mark.parametrize(
    ("changes", "gpus"),
    [
        ({}, 2),
        ({"algo.kl.init_coef": 0.1, "ref.num_gpus_per_node": 2}, 4),
        ({"algo.kl.init_coef": 0.1, "ref.num_gpus_per_node": 1, "train.colocate_actor_ref": True}, 2),
        ({"train.colocate_all": True}, 1),
        (
            {"actor.num_nodes": 2, "actor.num_gpus_per_node": 4, "vllm.num_engines": 3, "vllm.tensor_parallel_size": 2},
            14,
        ),
    ],
)
def test_gpus_needed(changes, gpus):
    assert preflight.gpus_needed(base_config(changes)) == gpus


def test_describe_shows_the_arithmetic(tmp_path):
    text = preflight.describe(base_config({"rollout.max_new_tokens": 100}), tmp_path, "cpu")
    assert "1024 prompts x 8 = 8192 rollouts, 64 optimiser step(s) of 128" in text
    assert "at most 819,200 generated" in text
    assert "2..128 per prompt" in text
    assert "none (no KL)" in text


def test_written_configuration(tmp_path):
    preflight.write_config(tmp_path / "a" / "run", "x: 1\n")
    assert (tmp_path / "a" / "run" / "config.yaml").read_text() == "x: 1\n"


def test_revisits_are_described_only_where_there_are_any(tmp_path):
    changes = {"coba.revisit.share": 0.25, "coba.revisit.cooldown": 3}
    assert "prompts         25% of a step met before, but not in the last 3 step(s)" in preflight.describe(
        base_config(changes), tmp_path, "cpu"
    )
    assert "met before" not in preflight.describe(base_config({}), tmp_path, "cpu")
