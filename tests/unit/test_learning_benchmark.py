"""The learning benchmark: seeds that share nothing, right answers, the training job's advantages, honest statistics."""

import os
import subprocess
import sys
import time
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch

from benchmarks.learning.__main__ import main, make_table
from benchmarks.learning.base_models import load_or_warm_up, make_policies, warm_up
from benchmarks.learning.cells import Cell, run_cells
from benchmarks.learning.figures import plot_solved
from benchmarks.learning.grpo import Learner, _distinct, roll_out
from benchmarks.learning.policies import uniforms
from benchmarks.learning.prompt_stream import PromptStream
from benchmarks.learning.report import Outcome, render_rollouts_needed
from benchmarks.learning.rules import Rule
from benchmarks.learning.statistics import holm, reach, sign_flip_p
from benchmarks.learning.tables import LEARNING_RATES, SEEDS, TABLES, TUNING_SEEDS
from benchmarks.learning.tasks import TASKS
from benchmarks.learning.tasks.task import END, PAD, VOCABULARY
from benchmarks.learning.training import SHARES, Regime, train
from coba_openrlhf.allocation import AllocationConfig, Allocator


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("name", TASKS)
def test_tasks_keep_their_shapes_and_the_corpus_is_right_as_often_as_meant(name):
    task = TASKS[name]
    prompts = task.draw(3, np.random.default_rng(0), 2000)
    assert prompts.token_MT.shape == (2000, task.prompt_length)
    assert prompts.answer_MA.shape == (2000, task.answer_length)
    assert prompts.token_MT.min() >= 0 and max(prompts.token_MT.max(), prompts.answer_MA.max()) < VOCABULARY
    assert set(prompts.level_M) == set(range(len(task.levels)))
    right = {
        tuple(token_T): tuple(answer_A) for token_T, answer_A in zip(prompts.token_MT, prompts.answer_MA, strict=True)
    }
    token_MT, answer_MA = task.draw_corpus(3, np.random.default_rng(1), 20_000)
    known = [
        right[tuple(token_T)] == tuple(answer_A)
        for token_T, answer_A in zip(token_MT, answer_MA, strict=True)
        if tuple(token_T) in right
    ]
    assert 0.05 < np.mean(known) < 0.95


def test_right_answers_of_the_ladder_are_sorted():
    prompts = TASKS["ladder"].draw(0, np.random.default_rng(0), 200)
    for token_T, answer_A in zip(prompts.token_MT, prompts.answer_MA, strict=True):
        digits = sorted(token_T[token_T != PAD].tolist())
        assert answer_A.tolist() == digits + [END] * (len(answer_A) - len(digits))


def test_worlds_differ_and_are_reproducible():
    first, again, other = (TASKS["chain"].training_prompts(world, 50) for world in (1, 1, 2))
    assert (first.answer_MA == again.answer_MA).all() and (first.answer_MA != other.answer_MA).any()


def test_a_seed_does_not_depend_on_its_company():
    task, seeds = TASKS["mode"], [5, 6, 7]
    together, alone = warm_up(task, seeds, 3), warm_up(task, [6], 3)
    for name, weight in alone.weights.items():
        torch.testing.assert_close(weight[0], together.weights[name][1], rtol=1e-4, atol=1e-5)


def test_sampling_follows_the_probabilities_of_the_whole_sequence():
    task = TASKS["recall"]
    policies = make_policies(task, [0])
    prompts = task.draw(0, np.random.default_rng(0), 1)
    count = 20_000
    prompt_SN = torch.zeros(1, count, dtype=torch.int64)
    rngs = [np.random.default_rng(1)]
    answer_SNA = policies.sample(torch.from_numpy(prompts.token_MT)[None], prompt_SN, uniforms(rngs, count, 2), END)
    answer_UA, count_U = torch.unique(answer_SNA[0], dim=0, return_counts=True)
    logprob_UA = policies.answer_logprobs(
        torch.from_numpy(prompts.token_MT)[None].expand(1, len(answer_UA), -1), answer_UA[None]
    )[0]
    expected_U = logprob_UA.sum(-1).exp().detach().numpy()
    likely = (answer_UA[:, 0] != END).numpy() & (expected_U > 0.001)
    assert likely.sum() > 100
    z_U = (count_U.numpy() / count - expected_U)[likely] / np.sqrt(expected_U[likely] / count)
    assert np.abs(z_U).max() < 5 and 0.8 < z_U.std() < 1.2


