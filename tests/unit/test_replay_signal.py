"""The chance of a signal, against enumeration, integration and the truth of simulated runs."""

# Legend: P = prompts of a step.

import dataclasses
from itertools import combinations

import mpmath
import numpy as np
import pytest

from coba_openrlhf.allocation import AllocationConfig, Allocator
from coba_openrlhf.replay import Belief, Log, Rule, belief, chance_of_signal, compute_beliefs, fit_prior, replay
from coba_openrlhf.replay.beta import log_moment
from tests.replay_runs import make_step

JEFFREYS = (0.5, 0.5)


def chance_of(size, successes, scored, *, wave=(0, 0), mixed=None, prior=JEFFREYS):
    """Of one prompt; ``wave`` is successes and rollouts of the first wave."""
    step = make_step(budget=[max(scored, 1)], scored=[scored], successes=[successes], wave=[wave], mixed=mixed)
    believed = Belief(*(np.array([float(value)]) for value in prior))
    chance_P, extrapolated_P = chance_of_signal(step, believed, np.array([float(size)]))
    return chance_P[0], extrapolated_P[0]


# Fewer rollouts than in the log: enumeration.


@pytest.mark.parametrize("scored", range(2, 8))
def test_smaller_groups_by_enumeration(scored):
    """Every subset of the logged rollouts is as likely as any other."""
    for successes in range(scored + 1):
        outcomes = [1] * successes + [0] * (scored - successes)
        for size in range(1, scored + 1):
            groups = list(combinations(outcomes, size))
            expected = sum(len(set(group)) > 1 for group in groups) / len(groups)
            chance, extrapolated = chance_of(size, successes, scored)
            assert chance == pytest.approx(expected, abs=1e-12) and not extrapolated


@pytest.mark.parametrize("num_wave", [1, 2, 3])
def test_the_first_wave_belongs_to_the_group(num_wave):
    """Every subset that has the whole wave, or that is a part of it where the group is smaller."""
    num_rest = 4
    for right_wave in range(num_wave + 1):
        for right_rest in range(num_rest + 1):
            wave = [1] * right_wave + [0] * (num_wave - right_wave)
            rest = [1] * right_rest + [0] * (num_rest - right_rest)
            for size in range(1, num_wave + num_rest + 1):
                groups = (
                    list(combinations(wave, size))
                    if size <= num_wave
                    else [(*wave, *others) for others in combinations(rest, size - num_wave)]
                )
                expected = sum(len(set(group)) > 1 for group in groups) / len(groups)
                chance, _ = chance_of(size, right_wave + right_rest, num_wave + num_rest, wave=(right_wave, num_wave))
                assert chance == pytest.approx(expected, abs=1e-12)


