"""A first wave inside the step, a budget rule of the user's own, equal prompt weights; a resume with other data."""

import json
import shutil
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

from .conftest import read_metrics
from .local_ray import ROOT, environment

EXTRA = {
    "coba.pass_rate.source": "probe",
    "coba.pass_rate.probe_rollouts": 2,
    "coba.strategy": "examples/rules/most_uncertain.py:MostUncertain",
    "coba.group_weight": "prompt",
    "coba.revisit.share": 0.5,
    "coba.revisit.cooldown": 0,
    "coba.budget.max": 8,
    "train.num_episodes": 1,
    "ckpt.save_steps": 2,
}


@pytest.fixture(scope="module")
def train(local_ray, options):
    """Run the command line on the shared Ray; returns its output."""

    def run(run_dir, *more):
        extra = [part for key, value in EXTRA.items() for part in (f"--{key}", str(value))]
        done = subprocess.run(
            [sys.executable, "-m", "coba_openrlhf.train_grpo", *options, *extra, "--coba.run_dir", str(run_dir), *more],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env=environment() | {"RAY_ADDRESS": local_ray.address},
            timeout=400,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="module")
def run_dir(train, tmp_path_factory):
    folder = tmp_path_factory.mktemp("waves") / "run"
    train(folder)
    return folder


@pytest.fixture(scope="module")
def table(run_dir):
    return pq.read_table(run_dir / "allocations.parquet").to_pandas()


def test_both_waves_are_one_batch_of_the_same_total(run_dir, table):
    steps = [row for row in read_metrics(run_dir) if "policy_loss" in row]
    assert [s["rollout/num_samples"] for s in steps] == [16, 16, 8]
    assert steps[-1]["ledger/rollouts"] == 40
    assert table.groupby("step")["budget"].sum().tolist() == [16, 16, 8]
    assert table.groupby("step")["revisited"].sum().tolist() == [0, 2, 1]
    assert (table.scored == table.budget).all()
    assert (table.wave_scored == 2).all()
    assert (table.wave_successes <= table.successes).all()


def test_budgets_follow_the_first_wave_already_in_the_first_step(table):
    first = table[table.step == 1]
    # Before the first step the prior is one half of two rollouts.
    assert first.posterior_success.tolist() == (1 + first.wave_successes).tolist()
    assert first.pass_rate.tolist() == (first.posterior_success / 4).tolist()
    assert not first.seen.any()
    assert table.groupby("step")["budget"].nunique().max() > 1


def test_prompts_weigh_the_same(run_dir, table):
    """The loss is a mean over tokens: the prompt with the fewest is raised to an equal share of them."""
    tokens = table.groupby("step")["scored_tokens"]
    expected = tokens.mean() / tokens.min()
    for row in read_metrics(run_dir):
        if "policy_loss" in row:
            assert row["coba/group_weight_max"] == pytest.approx(expected[row["step"]], rel=1e-5)


def test_replay_reproduces_the_run(run_dir, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "coba_openrlhf.replay", str(run_dir), "--strategy", "mixed", "--out", str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "summary.json").read_text())["reproduced_steps"] == 3, done.stdout


def test_resume_with_edited_removed_and_added_rows(run_dir, train, tiny, tmp_path):
    """Resume after step 2 of 3: the interrupted episode starts again, with the rows that there are now."""
    rows = (tiny / "train.jsonl").read_text().splitlines(keepends=True)
    edited = json.dumps(json.loads(rows[0]) | {"label": "edited"}) + "\n"
    changed = tmp_path / "train.jsonl"
    added = json.dumps(json.loads(rows[4]) | {"label": "added"}) + "\n"
    changed.write_text("".join([edited, *rows[1:4], *rows[5:8], rows[9], added]))
    resumed = tmp_path / "run"
    shutil.copytree(run_dir, resumed)
    # Without revisits from here on, so that the three steps have all nine prompts.
    extra = ["--data.prompt_dataset", str(changed), "--coba.revisit.share", "0"]
    output = train(resumed, "--ckpt.load_enable", *extra)
    assert "resumed after step 2 of 5" in output
    assert "training prompts changed since the checkpoint: 1 added, 2 removed, 1 edited" in output
    after = pq.read_table(resumed / "allocations.parquet").to_pandas()
    assert sorted(set(after.step)) == [1, 2, 3, 4, 5]
    assert after[after.step > 2].prompt_id.nunique() == 9
    known = set(after[after.step <= 2].prompt_id)
    again = after[after.step > 2]
    assert (again.seen == again.prompt_id.isin(known)).all()
