"""Identity, signal and metrics of a step's rollouts."""

import dataclasses

import coba_openrlhf.device.ready  # noqa: F401  isort: skip
import numpy as np
import pytest

from coba_openrlhf.trainer.ledger import Ledger
from coba_openrlhf.trainer.padding import pad_rollouts
from tests.rollouts import rollout_batch


def test_observations_carry_the_prompt_of_each_scored_rollout():
    rollouts = rollout_batch([2, 1, 3], [1, np.nan, 0.5, 0, 1, np.nan], lengths=[1, 2, 3, 4, 5, 6])
    expected = (["p0", "p1", "p2", "p2"], [1.0, 0.5, 0.0, 1.0], [1, 3, 4, 5])
    assert rollouts.observations() == expected
    assert pad_rollouts(rollouts, 4).observations() == expected


def test_an_empty_response_costs_a_token():
    rollouts = dataclasses.replace(rollout_batch([2], [1, 0]), response_length_R=np.array([0, 3]))
    assert rollouts.observations() == (["p0", "p0"], [1.0, 0.0], [1, 3])


def test_all_unscored_observes_nothing():
    assert rollout_batch([2], [np.nan, np.nan]).observations() == ([], [], [])


def test_joined_waves_stay_together_by_prompt():
    first = rollout_batch([1, 1, 1], [0.1, 0.2, 0.3], lengths=[1, 2, 3], truncated=[1, 0, 0])
    rest = rollout_batch([2, 0, 1], [0.4, 0.5, 0.6], lengths=[4, 5, 6], truncated=[0, 0, 1])
    rest = dataclasses.replace(rest, batch=first.batch)
    both = first.joined(rest)
    assert both.group_id_R.tolist() == [0, 0, 0, 1, 2, 2]
    assert both.score_R.tolist() == [0.1, 0.4, 0.5, 0.2, 0.3, 0.6]
    assert both.response_length_R.tolist() == [1, 4, 5, 2, 3, 6]
    assert both.truncated_R.tolist() == [True, False, False, False, False, True]
    rest = dataclasses.replace(rest, error_R=np.array([True, False, False]))
    assert first.joined(rest).error_R.tolist() == [False, True, False, False, False, False]
    experiences = [first.experiences[0], *rest.experiences[:2], *first.experiences[1:], rest.experiences[2]]
    assert all(one is other for one, other in zip(both.experiences, experiences, strict=True))


@pytest.mark.parametrize(
    ("budgets", "scores", "mixed"),
    [
        ([2, 2], [1, 0, 1, 1], [1, 1, 0, 0]),
        ([4], [0.4] * 4, [0] * 4),
        ([3], [1, np.nan, 0], [1, 0, 1]),
        ([3], [1, np.nan, 1], [0, 0, 0]),
        ([1, 2], [1, 0, 0.1], [0, 1, 1]),
        ([2], [np.nan, np.nan], [0, 0]),
    ],
    ids=["binary", "constant graded", "unscored", "unscored constant", "group of one", "none scored"],
)
def test_mixed_groups(budgets, scores, mixed):
    assert rollout_batch(budgets, scores).mixed_R.tolist() == [bool(m) for m in mixed]


def test_metrics_are_of_raw_scores():
    rollouts = rollout_batch([2, 3], [1, 0, np.nan, 0.5, 0.5], lengths=[1, 2, 3, 4, 5], truncated=[0, 0, 1, 0, 0])
    assert rollouts.metrics() == {
        "rollout/reward_mean": 0.5,
        "rollout/reward_std": pytest.approx(np.std([1, 0, 0.5, 0.5], ddof=1)),
        "rollout/unscored_rate": pytest.approx(0.2),
        "rollout/response_length_mean": 3.0,
        "rollout/truncated_rate": pytest.approx(0.2),
        "rollout/num_samples": 5.0,
        "verifier/correct_rate": pytest.approx(0.2),
        "verifier/wrong_rate": pytest.approx(0.6),
        "verifier/unscorable_rate": pytest.approx(0.2),
        "verifier/error_rate": 0.0,
    }


def test_verifier_rates_add_up_and_leave_padding_out():
    rollouts = rollout_batch([2, 3], [1, np.nan, np.nan, 0.5, 0])
    rollouts = dataclasses.replace(rollouts, error_R=np.array([False, True, False, False, False]))
    padded = pad_rollouts(rollouts, 4)
    assert len(padded) == 8
    rates = {name: value for name, value in padded.metrics().items() if name.startswith("verifier/")}
    assert rates == {
        "verifier/correct_rate": pytest.approx(0.2),
        "verifier/wrong_rate": pytest.approx(0.4),
        "verifier/unscorable_rate": pytest.approx(0.2),
        "verifier/error_rate": pytest.approx(0.2),
    }
    assert padded.metrics()["rollout/unscored_rate"] == pytest.approx(0.4)


def test_metrics_without_any_score_are_finite():
    metrics = rollout_batch([2], [np.nan, np.nan]).metrics()
    assert metrics["rollout/unscored_rate"] == 1.0
    assert all(np.isfinite(value) for value in metrics.values())


def test_ledger_counts_rollouts_and_tokens_with_signal():
    rollouts = rollout_batch([2, 2], [1, 0, 1, 1], lengths=[1, 2, 3, 4])
    ledger = Ledger()
    ledger.add_step(rollouts, {"generation": 1.5})
    ledger.add_step(rollouts, {"generation": 0.5, "ppo_train": 2.0})
    assert ledger.metrics() == {
        "ledger/rollouts": 8.0,
        "ledger/generated_tokens": 20.0,
        "ledger/trained_tokens": 6.0,
        "ledger/eval_rollouts": 0.0,
        "ledger/seconds_generation": 2.0,
        "ledger/seconds_ppo_train": 2.0,
    }
    again = Ledger()
    again.load_state_dict(ledger.state_dict())
    again.charge("generation", 1.0)
    assert again.metrics()["ledger/seconds_generation"] == 3.0
    assert ledger.metrics()["ledger/seconds_generation"] == 2.0


def test_length_is_that_of_the_rollouts():
    rollouts = rollout_batch([2, 1], [1, 0, 1])
    assert len(rollouts) == 3
    assert len(pad_rollouts(rollouts, 5)) == 5
