"""Pass rates as the mean of a Beta distribution that forgets."""

import json

import numpy as np
import pytest

from coba_openrlhf import AllocationConfig, Allocator
from coba_openrlhf.allocation.estimates import PosteriorHistory

pytestmark = pytest.mark.filterwarnings("ignore:budget_max lets one prompt")


def visit(history, version, **outcomes):
    """One update; ``a=(successes, rollouts)``."""
    success_P, rollouts_P = np.array(list(outcomes.values()), np.float64).T
    history.update(list(outcomes), success_P, rollouts_P, None, version)


def rate(history, prompt_id, version, prior=0.5):
    return float(history.estimate([prompt_id], prior, version).pass_rate_P[0])


def test_unseen_prompt_starts_at_the_prior():
    history = PosteriorHistory(0.9, prior_strength=3.0)
    estimates = history.estimate(["a"], 0.2, 5)
    assert estimates.pass_rate_P == pytest.approx([0.2]) and not estimates.seen_P.any()
    assert (estimates.success_P[0], estimates.failure_P[0]) == pytest.approx((0.6, 2.4))


@pytest.mark.parametrize(("prior", "mean"), [(0.0, 0.01), (1.0, 0.99), (0.005, 0.01), (0.3, 0.3)])
def test_prior_is_never_certain(prior, mean):
    assert rate(PosteriorHistory(0.9), "a", 0, prior) == pytest.approx(mean)


def test_forgetting_per_policy_version_by_hand():
    history = PosteriorHistory(0.5, prior_strength=2.0)
    visit(history, 0, a=(6, 8))
    # Nothing forgotten within a version: (6 + 1) / (8 + 2).
    assert rate(history, "a", 0) == pytest.approx(7 / 10)
    # Two versions later a quarter counts: (1.5 + 1) / (2 + 2).
    assert rate(history, "a", 2) == pytest.approx(2.5 / 4)
    visit(history, 2, a=(0, 2))
    # 1.5 of 2, and 0 of 2: (1.5 + 1) / (4 + 2).
    assert rate(history, "a", 2) == pytest.approx(2.5 / 6)
    estimates = history.estimate(["a"], 0.25, 3)
    assert (estimates.success_P[0], estimates.failure_P[0]) == pytest.approx((0.75 + 0.5, 1.25 + 1.5))
    assert estimates.last_rate_P.tolist() == [0.0] and estimates.version_P.tolist() == [2.0]


def test_long_unvisited_prompt_drifts_back_to_the_prior():
    history = PosteriorHistory(0.9)
    visit(history, 0, a=(10, 10))
    away = [abs(rate(history, "a", version, 0.3) - 0.3) for version in (0, 10, 30, 100, 1000)]
    assert away == sorted(away, reverse=True) and away[0] > 0.5 and away[-1] < 1e-12


def test_without_decay_nothing_is_forgotten():
    history = PosteriorHistory(1.0)
    visit(history, 0, a=(3, 4))
    assert rate(history, "a", 10**6) == pytest.approx(4 / 6)


def test_late_answers_of_an_older_policy():
    history = PosteriorHistory(0.5)
    visit(history, 4, a=(4, 4))
    visit(history, 2, a=(0, 4))
    # Neither is forgotten in advance, and the version does not go back: 4 of 8 at version 4, a half of it at 5.
    assert rate(history, "a", 4) == pytest.approx(5 / 10)
    assert rate(history, "a", 5, 0.25) == pytest.approx((2 + 0.5) / 6)
    assert history.estimate(["a"], 0.5, 4).version_P.tolist() == [4.0]
    # A prediction for an older policy is made from what is known.
    assert rate(history, "a", 1) == rate(history, "a", 4)


def test_first_wave_counts_in_full_and_is_not_remembered():
    history = PosteriorHistory(0.5)
    visit(history, 0, a=(4, 4))
    before = json.dumps(history.state_dict())
    wave = np.array([0.0, 2.0]), np.array([2.0, 2.0])
    estimates = history.estimate(["a", "b"], 0.5, 1, wave)
    assert estimates.pass_rate_P == pytest.approx([(2 + 1) / 6, (2 + 1) / 4])
    assert estimates.seen_P.tolist() == [True, False]
    assert json.dumps(history.state_dict()) == before


