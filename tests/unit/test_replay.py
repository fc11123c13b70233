"""Replays of small runs: the log is reproduced, and what is reported of it and of other rules."""

import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from coba_openrlhf import replay as library
from coba_openrlhf.allocation import AllocationConfig, Allocator
from coba_openrlhf.replay.replayed import COLUMNS
from coba_openrlhf.replay.reproduction import compare
from tests.replay_runs import MEAN_BUDGET, call_replay, make_old, make_step, write_config, write_run

# Small batches let one prompt have much of a step, and few outcomes mislead estimates: both are told, rightly.
pytestmark = pytest.mark.filterwarnings("ignore:budget_max lets one prompt", "ignore:pass-rate estimates predicted")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture
def replayed(tmp_path, capsys):
    """Runs the command line; gives its text, the summary by rule, and the rows of replay.csv."""
    return lambda run, *argv: call_replay(run, tmp_path / "out", capsys, *argv)


def reproduced(run):
    """Steps whose budgets the run's own settings give again."""
    log, options = library.read_log(run), library.read_options(run)
    own = library.replay(library.Rule("own", options.config), log)
    return compare(log, own).num_equal


# The log is reproduced.

OWN_SETTINGS = {
    "coba": {},
    "coba, many settings": {"tau": 3.0, "kappa": 7.0, "capability_bins": 3, "tau_mode": "adaptive", "optimism": 0.5},
    "perturbed": {"perturbation": 0.05, "seed": 7},
    "coba_released": {"strategy": "coba_released", "capability_window": 1},
    "knapsack": {"strategy": "knapsack", "pass_rate_source": "posterior"},
    "mixed": {"strategy": "mixed", "pass_rate_source": "posterior", "pass_rate_decay": 0.9},
    "hora": {"strategy": "hora", "prior_strength": 4.0},
    "duet, which counts tokens": {"strategy": "duet"},
    "vip": {"strategy": "vip", "budget_min": 3, "vip_estimator": "dr_grpo"},
    "last_outcome": {"strategy": "last_outcome"},
    "linear_decay, which counts steps": {"strategy": "linear_decay", "decay_steps": 5},
    "first waves": {"strategy": "mixed", "pass_rate_source": "probe"},
    "longer first waves": {"pass_rate_source": "probe", "probe_rollouts": 4, "fallback_steps": 1},
    "fallback": {"fallback_steps": 1},
}


@pytest.mark.parametrize("settings", OWN_SETTINGS.values(), ids=OWN_SETTINGS)
@pytest.mark.parametrize("unscored", [0.0, 0.3])
def test_the_logged_rule_is_reproduced(tmp_path, settings, unscored):
    run = write_run(tmp_path / "run", AllocationConfig(**{"budget_max": 32, **settings}), unscored=unscored)
    assert reproduced(run) == 12


@pytest.mark.parametrize("source", ["window", "posterior", "probe"])
@pytest.mark.parametrize("strategy", ["coba", "duet", "mixedhard"])
def test_what_the_trainer_logs_is_reproduced(tmp_path, strategy, source):
    """``RunLog`` and its rollouts, instead of the table that this test suite writes."""
    from coba_openrlhf.trainer.rollout_batch import RolloutBatch  # loads torch: only here
    from coba_openrlhf.trainer.run_log import RunLog
    from tests.rollouts import prompt_batch

    config = AllocationConfig(strategy=strategy, pass_rate_source=source, budget_max=32)
    rng, allocator, log = np.random.default_rng(5), Allocator(config), RunLog(str(tmp_path), 0)
    write_config(tmp_path, config)
    batch = prompt_batch(10)
    rate_P = rng.beta(0.5, 0.9, 10)

    def generate(budget_P):
        group_id_R = np.repeat(np.arange(10), budget_P)
        score_R = (rng.random(len(group_id_R)) < rate_P[group_id_R]).astype(float)
        score_R[rng.random(len(group_id_R)) < 0.1] = np.nan
        length_R = rng.integers(1, 40, len(group_id_R))
        nothing = [None] * len(group_id_R)
        return RolloutBatch(batch, nothing, group_id_R, score_R, length_R, np.zeros(len(group_id_R), bool))

    for step in range(1, 9):
        if source == "probe":
            wave = generate(np.full(10, 2))
            allocation = allocator.allocate(batch.prompt_ids, 80, probe=wave.observations()[:2])
            whole = wave.joined(generate(allocation.budget_P - 2))
        else:
            wave, allocation = None, allocator.allocate(batch.prompt_ids, 80)
            whole = generate(allocation.budget_P)
        ids, scores, num_tokens = whole.observations()
        allocator.observe(ids, scores, num_tokens=num_tokens, policy_version=step - 1)
        log.write_allocations(step, whole, allocation, config, wave)
    assert reproduced(tmp_path) == 8