def test_the_group_that_was_is_what_happened():
    for scored in (2, 5, 64, 3000):
        for successes in (0, 1, scored // 2, scored - 1, scored):
            chance, _ = chance_of(scored, successes, scored)
            assert chance == pytest.approx(float(0 < successes < scored), abs=1e-9)
    assert chance_of(7, 0, 9) == (0.0, False)  # exactly: no rounding adds a signal
    assert chance_of(7, 9, 9) == (0.0, False)


def test_one_rollout_never_has_a_signal():
    assert chance_of(1, 2, 4)[0] == 0.0
    assert chance_of(1, 1, 1)[0] == 0.0
    assert chance_of(0, 0, 0) == (0.0, False)
    assert chance_of(1, 0, 0) == (0.0, False)


def test_smaller_groups_are_unbiased():
    """Mean over many logs of a prompt = the chance of a fresh group."""
    rng, p, scored, size = np.random.default_rng(0), 0.2, 12, 5
    successes = rng.binomial(scored, p, 100_000)
    chance_of_successes = [chance_of(size, s, scored)[0] for s in range(scored + 1)]
    assert np.take(chance_of_successes, successes).mean() == pytest.approx(1 - p**size - (1 - p) ** size, abs=3e-3)


def test_budgets_that_have_seen_the_wave_are_unbiased_exactly():
    """Sum over all outcomes of a log whose lengths, and whose replayed budgets, follow from the first wave."""
    p, num_wave = 0.3, 2
    logged, asked = {0: 9, 1: 3, 2: 6}, {0: 7, 1: 2, 2: 4}  # successes of the wave -> rollouts
    estimate = truth = 0.0
    for right_wave in range(num_wave + 1):
        chance_of_wave = mpmath.binomial(num_wave, right_wave) * p**right_wave * (1 - p) ** (num_wave - right_wave)
        num_rest, size = logged[right_wave] - num_wave, asked[right_wave]
        new = size - num_wave
        constant = {0: (1 - p) ** new, 1: 0.0, 2: p**new}[right_wave]
        truth += chance_of_wave * (1 - constant)
        for right_rest in range(num_rest + 1):
            chance_of_rest = mpmath.binomial(num_rest, right_rest) * p**right_rest * (1 - p) ** (num_rest - right_rest)
            chance, _ = chance_of(size, right_wave + right_rest, logged[right_wave], wave=(right_wave, num_wave))
            estimate += chance_of_wave * chance_of_rest * chance
    assert float(estimate) == pytest.approx(float(truth), abs=1e-12)


# More rollouts than in the log: integration.


@pytest.mark.parametrize("prior", [JEFFREYS, (0.2, 3.0), (40.0, 2.5)])
@pytest.mark.parametrize(("size", "scored"), [(3, 1), (9, 4), (40, 8), (2, 0), (128, 2)])
def test_larger_groups_by_integration(size, scored, prior):
    """A constant group in the log, and new rollouts of a Beta-distributed pass rate."""
    for successes in {0, scored}:
        expected = 1.0
        if successes == 0:
            expected -= mean_power(prior[1] + scored, prior[0], size - scored)
        if successes == scored:
            expected -= mean_power(prior[0] + scored, prior[1], size - scored)
        chance, extrapolated = chance_of(size, successes, scored, prior=prior)
        assert chance == pytest.approx(expected, abs=1e-9) and extrapolated


def mean_power(a, b, power):
    """E[p^power] under Beta(a, b), by integration."""
    with mpmath.workdps(80):  # densities may have poles at the ends

        def moment(exponent):
            return mpmath.quad(lambda p: p ** (exponent + a - 1) * (1 - p) ** (mpmath.mpf(b) - 1), [0, 0.5, 1])

        return float(moment(mpmath.mpf(power)) / moment(mpmath.mpf(0)))


def test_more_rollouts_cannot_take_a_signal_away():
    assert chance_of(9, 1, 8) == (1.0, False)
    assert chance_of(500, 7, 8, prior=(1e-3, 900.0)) == (1.0, False)


@pytest.mark.parametrize("wave", [(0, 0), (0, 3), (1, 3)])
def test_chances_grow_with_the_group(wave):
    for successes, scored in ((1, 8), (4, 8), (1, 4)):
        chances = [chance_of(size, successes, scored, wave=wave)[0] for size in range(0, 40)]
        assert (np.diff(chances) >= -1e-12).all() and min(chances) >= 0 and max(chances) <= 1
    for scored in (0, 1, 6):
        chances = [chance_of(size, 0, scored)[0] for size in range(0, 40)]
        assert (np.diff(chances) >= -1e-12).all() and chances[-1] > 0


def test_successes_and_failures_are_symmetric():
    for size in (3, 12):
        assert chance_of(size, 2, 8)[0] == pytest.approx(chance_of(size, 6, 8)[0], abs=1e-12)
    assert chance_of(12, 0, 8, prior=(0.3, 2.0))[0] == pytest.approx(chance_of(12, 8, 8, prior=(2.0, 0.3))[0])


def test_equal_graded_scores_are_a_constant_group():
    assert chance_of(4, 3.0, 6, mixed=[False]) == (0.0, False)
    assert chance_of(9, 3.0, 6, mixed=[False])[0] == pytest.approx(chance_of(9, 0, 6)[0])
    assert 0 < chance_of(4, 2.5, 6, mixed=[True])[0] < 1


def test_graded_groups_that_were_are_what_happened():
    """Also where less than one success is spread over the group."""
    assert chance_of(6, 0.3, 6, mixed=[True]) == (1.0, False)
    assert chance_of(6, 5.8, 6, wave=(1.9, 2), mixed=[True]) == (1.0, False)


# What the whole log says about pass rates.


def test_prior_has_the_moments_of_the_pass_rates():
    rng = np.random.default_rng(3)
    rate_V = rng.beta(0.3, 1.2, 200_000)
    scored_V = rng.choice([2, 3, 8, 30], len(rate_V))
    step = make_step(budget=scored_V, scored=scored_V, successes=rng.binomial(scored_V, rate_V))
    assert fit_prior([step]) == pytest.approx((0.3, 1.2), rel=0.05)


def test_prior_by_hand():
    """Two visits and one from Jeffreys: means (1 + 1/4 + 1/2) / 3, squares (1 + 0 + 3/8) / 3."""
    step = make_step(budget=[3, 4], scored=[3, 4], successes=[3, 1])
    mean, square = (1 + 1 / 4 + 1 / 2) / 3, (1 + 0 + 3 / 8) / 3
    both = (mean - square) / (square - mean**2)
    assert fit_prior([step]) == pytest.approx((mean * both, (1 - mean) * both))


@pytest.mark.parametrize(
    ("successes", "scored", "low", "high"),
    [([0] * 500, [4] * 500, 0, 0.02), ([4] * 500, [4] * 500, 0.98, 1), ([2] * 500, [4] * 500, 0.49, 0.51)],
)
def test_prior_of_equal_outcomes_stays_usable(successes, scored, low, high):
    a, b = fit_prior([make_step(budget=scored, scored=scored, successes=successes)])
    assert a > 0 and b > 0 and np.isfinite(a + b) and low < a / (a + b) < high


def test_prior_without_a_pair_of_rollouts_is_that_of_jeffreys():
    assert fit_prior([make_step(budget=[2, 2], scored=[1, 0], successes=[1, 0])]) == pytest.approx(JEFFREYS)


def test_beliefs_by_hand(monkeypatch):
    """Prompt a has rollouts in steps 1, 2 and 5; b only in step 2."""
    monkeypatch.setattr(belief, "NEARNESS", (0.8,))
    steps = [
        make_step(budget=[4], scored=[4], successes=[1], ids=["a"], number=1),
        make_step(budget=[4, 4], scored=[4, 3], successes=[2, 3], ids=["b", "a"], number=2),
        make_step(budget=[4], scored=[4], successes=[0], ids=["a"], number=5),
    ]
    a, b = fit_prior(steps)
    first, second, last = compute_beliefs(steps)
    assert first.success_P == pytest.approx([a + 0.8 * 3 + 0.8**4 * 0])
    assert first.failure_P == pytest.approx([b + 0.8 * 0 + 0.8**4 * 4])
    assert second.success_P == pytest.approx([a, a + 0.8 * 1 + 0.8**3 * 0])
    assert second.failure_P == pytest.approx([b, b + 0.8 * 3 + 0.8**3 * 4])
    assert last.success_P == pytest.approx([a + 0.8**4 * 1 + 0.8**3 * 3])
    assert last.failure_P == pytest.approx([b + 0.8**4 * 3 + 0.8**3 * 0])


@pytest.mark.parametrize(("moves", "nearness"), [("never", 1.0), ("always", 0.0)])
def test_neighbouring_steps_count_as_they_deserve(monkeypatch, moves, nearness):
    """All of them where pass rates stand still, none where each step draws new ones."""
    rng = np.random.default_rng(2)
    rate_P = rng.beta(0.5, 0.5, 60)
    steps = []
    for number in range(1, 9):
        rates = rate_P if moves == "never" else rng.beta(0.5, 0.5, 60)
        steps.append(make_step(budget=[8] * 60, scored=[8] * 60, successes=rng.binomial(8, rates), number=number))
    chosen = compute_beliefs(steps)
    monkeypatch.setattr(belief, "NEARNESS", (nearness,))
    for ours, expected in zip(chosen, compute_beliefs(steps), strict=True):
        np.testing.assert_array_equal(ours.success_P, expected.success_P)
        np.testing.assert_array_equal(ours.failure_P, expected.failure_P)


def test_moments_of_beta_distributions():
    for a, b, success, failure in ((0.5, 0.5, 3, 0), (2.0, 7.5, 4, 9), (0.02, 3.0, 0, 5), (30.0, 1e-3, 2.5, 0.5)):
        expected = mpmath.log(mpmath.beta(a + success, b + failure) / mpmath.beta(a, b))
        arrays = (np.array([float(value)]) for value in (a, b, success, failure))
        assert log_moment(*arrays)[0] == pytest.approx(float(expected), rel=1e-12)


# The truth.


def simulate(config, shape, num_prompts=200, num_steps=25, seed=0):
    """Log of a real allocator with slowly rising pass rates, and these, ``[P]`` per step."""
    rng, allocator = np.random.default_rng(seed), Allocator(config)
    rate_P = rng.beta(*shape, num_prompts)
    ids = [f"p{i}" for i in range(num_prompts)]
    num_wave = config.probe_rollouts if config.pass_rate_source == "probe" else 0
    steps, rates = [], []
    for number in range(1, num_steps + 1):
        wave_P = rng.binomial(num_wave, rate_P)
        probe = None
        if num_wave:
            scores = [float(j < right) for right in wave_P for j in range(num_wave)]
            probe = ([i for i in ids for _ in range(num_wave)], scores)
        budget_P = allocator.allocate(ids, 8 * num_prompts, probe=probe).budget_P
        success_P = wave_P + rng.binomial(budget_P - num_wave, rate_P)
        wave = [(right, num_wave) for right in wave_P]
        step = make_step(budget=budget_P, scored=budget_P, successes=success_P, wave=wave, ids=ids, number=number)
        allocator.observe_counts(step.observation(), number - 1)
        steps.append(step)
        rates.append(rate_P)
        rate_P = rate_P + 0.03 * rate_P * (1 - rate_P)
    return Log(steps, []), rates


def true_signal(step, rate_P, budget_P, has_seen_wave):
    """Share of prompts whose groups would have had a signal, from the pass rates that nobody knows."""
    if not has_seen_wave:
        return float(np.mean(1 - rate_P**budget_P - (1 - rate_P) ** budget_P))
    new_P, right_P = budget_P - step.wave_scored_P, step.wave_success_P
    chance_P = np.where(right_P == 0, 1 - (1 - rate_P) ** new_P, 1.0)
    chance_P = np.where(right_P == step.wave_scored_P, 1 - rate_P**new_P, chance_P)
    return float(chance_P.mean())


@pytest.mark.filterwarnings("ignore:pass-rate estimates predicted")
@pytest.mark.parametrize("shape", [(0.5, 0.9), (0.15, 0.3), (2.0, 3.0)])
@pytest.mark.parametrize("logged", [("uniform", "posterior"), ("coba", "posterior"), ("mixed", "probe")])
def test_estimates_of_the_signal_are_true(shape, logged):
    """Few prompts have no signal in the log and a larger budget in the replay: only they can mislead."""
    config = AllocationConfig(strategy=logged[0], pass_rate_source=logged[1])
    log, rates = simulate(config, shape)
    for name in ("uniform", "coba", "knapsack", "mixed", "hora", "reinforce_ada"):
        for source in {"posterior", logged[1]}:
            rule = Rule(name, dataclasses.replace(config, strategy=name, pass_rate_source=source))
            replayed = replay(rule, log)
            truth = [
                true_signal(step, rate_P, budget_P, source == "probe")
                for step, rate_P, budget_P in zip(log.steps, rates, replayed.budgets, strict=True)
            ]
            # Counted outcomes of 5,000 visits have an error of about 0.006.
            allowed = 0.02 + 0.05 * replayed.means()["extrapolated"]
            assert replayed.means()["signal"] == pytest.approx(np.mean(truth), abs=allowed), (name, source)
