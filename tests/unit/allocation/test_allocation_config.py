"""Settings are checked when they are made."""

import dataclasses
import json
import math

import numpy as np
import pytest

from coba_openrlhf import AllocationConfig


def test_defaults_are_the_published_ones():
    config = AllocationConfig()
    assert (config.strategy, config.solver, config.pass_rate_source) == ("coba", "heap", "window")
    assert (config.tau, config.kappa, config.lambd, config.gamma) == (5.0, 11.0, 8.0, 10.0)
    assert (config.alpha_min, config.alpha_max, config.alpha_limit) == (1.0, None, 10.0)
    assert (config.capability_window, config.eps, config.budget_min, config.budget_max) == (10, 0.01, 2, 128)
    assert (config.pass_rate_window, config.unseen_pass_rate, config.success_threshold) == (3, 0.5, 1.0)


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
        ("strategy", "knapsak", "one of coba, uniform"),
        ("strategy", 3, "one of coba, uniform"),
        ("pass_rate_source", "oracle", "one of window"),
        ("solver", "threshold", "not available yet"),
        ("solver", "lp", "one of heap"),
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