@pytest.mark.parametrize("source", ["window", "posterior", "probe"])
def test_graded_scores_are_reproduced(tmp_path, replayed, source):
    config = AllocationConfig(budget_max=32, success_rule="score", pass_rate_source=source, strategy="mixed")
    text, _, _ = replayed(write_run(tmp_path / "run", config, graded=True, unscored=0.1))
    assert "reproduced in 12 of 12 steps" in text and "Scores are graded" in text


def test_a_threshold_below_one_is_reproduced(tmp_path):
    config = AllocationConfig(budget_max=32, success_threshold=0.5, pass_rate_source="probe")
    assert reproduced(write_run(tmp_path / "run", config, graded=True)) == 12


def test_a_step_of_which_nothing_could_be_scored(tmp_path):
    run = write_run(tmp_path / "run", num_prompts=8, batch=2, num_steps=30, unscored=0.95)
    assert any(not step.scored_P.any() for step in library.read_log(run).steps)
    assert reproduced(run) == 30


def test_a_short_last_batch_has_its_own_total(tmp_path, replayed):
    run = write_run(tmp_path / "run", num_prompts=29, batch=12)
    text, _, rows = replayed(run, "--strategy", "knapsack")
    assert "reproduced in 12 of 12" in text
    totals = {row["total_budget"] for row in rows}
    assert totals == {"96", "40"}


def test_reproduction_fails_where_the_log_was_changed(tmp_path, replayed):
    run = write_run(tmp_path / "run")
    file = run / "allocations.parquet" / "step-00000008.parquet"
    table = pq.read_table(file)
    budget = table["budget"].to_numpy().copy()
    budget[budget.argmax()] -= 1
    budget[budget.argmin()] += 1
    column = table.column_names.index("budget")
    fixed = table.set_column(column, "budget", pa.array(budget))
    # Outcomes must fit into the budgets.
    rows = np.minimum(table["scored"].to_numpy(), budget)
    fixed = fixed.set_column(table.column_names.index("scored"), "scored", pa.array(rows))
    pq.write_table(fixed, file)
    text, _, _ = replayed(run)
    assert "NOT reproduced" in text and "Step 8 is the first that differs" in text
    assert "the estimates are the same and the budgets are not" in text


def test_a_log_that_begins_late_says_so(tmp_path, replayed):
    run = write_run(tmp_path / "run", keep=range(7, 13))
    text, _, rows = replayed(run)
    assert "The log begins at step 7" in text and "NOT reproduced" in text
    assert "Step 7 is the first that differs: 12 of 12 prompts had a history that the log lacks." in text
    assert {row["step"] for row in rows} == {str(step) for step in range(7, 13)}


def test_a_hole_in_the_log_says_so(tmp_path, replayed):
    text, _, _ = replayed(write_run(tmp_path / "run", keep=[1, 4, 5, 6, 9, 10]))
    assert "Steps of the log are missing: what happened in them is not known" in text
    assert "prompts had a history that the log lacks" in text and "the files of earlier steps are missing" in text


def test_forgotten_prompts_are_told(tmp_path, replayed):
    text, _, _ = replayed(write_run(tmp_path / "run", forget_at=7))
    assert "Step 7 is the first that differs: " in text
    assert "prompts had no history although the log has one of them" in text and "a restart forgot them" in text


def test_another_configuration_is_told(tmp_path, replayed):
    run = write_run(tmp_path / "run")
    write_config(run, AllocationConfig(budget_max=32, pass_rate_window=1))
    text, _, _ = replayed(run)
    assert "estimates differ. It may be that" in text and "config.yaml is not that of these steps" in text


def test_logs_of_the_first_version(tmp_path, replayed):
    new = write_run(tmp_path / "new", AllocationConfig(budget_max=32, fallback_steps=0), unscored=0.2)
    expected = replayed(new, "--strategy", "knapsack")[1]
    make_old(new)
    text, rules, _ = replayed(new, "--strategy", "knapsack")
    assert "reproduced in 12 of 12" in text
    assert "lacks seen, wave_scored, wave_successes, mixed, scored_tokens" in text
    assert rules == expected


def test_the_first_version_had_no_fallback(tmp_path):
    run = write_run(tmp_path / "run")
    make_old(run)
    assert library.read_options(run).config == AllocationConfig(budget_max=32, fallback_steps=0)


def test_unknown_options_of_a_later_version_are_named(tmp_path, replayed):
    run = write_run(tmp_path / "run")
    tree = yaml.safe_load((run / "config.yaml").read_text())
    tree["coba"]["cleverness"] = 3
    tree["algo"]["invented"] = 1
    (run / "config.yaml").write_text(yaml.safe_dump(tree))
    assert "options that this version does not know: coba.cleverness" in replayed(run)[0]


