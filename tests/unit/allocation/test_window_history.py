"""Pass rates as the share of successes in a prompt's last visits."""

import json

import numpy as np
import pytest

from coba_openrlhf.allocation.estimates import WindowHistory


def visit(history, version=0, **outcomes):
    """One update; ``a=(successes, rollouts)``."""
    success_P, rollouts_P = np.array(list(outcomes.values()), np.float64).T
    history.update(list(outcomes), success_P, rollouts_P, None, version)


def rates(history, *prompt_ids, prior=0.5, version=0):
    return history.estimate(prompt_ids, prior, version).pass_rate_P.tolist()


def test_unseen_prompt_has_the_configured_estimate():
    estimates = WindowHistory(3, 0.4).estimate(["a", 7], 0.9, 0)
    assert estimates.pass_rate_P.tolist() == [0.4, 0.4] and estimates.pass_rate_P.dtype == np.float64
    assert estimates.seen_P.tolist() == [False, False]
    assert estimates.version_P.tolist() == [-1, -1]
    assert estimates.last_rate_P.tolist() == [0.4, 0.4]
    assert estimates.num_tokens_P.tolist() == [1, 1]
    # The Beta distribution starts at what the policy can do lately.
    np.testing.assert_allclose(estimates.posterior_mean_P, 0.9)


def test_counts_are_pooled_over_visits_not_averaged():
    history = WindowHistory(3, 0.5)
    visit(history, a=(1, 2), b=(0, 4))
    visit(history, a=(0, 8))
    estimates = history.estimate(["b", "c", "a"], 0.5, 0)
    assert estimates.pass_rate_P.tolist() == [0.0, 0.5, 0.1]
    assert estimates.seen_P.tolist() == [True, False, True]
    assert estimates.last_rate_P.tolist() == [0.0, 0.5, 0.0]


@pytest.mark.parametrize(("window", "rate"), [(1, 2 / 5), (2, 2 / 8), (3, 10 / 16), (9, 10 / 16)])
def test_visits_beyond_the_window_are_forgotten(window, rate):
    history = WindowHistory(window, 0.5)
    visit(history, a=(8, 8))
    visit(history, a=(0, 3))
    visit(history, a=(2, 5))
    assert rates(history, "a") == [rate]


def test_beta_distribution_pools_the_same_counts():
    history = WindowHistory(2, 0.5, prior_strength=4.0)
    for outcome in ((5, 5), (1, 3), (2, 4)):
        visit(history, a=outcome)
    estimates = history.estimate(["a"], 0.25, 0)
    assert (estimates.success_P.tolist(), estimates.failure_P.tolist()) == ([3 + 1], [4 + 3])


def test_agrees_with_a_plain_dictionary_of_lists():
    rng = np.random.default_rng(2)
    history, plain = WindowHistory(3, 0.5), {}
    for _ in range(60):
        ids = rng.choice(3000, 150, replace=False).tolist()
        rollouts_P = rng.integers(1, 20, len(ids)).astype(float)
        success_P = rng.binomial(rollouts_P.astype(int), 0.4).astype(float)
        history.update(ids, success_P, rollouts_P, None, 0)
        for prompt_id, outcome in zip(ids, zip(success_P, rollouts_P, strict=True), strict=True):
            plain.setdefault(prompt_id, []).append(outcome)
    estimates = history.estimate(range(3000), 0.5, 0)
    for prompt_id in range(3000):
        assert estimates.seen_P[prompt_id] == (prompt_id in plain)
        if prompt_id in plain:
            successes, rollouts = np.sum(plain[prompt_id][-3:], axis=0)
            assert estimates.pass_rate_P[prompt_id] == successes / rollouts


def test_versions_and_tokens_of_the_last_visit():
    history = WindowHistory(3, 0.5)
    history.update(["a", "b"], np.ones(2), np.ones(2), np.array([10.0, 30.0]), 7)
    history.update(["a", "c"], np.ones(2), np.ones(2), None, 5)  # a late answer of an older policy
    history.update(["b"], np.ones(1), np.ones(1), np.array([50.0]), 8)
    estimates = history.estimate(["a", "b", "c", "d"], 0.5, 9)
    assert estimates.version_P.tolist() == [7, 8, 5, -1]
    assert estimates.num_tokens_P.tolist() == [10, 50, 30, 30]


def test_state_keeps_the_type_of_ids_and_continues_identically():
    history = WindowHistory(3, 0.5)
    history.update(["1", 1, "zwölf"], np.array([1.0, 2, 3]), np.full(3, 3.0), None, 0)
    twin = WindowHistory(3, 0.5)
    twin.load_state_dict(json.loads(json.dumps(history.state_dict())))
    assert rates(twin, "1", 1, "zwölf") == [1 / 3, 2 / 3, 1.0]
    for one in (history, twin):
        one.update([1, "new"], np.array([0.0, 1]), np.array([4.0, 2]), None, 1)
    assert twin.state_dict() == history.state_dict()


def test_empty_state_round_trip():
    twin = WindowHistory(3, 0.5)
    twin.load_state_dict(json.loads(json.dumps(WindowHistory(3, 0.5).state_dict())))
    visit(twin, a=(1, 2))
    assert rates(twin, "a") == [0.5]
