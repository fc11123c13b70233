"""What an evaluation refuses before Ray starts, and what it writes."""

import json
import subprocess
import sys

import pytest

from coba_openrlhf.config import ConfigError
from coba_openrlhf.evaluate.__main__ import main
from coba_openrlhf.evaluate.benchmarks import find_benchmark, load_problems
from coba_openrlhf.evaluate.command_line import read_command_line
from coba_openrlhf.evaluate.model import model_identity
from coba_openrlhf.evaluate.results import render, write_results
from coba_openrlhf.evaluate.settings import settings_of
from coba_openrlhf.evaluation.intervals import Interval
from coba_openrlhf.evaluation.summary import SourceSummary


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a model by name, one prepared benchmark and two files."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").mkdir()
    for name, text in (("config.json", '{"model_type": "qwen2"}'), ("tokenizer.json", "{}"), ("m.safetensors", "")):
        (tmp_path / "model" / name).write_text(text)
    (tmp_path / "data").mkdir()
    write(tmp_path / "data" / "sums.jsonl", {"prompt": "1+1=", "label": "2"}, {"prompt": "1+2=", "label": "3"})
    write(tmp_path / "mine.jsonl", {"q": "1+1=", "a": 2}, {"q": "1+1=", "a": 2})
    return tmp_path


def write(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def words(**changes):
    options = {"model": "model", "benchmarks": "sums", **changes}
    return [word for name, value in options.items() for word in (f"--{name}", str(value))]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"k": 0}, "--k must be >= 1, got 0"),
        ({"chunk": 0}, "--chunk must be >= 1, got 0"),
        ({"k": "four"}, "argument --k: invalid int value: 'four'; see --help"),
        ({"temperature": 0, "k": 2}, "--k must be 1 with --temperature 0, where all responses are the same, got 2"),
        ({"temperature": -1}, "eval.temperature must be >= 0, got -1.0"),
        ({"top_p": 1.5}, "coba.eval.top_p must be in (0, 1] or null, got 1.5"),
        ({"max_len": 8, "max_new_tokens": 8}, "rollout.max_new_tokens must be >= 1 and < data.max_len, got 8 and 8"),
        ({"benchmarks": "a,,b"}, "--benchmarks must be names between commas, each once, got 'a,,b'"),
        ({"benchmarks": "a,a"}, "--benchmarks must be names between commas, each once, got 'a,a'"),
        ({"tempreature": 1}, "unknown option --tempreature"),
        ({"model": "no/such/model"}, "--model: no config.json in no/such/model"),
        ({"benchmarks": "aime99"}, "--benchmarks: no benchmark 'aime99'; data holds sums. Known to python -m coba_"),
        ({"benchmarks": "no.jsonl"}, "--benchmarks: no such file: no.jsonl (current folder:"),
        ({"benchmarks": "mine.jsonl"}, "--input_key: mine.jsonl has no column 'prompt'; it has q, a"),
        ({"benchmarks": "mine.jsonl", "input_key": "q"}, "--label_key: mine.jsonl has no column 'label'; it has q, a"),
        ({"coba.data.system_prompt": "Hi"}, "coba.data.system_prompt needs data.apply_chat_template, got 'Hi'"),
    ],
)
def test_refused_with_status_2(here, capsys, changes, message):
    assert main(words(**changes)) == 2
    assert f"no evaluation: {message}" in capsys.readouterr().err
    assert not (here / "runs").exists()


def test_a_run_without_a_model(here, capsys):
    (here / "run").mkdir()
    (here / "run" / "config.yaml").write_text("data: {}\n")
    assert main(words(model="run")) == 2
    assert "--model: the run run has no final model (run/model); name a checkpoint of it" in capsys.readouterr().err


def test_a_run_brings_its_template_and_sampling(here):
    (here / "run").mkdir()
    (here / "model").rename(here / "run" / "model")
    (here / "run" / "config.yaml").write_text(
        "data:\n  apply_chat_template: true\n  input_key: q\n  prompt_dataset: gone.jsonl\neval:\n  temperature: 0.7\n"
        "  n_samples_per_prompt: 3\ntrain:\n  colocate_all: true\nvllm:\n  enable_sleep: true\n"
        "coba:\n  verifier: numeric\n  eval:\n    top_p: 0.8\n"
    )
    command = read_command_line(words(model="run", k=5))
    config = command.config
    assert config.actor.model_name_or_path == "run/model" and command.out == here / "run" / "evaluate"
    assert (config.eval.n_samples_per_prompt, config.eval.temperature, config.coba.eval.top_p) == (5, 0.7, 0.8)
    assert config.data.apply_chat_template and config.coba.verifier == "numeric"
    assert (config.data.input_key, config.train.colocate_all, config.vllm.enable_sleep) == ("prompt", False, False)


def test_equal_rows_and_equal_texts_of_two_sources_stay_apart(here):
    write(here / "data" / "other.jsonl", {"prompt": "1+1=", "label": "2"})
    problems = load_problems(read_command_line(words(benchmarks="sums,other")))
    assert [row["datasource"] for row in problems.rows] == ["sums", "sums", "other"]
    assert len(set(problems.ids)) == 3 and problems.row_numbers == [0, 1, 0]
    mine = load_problems(read_command_line(words(benchmarks="mine.jsonl", input_key="q", label_key="a")))
    assert len(set(mine.ids)) == 2 and {row["datasource"] for row in mine.rows} == {"mine"}