def test_prior_follows_the_policy():
    """An unseen prompt starts at the mean success rate of the last steps, not at one half."""
    allocator = Allocator(AllocationConfig(pass_rate_source="posterior", unseen_pass_rate=0.3, capability_window=2))
    assert allocator.allocate(["new"], 8).pass_rate_P.tolist() == pytest.approx([0.3])
    for scores in ([0, 0, 0, 0], [1, 1, 1, 0], [1, 0, 0, 0]):
        allocator.observe(["a"] * 4, scores)
    assert allocator.allocate(["new"], 8).pass_rate_P.tolist() == pytest.approx([0.5])
    allocator.observe(["b"] * 4, [1, 1, 1, 1])
    assert allocator.allocate(["new"], 8).pass_rate_P.tolist() == pytest.approx([(0.25 + 1) / 2])


def test_allocator_counts_versions_by_itself_or_is_told():
    config = AllocationConfig(pass_rate_source="posterior", pass_rate_decay=0.5, capability_window=1)
    allocator = Allocator(config)
    allocator.observe(["a"] * 4, [1, 1, 1, 0])
    # One version on: 1.5 of 2, and the prior 0.75 counts two.
    estimates = allocator.allocate(["a"], 8).estimates
    assert (estimates.success_P[0], estimates.failure_P[0]) == pytest.approx((1.5 + 1.5, 0.5 + 0.5))
    told = Allocator(config)
    told.observe(["a"] * 4, [1, 1, 1, 0], policy_version=10)
    assert told.allocate(["a"], 8).estimates.success_P == pytest.approx([3.0])
    told.observe(["b"] * 4, [1, 1, 1, 0], policy_version=12)
    # Version 13 generates next: 3 of 4 after three versions.
    assert told.allocate(["a"], 8).estimates.success_P == pytest.approx([3 / 8 + 1.5])
    told.observe(["c"] * 4, [1, 1, 1, 0], policy_version=3)
    assert told.state_dict()["policy_version"] == 13


# --- Optimism --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["window", "posterior", "probe"])
def test_optimism_keeps_hopeless_prompts_alive(source):
    def estimates(optimism):
        allocator = Allocator(AllocationConfig(pass_rate_source=source, optimism=optimism))
        for _ in range(3):
            allocator.observe(["never"] * 8 + ["seldom"] * 8 + ["often"] * 8 + ["always"] * 8,
                              [0] * 8 + [0] * 7 + [1] + [0] * 2 + [1] * 6 + [1] * 8)  # fmt: skip
        return allocator.allocate(["never", "seldom", "often", "always", "new"], 40).pass_rate_P

    plain_P, little_P, much_P, huge_P = (estimates(optimism) for optimism in (0.0, 1.0, 3.0, 1e9))
    assert (plain_P[:2] < little_P[:2]).all() and (little_P[:2] < much_P[:2]).all()
    assert huge_P[:2].tolist() == [0.5, 0.5]
    for raised_P in (little_P, much_P, huge_P):
        assert raised_P[2:4].tolist() == plain_P[2:4].tolist()
        assert (raised_P <= np.maximum(plain_P, 0.5)).all()


def test_optimism_by_hand():
    history = PosteriorHistory(1.0, prior_strength=2.0, optimism=1.5)
    visit(history, 0, a=(1, 8))
    # Beta(2, 8): mean 0.2, variance 16 / (100 * 11).
    assert rate(history, "a", 0) == pytest.approx(0.2 + 1.5 * (16 / 1100) ** 0.5)
    # What the budgets are for is raised, not what is believed.
    assert history.estimate(["a"], 0.5, 0).posterior_mean_P == pytest.approx([0.2])


def test_optimism_fades_with_evidence():
    raised = []
    for rollouts in (2, 20, 200, 2000):
        history = PosteriorHistory(1.0, optimism=1.0)
        visit(history, 0, a=(0, rollouts))
        raised.append(rate(history, "a", 0))
    assert raised == sorted(raised, reverse=True) and raised[-1] < 0.002
