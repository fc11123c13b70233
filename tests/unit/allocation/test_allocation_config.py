"""Settings are checked when they are made."""

import dataclasses
import json
import math

import numpy as np
import pytest

from coba_openrlhf import AllocationConfig, Allocator
from coba_openrlhf.allocation import STRATEGIES, STRATEGY_NAMES


def test_defaults_are_the_published_ones():
    config = AllocationConfig()
    assert (config.strategy, config.solver, config.pass_rate_source) == ("coba", "auto", "window")
    assert (config.tau, config.kappa, config.lambd, config.gamma) == (5.0, 11.0, 8.0, 10.0)
    assert (config.alpha_min, config.alpha_max, config.alpha_limit) == (1.0, None, 10.0)
    assert (config.capability_window, config.eps, config.budget_min, config.budget_max) == (10, 0.01, 2, 128)
    assert (config.pass_rate_window, config.unseen_pass_rate, config.success_threshold) == (3, 0.5, 1.0)
    assert (config.tau_mode, config.tau_min, config.tau_max, config.saturation) == ("fixed", 3.0, 12.0, "variance")
    assert (config.static_alpha, config.static_beta, config.success_rule) == (10.5, 1.5, "threshold")
    assert (config.perturbation, config.optimism, config.capability_bins) == (0.0, 0.0, 1)


def test_numbers_become_python_numbers():
    config = AllocationConfig(tau=5, kappa=np.float32(11), budget_max=np.int64(64), alpha_max=9)
    assert config == AllocationConfig(budget_max=64, alpha_max=9.0)
    assert json.loads(json.dumps(dataclasses.asdict(config))) == dataclasses.asdict(config)


def test_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        AllocationConfig().tau = 7.0


@pytest.mark.parametrize(
    ("field", "wrong", "rule"),
    [
        ("strategy", "knapsak", "one of uniform, coba, coba_released"),
        ("strategy", "rule.py", "path/to/rule.py:ClassName"),
        ("strategy", 3, "one of uniform, coba"),
        ("strategy", None, "one of uniform, coba"),
        ("pass_rate_source", "oracle", "one of window, posterior, probe"),
        ("tau_mode", "linear", "one of fixed, adaptive"),
        ("saturation", "p", "one of variance, inverse_variance"),
        ("vip_estimator", "grpo", "one of dr_grpo, rloo"),
        ("success_rule", "mean", "one of threshold, score"),
        ("solver", "lp", "one of auto, heap, threshold, exact"),
        ("solver", ["heap"], "one of auto, heap"),
        ("tau_min", 13.0, "must be <= tau_max, got 13.0 > 12.0"),
        ("tau_max", 2.0, "must be <= tau_max, got 3.0 > 2.0"),
        ("static_alpha", 0.0, "a number in [1e-09, 1e+09]"),
        ("static_beta", math.inf, "a number in [1e-09, 1e+09]"),
        ("decay_steps", 0, "an integer >= 1"),
        ("capability_bins", 0, "an integer >= 1"),
        ("capability_bins", 101, "an integer in [1, 100]"),
        ("perturbation", 1.0, "a number in [0, 1)"),
        ("perturbation", -0.1, "a number in [0, 1)"),
        ("seed", -1, "an integer >= 0"),
        ("seed", 2**63, "an integer in [0,"),
        ("pass_rate_decay", 0.0, "a number in (0, 1]"),
        ("pass_rate_decay", 1.5, "a number in (0, 1]"),
        ("prior_strength", 0.0, "a number in [1e-09, 1e+09]"),
        ("optimism", -1.0, "a number in [0, 1e+09]"),
        ("probe_rollouts", 0, "an integer >= 1"),
        ("fallback_steps", -1, "an integer >= 0"),
        ("fallback_steps", 1.0, "an integer >= 0"),
        ("capability_window", 10_001, "an integer in [1, 10,000]"),
        ("pass_rate_window", 10**9, "an integer in [1, 10,000]"),
        ("budget_max", 10**13, "an integer in [1, 1,000,000,000,000]"),
        ("tau", 0.0, "a number in [1e-09, 1e+09]"),
        ("tau", "5", "a number in [1e-09, 1e+09]"),
        ("tau", True, "a number in [1e-09, 1e+09]"),
        ("tau", None, "a number in [1e-09, 1e+09]"),
        ("kappa", math.nan, "a number in [1e-09, 1e+09]"),
        ("kappa", 1.5, "alpha_max must be in [alpha_min, kappa)"),
        ("lambd", -1.0, "a number in [0, 1e+09]"),
        ("gamma", math.inf, "a number in [0, 1e+09]"),
        ("alpha_min", 0.0, "a number in [1e-09, 1e+09]"),
        ("alpha_min", 10.5, "alpha_max must be in [alpha_min, kappa)"),
        ("alpha_max", 11.0, "in [alpha_min, kappa)"),
        ("alpha_max", 0.5, "in [alpha_min, kappa)"),
        ("alpha_max", "9", "a number in"),
        ("capability_window", 0, "an integer >= 1"),
        ("capability_window", 2.0, "an integer >= 1"),
        ("capability_window", True, "an integer >= 1"),
        ("eps", 0.0, "a number in [1e-09, 0.5)"),
        ("eps", 0.5, "a number in [1e-09, 0.5)"),
        ("budget_min", 0, "an integer >= 1"),
        ("budget_min", 129, "must be <= budget_max"),
        ("budget_max", "128", "an integer >= 1"),
        ("pass_rate_window", 0, "an integer >= 1"),
        ("unseen_pass_rate", 1.5, "a number in [0, 1]"),
        ("unseen_pass_rate", math.nan, "a number in [0, 1]"),
        ("success_threshold", 0.0, "a number in (0, 1]"),
        ("success_threshold", 1.01, "a number in (0, 1]"),
    ],
)
def test_wrong_values_are_named(field, wrong, rule):
    with pytest.raises(ValueError) as raised:
        AllocationConfig(**{field: wrong})
    message = str(raised.value)
    assert field in message and rule in message and (repr(wrong) in message or str(wrong) in message)


@pytest.mark.parametrize("strategy", STRATEGY_NAMES)
@pytest.mark.parametrize("solver", ["auto", "heap", "threshold", "exact"])
def test_every_strategy_and_solver_can_be_configured(strategy, solver):
    allocator = Allocator(AllocationConfig(strategy=strategy, solver=solver, budget_max=8))
    assert allocator.allocate(range(8), 40).budget_P.sum() == 40


def test_every_strategy_has_a_name():
    assert set(STRATEGY_NAMES) == set(STRATEGIES) and len(STRATEGY_NAMES) == 15


def test_smallest_budget_holds_the_first_wave():
    assert AllocationConfig(probe_rollouts=4).smallest_budget == 2
    assert AllocationConfig(probe_rollouts=4, pass_rate_source="probe").smallest_budget == 4
    assert AllocationConfig(budget_min=5, probe_rollouts=4, pass_rate_source="probe").smallest_budget == 5
    # A first wave of three makes the steps of Dr.GRPO's variance fall.
    AllocationConfig(strategy="vip", vip_estimator="dr_grpo", pass_rate_source="probe", probe_rollouts=3)