def test_problems_are_known_again_without_the_others(here):
    everything = load_problems(read_command_line(words(benchmarks="sums")))
    first = load_problems(read_command_line(words(benchmarks="sums", max_problems=1)))
    assert first.ids == everything.ids[:1]


def test_answers_are_checked_for_the_verifier_of_their_source(here):
    """A file without data sources is a source by its name; an empty cell is one, too."""
    write(here / "letters.jsonl", {"prompt": "Which?", "label": "B"})
    mixed = (
        {"prompt": "Which?", "label": "B", "datasource": None},
        {"prompt": "1+1=", "label": "2", "datasource": "n"},
    )
    write(here / "mixed.jsonl", *mixed)
    for name in ("letters", "mixed"):
        options = {"benchmarks": f"{name}.jsonl", "coba.verifier": "numeric"}
        of_source = {"coba.verifier_of": f"{{{name}: multiple_choice}}"}
        assert load_problems(read_command_line(words(**options, **of_source))).rows[0]["datasource"] == name
        with pytest.raises(ConfigError, match="row 0, column 'label': the reference answer must be a finite number"):
            load_problems(read_command_line(words(**options)))


def test_two_files_of_one_source(here):
    for name in ("a.jsonl", "b.jsonl"):
        write(here / name, {"prompt": "1+1=", "label": "2", "datasource": "s"})
    with pytest.raises(ConfigError, match=r"a.jsonl and b.jsonl both have the data source 's'"):
        load_problems(read_command_line(words(benchmarks="a.jsonl,b.jsonl")))


def test_a_prepared_file_is_found_and_its_note_is_not(here):
    (here / "data" / "sums.source.json").write_text("{}")
    assert find_benchmark("sums", here / "data") == (str(here / "data" / "sums.jsonl"), True)
    assert find_benchmark("mine.jsonl", here / "data") == ("mine.jsonl", False)
    with pytest.raises(ConfigError, match=r"holds sums\. Known"):
        find_benchmark("sum", here / "data")


def test_other_weights_are_another_model(here):
    weights = here / "model" / "m.safetensors"
    weights.write_bytes(bytes(40 << 20))
    first = model_identity("model")
    assert first == model_identity(str(here / "model")) and model_identity("org/name") == "org/name"
    weights.write_bytes(bytes((40 << 20) - 1) + b"\1")
    assert model_identity("model") != first


@pytest.mark.parametrize(("option", "name"), [("reward.remote_url", "reward"), ("train.agent_func_path", "agent")])
def test_an_edited_reward_file_is_another_setting(here, option, name):
    command = read_command_line(words(**{option: "mine.py"}))
    problems = load_problems(command)
    told = []
    for text in ("x = 1\n", "x = 2\n"):
        (here / "mine.py").write_text(text)
        told.append(settings_of(command, problems)[name])
    assert told[0] != told[1] and all("mine.py" in str(value) for value in told)


def test_another_tolerance_is_another_setting(here):
    told = []
    for tolerance in (1e-6, 0.01):
        command = read_command_line(words(**{"coba.verifier": "numeric", "coba.verifier_tolerance": tolerance}))
        told.append(settings_of(command, load_problems(command))["verifier_tolerance"])
    assert told == [1e-6, 0.01]


def test_table_json_and_markdown(tmp_path):
    summaries = [
        SourceSummary(
            source="sums",
            num_problems=2,
            k=2,
            avg=Interval(0.5, 0.25, 0.75),
            passes={1: Interval(0.5, 0.25, 0.75), 2: Interval(0.75, 0.5, 1.0)},
            truncated_rate=0.25,
            unscorable_rate=0.0,
            length_mean=7.5,
            length_median=7.0,
            length_max=9,
        ),
        SourceSummary("one", 1, 1, Interval(1.0, *[float("nan")] * 2), {1: Interval(1.0, 0, 1)}, 0, 0, 1, 1, 1),
    ]
    text = render(summaries, {"sums": 3})
    assert "@2 0.500 [0.250, 0.750]" in text and "@1 1.000 " in text
    assert "WARNING: sums: 3 problems are left out" in text
    assert "WARNING: sums: 25.0% of the responses were cut off" in text
    write_results(tmp_path, summaries, {"k": 2}, model="m", num_overlong={"sums": 3})
    tree = json.loads((tmp_path / "results.json").read_text())
    assert tree["benchmarks"]["sums"]["passes"]["2"] == {"value": 0.75, "low": 0.5, "high": 1.0}
    assert tree["benchmarks"]["sums"]["num_overlong"] == 3 and tree["benchmarks"]["one"]["avg"]["low"] is None
    assert (
        "| sums | 2 | @2 0.500 [0.250, 0.750] | 0.750 [0.500, 1.000] | 25.0% |" in (tmp_path / "results.md").read_text()
    )


def test_refusals_load_none_of_the_training_stack(here):
    code = (
        "import sys; from coba_openrlhf.evaluate.__main__ import main; assert main(sys.argv[1:]) == 2;"
        "assert not {'ray', 'vllm', 'deepspeed'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, *words(k=0)], check=True, cwd=here, capture_output=True)