@pytest.mark.parametrize("weighting", ["rollout", "prompt"])
def test_merging_equal_rollouts_leaves_the_gradient_alone(weighting):
    task, seeds = TASKS["ladder"], [0, 1]
    policies = warm_up(task, seeds, 200)
    batches = [task.training_prompts(seed, 6) for seed in seeds]
    budgets = [np.array([2, 3, 5, 8, 2, 12]), np.array([9, 9, 2, 4, 6, 2])]
    rollouts = roll_out(policies, batches, budgets, [np.random.default_rng(seed) for seed in seeds])
    advantage_SN = Learner(policies, 1e-3, weighting).advantages(rollouts, 6)
    assert (advantage_SN != 0).any(1).all()

    def gradients(prompt_SNT, answer_SNA, weight_SN):
        logprob_SNA = policies.answer_logprobs(prompt_SNT, answer_SNA)
        loss = (logprob_SNA.masked_fill((answer_SNA == END).cumsum(-1) > 1, 0).sum(-1) * weight_SN).sum()
        return torch.autograd.grad(loss, policies.weights.values())

    prompt_SPT = torch.from_numpy(np.stack([batch.token_MT for batch in batches]))
    prompt_SNT = prompt_SPT[torch.arange(2)[:, None], rollouts.prompt_SN]
    merged = _distinct(batches, rollouts, advantage_SN)
    assert merged[2].shape[1] < advantage_SN.shape[1]
    every = gradients(prompt_SNT, rollouts.answer_SNA, advantage_SN)
    for one, other in zip(gradients(*merged), every, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)


def test_a_pass_holds_every_row_once():
    stream = PromptStream(10, np.random.default_rng(0))
    assert sorted(np.concatenate([stream.next(5), stream.next(5)])) == list(range(10))
    assert len(set(stream.next(7))) == 7 and len(set(stream.next(7))) == 7


def test_sign_flips_are_the_exact_permutation_test():
    values = np.array([0.3, -0.1, 0.25, 0.4, 0.05])
    extreme = [abs(np.dot(signs, values)) >= abs(values.sum()) - 1e-12 for signs in product((-1, 1), repeat=5)]
    assert sign_flip_p(values) == np.mean(extreme)
    assert sign_flip_p(np.ones(16)) == 2.0**-15
    assert sign_flip_p(np.zeros(4)) == 1
    assert sign_flip_p(np.ones(30)) < 0.001


def test_holm_adjusts_step_by_step():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_where_a_curve_reaches_a_target():
    assert reach([0, 10, 20], [0.1, 0.3, 0.2], 0.2) == pytest.approx(5)
    assert reach([0, 10], [0.1, 0.3], 0.05) == 0
    assert reach([0, 10], [0.1, 0.3], 0.4) == np.inf


def test_reported_seeds_were_not_used_to_choose_anything():
    assert len(SEEDS) >= 16 and not set(SEEDS) & set(TUNING_SEEDS)
    assert all(table.rules[0].name == "uniform" for table in TABLES.values())


def test_training_raises_exact_accuracy(tmp_path):
    regime = Regime("chain", "chain", 4, 40, warm_up_steps=300)
    rows = train(regime, Rule("uniform", {"strategy": "uniform"}), 1e-3, [0, 1], tmp_path, evaluations=2)
    for seed in (0, 1):
        start, *_, end = [row["accuracy"] for row in rows if row["seed"] == seed]
        assert end > start + 0.05
    assert rows[-1]["rollouts"] == 40 * 32 * 4


def test_base_models_are_made_once(tmp_path):
    made = load_or_warm_up("recall", [1], tmp_path, 2)
    file = next(tmp_path.glob("recall-2-1.pt"))
    written = file.stat().st_mtime_ns
    loaded = load_or_warm_up("recall", [1, 2], tmp_path, 2)
    assert file.stat().st_mtime_ns == written
    assert (made.weights["tokens"][0] == loaded.weights["tokens"][0]).all()


def test_a_cell_is_trained_once_and_other_settings_are_another_cell(tmp_path, capsys):
    cell = Cell(Regime("recall", "recall", 4, 2, warm_up_steps=2), Rule("coba"), 1e-3, (0,))
    run_cells([cell, cell], tmp_path, 1)
    assert "1 of 1 cells to train" in capsys.readouterr().err
    run_cells([cell], tmp_path, 1)
    assert "0 of 1 cells to train" in capsys.readouterr().err
    assert "/" not in replace(cell, rule=Rule("at least n/2")).name
    assert replace(cell, rule=Rule("coba", {"tau": 4.0})).name != cell.name != replace(cell, learning_rate=2e-3).name


# Every table with a few of its regimes, so that together they have each of the six.
SMOKE = {"n4": (0,), "n8": (1, 2), "n16": (3,), "half": (4, 5), "causes": (0,), "batches": (0,)}


@pytest.mark.parametrize("name", TABLES)
def test_every_table_runs_small(name, tmp_path):
    table = replace(TABLES[name], regimes=tuple(TABLES[name].regimes[index] for index in SMOKE[name]))
    count = len(table.regimes)
    text = make_table(name, table, tmp_path, 2, smoke=True)
    assert text.count("\n| uniform |") == count + 2 and all(f"\n| {rule.name} |" in text for rule in table.rules)
    assert "\n| uniform: accuracy |" in text
    assert {path.name for path in tmp_path.glob(f"{name}*")} == {
        f"{name}.md", f"{name}-curves.png", f"{name}-solved.png", f"{name}-differences.png",
    }  # fmt: skip
    assert len(list((tmp_path / "cells").iterdir())) == count * len(table.rules) * (len(LEARNING_RATES) + 1)


def test_smoke_runs_have_every_regime():
    assert {TABLES[name].regimes[index].name for name in ("n4", "n8", "n16", "half") for index in SMOKE[name]} == {
        regime.name for regime in TABLES["n4"].regimes
    }


