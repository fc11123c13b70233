"""The entry point up to the moment Ray would start."""

import subprocess
import sys

import pytest

from coba_openrlhf.config import load_config
from coba_openrlhf.train_grpo import main

GOOD = ["--actor.model_name_or_path=org/model", "--data.prompt_dataset=org/data", "--data.label_key=answer"]
GOOD += ["--actor.num_gpus_per_node=1", "--ds.attn_implementation=sdpa"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "actor.model_name_or_path must be set, got None"),
        (["--coba.taw=3"], "unknown option --coba.taw; did you mean 'coba.tau'?"),
        ([*GOOD, "--rollout.batch_size=many"], "rollout.batch_size"),
        ([*GOOD, "--coba.budget.min=9"], "9 * 1024 = 9216 > 1024 * 8 = 8192"),
        ([*GOOD, "--data.prompt_dataset=nowhere.jsonl"], "data.prompt_dataset: no such file: nowhere.jsonl"),
        ([*GOOD, "--coba.run_dir", "x" * 5000], "coba.run_dir: cannot write to"),
        ([*GOOD, "--data.prompt_dataset", f"{'x' * 5000}.jsonl"], "data.prompt_dataset: no such file"),
        ([*GOOD, "--actor.model_name_or_path", f"./{'x' * 5000}"], "actor.model_name_or_path: no config.json"),
        ([*GOOD, "--reward.remote_url", f"{'x' * 5000}.py"], "reward.remote_url: no such file"),
        ([*GOOD, "--ckpt.load_enable", "--coba.run_dir=typo"], "ckpt.load_enable: coba.run_dir must be the folder"),
        (["--config", "nowhere.yaml"], "--config: no such file: 'nowhere.yaml'"),
    ],
)
def test_bad_configuration_is_status_two(here, capsys, argv, message):
    assert main(argv) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("configuration error: ")
    assert message in captured.err
    assert captured.out == ""
    assert list(here.iterdir()) == []


def test_unknown_device_is_status_two(here, capsys, monkeypatch):
    monkeypatch.setenv("COBA_DEVICE", "tpu")
    assert main(GOOD) == 2
    assert "COBA_DEVICE must be cpu or cuda, got 'tpu'" in capsys.readouterr().err


def test_used_run_folder_is_status_two(here, capsys):
    (here / "run").mkdir()
    (here / "run" / "metrics.jsonl").write_text("{}\n")
    assert main([*GOOD, "--coba.run_dir=run"]) == 2
    assert "already holds a run" in capsys.readouterr().err


def test_dry_run_prints_a_configuration_that_loads(here, capsys):
    assert main([*GOOD, "--coba.tau=7", "--coba.run_dir=mine", "--dry_run"]) == 0
    text = capsys.readouterr().out
    assert f"run folder      {here / 'mine'}" in text
    assert list(here.iterdir()) == []
    (here / "again.yaml").write_text(text[: text.index("\ndevice ")])
    assert load_config(["--config", "again.yaml"])[0] == load_config([*GOOD, "--coba.tau=7", "--coba.run_dir=mine"])[0]


def test_dry_run_starts_no_ray(here):
    code = (
        "import sys; from coba_openrlhf.train_grpo import main; status = main(sys.argv[1:]); "
        "print('loaded', *sorted({'ray', 'vllm', 'openrlhf', 'deepspeed'} & set(sys.modules))); sys.exit(status)"
    )
    done = subprocess.run([sys.executable, "-c", code, *GOOD, "--dry_run"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "loaded"


def test_module_exits_with_the_status(here):
    done = subprocess.run(
        [sys.executable, "-m", "coba_openrlhf.train_grpo", "--coba.taw", "3"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 2
    assert done.stderr == "configuration error: unknown option --coba.taw; did you mean 'coba.tau'?\n"