def test_every_setting_survives_config_yaml(tmp_path):
    config = AllocationConfig(
        strategy="vip", alpha_max=6.5, eps=1e-6, pass_rate_source="posterior", seed=11, vip_estimator="rloo"
    )
    tmp_path.joinpath("run").mkdir()
    write_config(tmp_path / "run", config)
    options = library.read_options(tmp_path / "run")
    assert options == library.RunOptions(config, [], [])


# What is reported.


def test_as_run_is_what_the_log_says(tmp_path, replayed):
    """Its signal is the realised share, also where rollouts could not be scored."""
    run = write_run(tmp_path / "run", unscored=0.25)
    _, rules, rows = replayed(run)
    log = library.read_log(run)
    signal = [float(row["signal"]) for row in rows if row["rule"] == "as run"]
    assert signal == pytest.approx([float(step.mixed_P.mean()) for step in log.steps], abs=1e-9)
    mixed = [step.scored_P[step.mixed_P].sum() for step in log.steps]
    assert rules["as run"]["gradient_rollouts"] == pytest.approx(np.mean(mixed))
    assert rules["as run"]["tokens"] == pytest.approx(np.mean([step.tokens_P.sum() for step in log.steps]))
    assert rules["as run"]["extrapolated"] == 0
    assert rules["as run"]["largest"] == np.mean([step.budget_P.max() for step in log.steps])