def test_revisits_change_what_is_met_once_there_is_a_step_to_draw_from(tmp_path):
    regime, uniform = Regime("recall", "recall", 4, 6, warm_up_steps=300), {"strategy": "uniform"}
    with_and_without = [
        train(regime, rule, 1e-3, [0], tmp_path, evaluations=6)
        for rule in (Rule("revisit", uniform, revisit={}), Rule("uniform", uniform))
    ]
    same = [a["accuracy"] == b["accuracy"] for a, b in zip(*with_and_without, strict=True)]
    # 32 of 96 visited prompts are not of the last two steps when the fourth step begins.
    assert same == [True] * 4 + [False] * 3


def test_estimates_can_be_read_without_allocating():
    allocator = Allocator(AllocationConfig(pass_rate_source="posterior"))
    allocator.observe(["a", "a", "b"], [1.0, 1.0, 0.0])
    before = allocator.state_dict()
    estimates = allocator.estimate(["b", "new", "a"])
    assert estimates.seen_P.tolist() == [True, False, True]
    assert estimates.pass_rate_P[0] < estimates.pass_rate_P[1] < estimates.pass_rate_P[2]
    assert allocator.state_dict() == before
    assert (allocator.allocate(["b", "new", "a"], 12).pass_rate_P == estimates.pass_rate_P).all()
    with pytest.raises(ValueError, match="prompt_ids"):
        allocator.estimate([])


def test_workers_end_with_a_killed_parent(tmp_path):
    script = (
        "import sys, time\nfrom pathlib import Path\n"
        "from benchmarks.learning.cells import Cell, run_cells\n"
        "from benchmarks.learning.rules import Rule\nfrom benchmarks.learning.training import Regime\n"
        "if __name__ == '__main__':\n"
        "    run_cells([Cell(Regime('mode', 'mode', 4, 10**6), Rule('coba'), 1e-3, (0,))], Path(sys.argv[1]), 1)\n"
    )
    (tmp_path / "endless.py").write_text(script)
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    parent = subprocess.Popen([sys.executable, tmp_path / "endless.py", tmp_path], env=environment)
    try:
        workers = wait_for(
            lambda: [p for p in psutil.Process(parent.pid).children() if "spawn_main" in str(p.cmdline())]
        )
        time.sleep(5)  # so that the worker has begun: before, nothing could keep it
        parent.kill()
        parent.wait()
        _, alive = psutil.wait_procs(workers, timeout=20)
        assert not alive
    finally:
        parent.kill()


def wait_for(condition, seconds=30):
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return value


def test_a_published_table_is_copied(tmp_path, monkeypatch):
    def made(name, table, folder, workers, smoke):
        folder.mkdir()
        for file in (f"{name}.md", f"{name}-curves.png", f"{name}-solved.png", f"{name}-differences.png"):
            (folder / file).write_text(file)
        return ""

    monkeypatch.setattr("benchmarks.learning.__main__.make_table", made)
    main(["half", "--out", str(tmp_path / "out"), "--publish", str(tmp_path / "docs")])
    assert {file.name: file.read_text() for file in (tmp_path / "docs").iterdir()} == {
        file: file for file in ("half.md", "half-curves.png", "half-solved.png", "half-differences.png")
    }


def outcome(name, curves, solved):
    cell = Cell(Regime("mode", "mode", 4, 10), Rule(name), 1e-3, tuple(range(len(curves))))
    columns = dict.fromkeys((*SHARES, "solved", "tokens", "seconds"), 0.0)
    return Outcome(cell, np.array([0.0, 50.0, 100.0]), np.array(curves), np.array(solved), columns)


def test_a_table_says_when_uniforms_end_was_reached():
    solved = [[1.0] * 3] * 2
    rows = [
        outcome("uniform", [[0.0, 0.2, 0.3], [0.0, 0.2, 0.5]], solved),
        outcome("twice", [[0.0, 0.4, 0.5], [0.0, 0.4, 0.5]], solved),
        outcome("behind", [[0.0, 0.1, 0.2], [0.0, 0.1, 0.2]], solved),
    ]
    lines = render_rollouts_needed({"mode": rows}).splitlines()
    assert lines[0] == "| rule | mode |" and lines[2:] == [
        "| uniform | 1.00 |",
        "| twice | 0.50 |",
        "| behind | never |",
    ]


def test_what_is_forgotten_is_drawn_over_the_seeds_that_had_solved_something(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr("matplotlib.axes.Axes.plot", lambda ax, x, y, **_: drawn.append(list(y)))
    curves = [[0.0, 0.2, 0.3]] * 3
    rows = [
        outcome("uniform", curves, [[0.9, 0.8, 0.5], [np.nan] * 3, [0.9, 0.6, 0.5]]),
        outcome("never", curves, [[np.nan] * 3] * 3),
    ]
    plot_solved({"mode": rows}, ["uniform", "never"], tmp_path / "solved.png")
    assert drawn == [pytest.approx([0.9, 0.7, 0.5])] and (tmp_path / "solved.png").exists()
