"""Windowed pass rates."""

import json

import numpy as np
import pytest

from coba_openrlhf.allocation.pass_rate import WindowPassRate


def visit(estimator, **outcomes):
    """One update; ``a=(successes, rollouts)``."""
    successes_P, rollouts_P = np.array(list(outcomes.values()), np.int64).T
    estimator.update(list(outcomes), successes_P, rollouts_P)


def test_unseen_prompt_has_the_configured_estimate():
    pass_rate_P, seen_P = WindowPassRate(3, 0.4).estimate(["a", 7])
    assert pass_rate_P.tolist() == [0.4, 0.4] and pass_rate_P.dtype == np.float64
    assert seen_P.tolist() == [False, False]


def test_counts_are_pooled_over_visits_not_averaged():
    estimator = WindowPassRate(3, 0.5)
    visit(estimator, a=(1, 2), b=(0, 4))
    visit(estimator, a=(0, 8))
    pass_rate_P, seen_P = estimator.estimate(["b", "c", "a"])
    assert pass_rate_P.tolist() == [0.0, 0.5, 0.1]
    assert seen_P.tolist() == [True, False, True]


def test_visits_beyond_the_window_are_forgotten():
    estimator = WindowPassRate(2, 0.5)
    visit(estimator, a=(8, 8))
    visit(estimator, a=(0, 3))
    visit(estimator, a=(2, 5))
    assert estimator.estimate(["a"])[0].tolist() == [0.25]


def test_window_of_one_keeps_the_last_visit():
    estimator = WindowPassRate(1, 0.5)
    visit(estimator, a=(8, 8))
    visit(estimator, a=(1, 4))
    assert estimator.estimate(["a"])[0].tolist() == [0.25]


def test_agrees_with_a_plain_dictionary_of_lists():
    rng = np.random.default_rng(2)
    estimator, history = WindowPassRate(3, 0.5), {}
    for _ in range(60):
        ids = rng.choice(3000, 150, replace=False).tolist()
        rollouts_P = rng.integers(1, 20, len(ids))
        successes_P = rng.binomial(rollouts_P, 0.4)
        estimator.update(ids, successes_P, rollouts_P)
        for prompt_id, outcome in zip(ids, zip(successes_P, rollouts_P, strict=True), strict=True):
            history.setdefault(prompt_id, []).append(outcome)
    pass_rate_P, seen_P = estimator.estimate(range(3000))
    for prompt_id in range(3000):
        assert seen_P[prompt_id] == (prompt_id in history)
        if prompt_id in history:
            successes, rollouts = np.sum(history[prompt_id][-3:], axis=0)
            assert pass_rate_P[prompt_id] == successes / rollouts


def test_state_keeps_the_type_of_ids_and_continues_identically():
    estimator = WindowPassRate(3, 0.5)
    estimator.update(["1", 1, "zwölf"], np.array([1, 2, 3]), np.array([3, 3, 3]))
    twin = WindowPassRate(3, 0.5)
    twin.load_state_dict(json.loads(json.dumps(estimator.state_dict())))
    assert twin.estimate(["1", 1, "zwölf"])[0].tolist() == [1 / 3, 2 / 3, 1.0]
    for one in (estimator, twin):
        one.update([1, "new"], np.array([0, 1]), np.array([4, 2]))
    assert twin.state_dict() == estimator.state_dict()


def test_empty_state_round_trip():
    twin = WindowPassRate(3, 0.5)
    twin.load_state_dict(json.loads(json.dumps(WindowPassRate(3, 0.5).state_dict())))
    visit(twin, a=(1, 2))
    assert twin.estimate(["a"])[0].tolist() == [0.5]


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"prompt_ids": [], "successes": []}, "got none for rollouts"),
        ({"prompt_ids": ["a"], "successes": [[0, 0, 1]], "rollouts": []}, r"\(1, 3\), got \(1, 3\) and \(0, 3\)"),
    ],
)
def test_broken_state_is_refused(state, message):
    with pytest.raises(ValueError, match=message):
        WindowPassRate(3, 0.5).load_state_dict(state)