@pytest.mark.parametrize("source", ["window", "posterior", "probe"])
def test_calibration_of_the_log_is_that_of_its_own_rule(tmp_path, source):
    config = AllocationConfig(budget_max=32, pass_rate_source=source)
    run = write_run(tmp_path / "run", config, unscored=0.2)
    log = library.read_log(run)
    own = library.replay(library.Rule("own", config), log)
    logged = library.replay_log(log, own)
    for name in COLUMNS:
        np.testing.assert_allclose(logged.columns[name], own.columns[name], rtol=1e-12, err_msg=name)
    for ours, theirs in zip(logged.seen, own.seen, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_uniform_is_always_there_and_uniform(run, replayed):
    _, rules, rows = replayed(run)
    assert list(rules) == ["as run", "uniform"]
    assert rules["uniform"]["entropy"] == pytest.approx(1, abs=1e-12)
    assert rules["uniform"]["largest"] == MEAN_BUDGET
    assert rules["as run"]["entropy"] < 1
    assert all(float(row["entropy"]) <= 1 for row in rows)


def test_one_prompt_is_uniform():
    step = make_step(budget=[8], scored=[8], successes=[3])
    assert library.replay_log(library.Log([step], []), None).columns["entropy"] == [1.0]


def test_a_step_by_hand():
    """Two prompts with 4 rollouts each, reallocated by nobody: 2 tokens a rollout for one, 10 for the other."""
    step = make_step(budget=[4, 4], scored=[4, 2], successes=[1, 0], tokens=[8, 40])
    row = {name: column[0] for name, column in library.replay_log(library.Log([step], []), None).columns.items()}
    assert row["signal"] == pytest.approx(0.5)
    assert row["gradient_rollouts"] == pytest.approx(4) and row["gradient_share"] == pytest.approx(0.5)
    assert row["tokens"] == 48 and row["tokens_per_gradient_rollout"] == pytest.approx(12)
    assert row["brier"] == pytest.approx(0.25) and math.isnan(row["brier_seen"])


def test_good_estimates_bring_more_signal_than_uniform(tmp_path, replayed):
    """The policy stands still, so that estimates become good: rules that use them must show it."""
    config = AllocationConfig(strategy="uniform", pass_rate_source="posterior", pass_rate_decay=1.0)
    run = write_run(tmp_path / "run", config, num_prompts=64, batch=64, num_steps=40, seed=1)
    _, rules, _ = replayed(run, "--strategy", "knapsack", "--strategy", "mixed", "--strategy", "mixedhard")
    assert rules["mixed"]["signal"] > rules["uniform"]["signal"] + 0.01
    assert rules["knapsack"]["gradient_share"] > rules["uniform"]["gradient_share"] + 0.1
    assert rules["uniform"]["signal"] == pytest.approx(rules["as run"]["signal"])
    assert rules["mixed"]["brier_seen"] < rules["mixed"]["brier_prior"]


def test_csv_has_one_row_per_rule_and_step(run, replayed):
    _, rules, rows = replayed(run, "--strategy", "knapsack", "--strategy", "coba", "--coba.tau", "7")
    assert list(rules) == ["as run", "uniform", "knapsack", "coba tau=7"]
    assert [(row["rule"], int(row["step"])) for row in rows] == [(r, s) for r in rules for s in range(1, 13)]
    assert list(rows[0]) == ["rule", "step", *COLUMNS]
    for label, means in rules.items():
        mine = [row for row in rows if row["rule"] == label]
        for name in ("signal", "entropy", "brier", "tokens"):
            assert means[name] == pytest.approx(np.mean([float(row[name]) for row in mine])), name
        assert {row["brier_prior"] for row in mine if row["step"] == "1"} == {""}  # no prompt had a history
    assert rules["coba tau=7"]["options"] == {"coba.strategy": "coba", "coba.tau": "7"}


def test_rules_use_their_own_estimates(run, replayed):
    _, rules, _ = replayed(run, "--strategy", "uniform", "--coba.pass_rate.source", "posterior")
    posterior, window = rules["uniform pass_rate.source=posterior"], rules["uniform"]
    assert posterior["brier"] != window["brier"]
    assert posterior["signal"] == window["signal"]


def test_a_rule_equals_the_library_used_by_hand(run):
    """The replay of another rule against a loop over the library's own calls."""
    config = AllocationConfig(strategy="hora", pass_rate_source="posterior", budget_max=20)
    log = library.read_log(run)
    result = library.replay(library.Rule("hora", config), log)
    allocator = Allocator(config)
    for step, budget_P in zip(log.steps, result.budgets, strict=True):
        expected = allocator.allocate(step.prompt_ids, 12 * MEAN_BUDGET)
        np.testing.assert_array_equal(budget_P, expected.budget_P)
        ids = [i for i, n in zip(step.prompt_ids, step.scored_P, strict=True) for _ in range(int(n))]
        scores = []
        for n, s in zip(step.scored_P, step.success_P, strict=True):
            scores += [1.0] * int(s) + [0.0] * int(n - s)
        allocator.observe(ids, scores, policy_version=step.step - 1)


def test_waves_are_ignored_by_other_sources(tmp_path, replayed):
    run = write_run(tmp_path / "run", AllocationConfig(budget_max=32, pass_rate_source="probe"))
    text, rules, _ = replayed(run, "--coba.pass_rate.source", "posterior")
    assert "reproduced in 12 of 12" in text
    assert rules["coba pass_rate.source=posterior"]["signal"] != rules["as run"]["signal"]


def test_a_rule_file(run, replayed, tmp_path, monkeypatch):
    (tmp_path / "own.py").write_text(
        "from coba_openrlhf.allocation import ProportionalStrategy\n"
        "class Easy(ProportionalStrategy):\n"
        "    def weights(self, problem):\n"
        "        return problem.estimates.pass_rate_P + 0.01\n"
    )
    monkeypatch.chdir(tmp_path)
    _, rules, _ = replayed(run.absolute(), "--strategy", "own.py:Easy", "--coba.budget.max", "16")
    assert rules["own.py:Easy budget.max=16"]["largest"] <= 16


def test_a_run_whose_rule_file_is_gone_can_still_be_read(tmp_path, replayed):
    run = write_run(tmp_path / "run")
    write_config(run, AllocationConfig(budget_max=32, strategy="gone.py:Rule"))
    assert library.read_options(run).config.strategy.endswith("/gone.py:Rule")
    text, rules, _ = replayed(run, "--strategy", "knapsack")
    assert "The logged rule cannot be checked: gone.py:Rule: " in text
    assert list(rules) == ["as run", "uniform", "knapsack"] and rules["as run"]["brier_prior"] is None


def test_fallback_is_reproduced_and_told(tmp_path, replayed):
    """All prompts are equally hard, so that few outcomes of a prompt predict worse than the plain mean."""
    config = AllocationConfig(budget_max=32, fallback_steps=2, pass_rate_window=1)
    run = write_run(tmp_path / "run", config, shape=(30, 30), num_steps=20)
    text, rules, rows = replayed(run)
    steps = [row for row in rows if row["rule"] == "as run" and row["fallback"] == "1"]
    assert 0 < len(steps) < 20 and all(float(row["entropy"]) > 1 - 1e-12 for row in steps)
    assert "reproduced in 20 of 20 steps" in text
    assert f"as run: budgets were uniform in {len(steps)} steps (coba.fallback_steps)." in text
    assert rules["as run"]["fallback"] == pytest.approx(len(steps) / 20)


def test_what_several_rules_warn_of_is_told_once(run, replayed):
    text, _, _ = replayed(run, "--coba.budget.max", "64", "--strategy", "knapsack", "--strategy", "mixed")
    (line,) = [line for line in text.splitlines() if "coba.budget.max lets one prompt have 64 of 96" in line]
    assert line.startswith("knapsack budget.max=64, mixed budget.max=64: ")
