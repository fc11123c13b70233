"""A damaged state is refused, and changes nothing."""

import copy
import json
import math

import numpy as np
import pytest

from coba_openrlhf import AllocationConfig, Allocator

pytestmark = pytest.mark.filterwarnings("ignore:budget_max lets one prompt")

SETTINGS = {
    "window": {"pass_rate_source": "window", "capability_bins": 2, "capability_window": 3, "fallback_steps": 4},
    "probe": {"pass_rate_source": "probe", "capability_bins": 2, "capability_window": 3, "fallback_steps": 4},
}


def allocator_with_history(source, name="a"):
    allocator = Allocator(AllocationConfig(**SETTINGS[source]))
    allocator.set_data([name, "x", 1])
    for scores in ([1, 0, 1, 1, 1, 0], [0, 0, 1, 0, 1, 0]):
        allocator.observe([name, name, 1, 1, 1, 1], scores, num_tokens=[9] * 6)
    if source == "probe":
        allocator.allocate([name, "x", 1], 12, probe=([name, name, 1], [1, 0, 1]))
    return allocator


def paths(value, prefix=()):
    """Every place in a nested state."""
    yield prefix
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from paths(part, (*prefix, key))


def replaced(state, path, wrong):
    state = copy.deepcopy(state)
    if not path:
        return wrong
    place = state
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = wrong
    return state


def refuses(source, state):
    """Whether the state is refused; nothing may have changed then."""
    allocator = allocator_with_history(source, "other")
    before, metrics = json.dumps(allocator.state_dict()), allocator.metrics()
    try:
        allocator.load_state_dict(state)
    except ValueError as error:
        assert json.dumps(allocator.state_dict()) == before and allocator.metrics() == metrics
        assert len(str(error)) > 20
        return True
    return False


@pytest.mark.parametrize("source", SETTINGS)
def test_every_missing_key_is_named(source):
    state = allocator_with_history(source).state_dict()
    for path in paths(state):
        if path and isinstance(path[-1], str):
            broken = copy.deepcopy(state)
            place = broken
            for key in path[:-1]:
                place = place[key]
            del place[path[-1]]
            with pytest.raises(ValueError, match=path[-1]):
                Allocator(AllocationConfig(**SETTINGS[source])).load_state_dict(broken)
            assert refuses(source, broken)


@pytest.mark.parametrize("wrong", ["text", {"a": 1}, {}, 1.5, math.nan, -1, -0.5, [[[0.0]]], [None], 10**30])
@pytest.mark.parametrize("source", SETTINGS)
def test_wrong_values_are_refused_wherever_they_are(source, wrong):
    state = allocator_with_history(source).state_dict()
    # Numbers that can be what they replace, and ids of another prompt, are nobody's error.
    harmless = {"last_rate", "num_tokens", "version", "successes", "failures", "rollouts", "pass_rates"}
    for path in paths(state):
        if path[:1] == ("config",):
            continue
        is_id = len(path) > 1 and path[-2] in ("prompt_ids", "data_ids")
        if is_id and isinstance(wrong, str | int):
            continue
        could_be = isinstance(wrong, float | int) and wrong >= 0
        if could_be and harmless & set(path) and len(path) > 2:
            continue
        assert refuses(source, replaced(state, path, wrong)), path


@pytest.mark.parametrize("source", SETTINGS)
def test_lists_of_wrong_lengths_are_refused(source):
    state = allocator_with_history(source).state_dict()
    for path in paths(state):
        place = state
        for key in path:
            place = place[key]
        # Ids of the data belong to no other list.
        if isinstance(place, list) and place and path != ("data_ids",):
            assert refuses(source, replaced(state, path, place[:-1])), path
            assert refuses(source, replaced(state, path, [*place, place[-1]])), path
    too_long = replaced(state, ("capability",), {"failure_rates": [0.5] * 4, "bin_rates": [[0.5, None]] * 4})
    assert refuses(source, too_long)


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        (("pass_rate", "last_rate", 0), 1.5),
        (("pass_rate", "successes", 0), [0.0, 3.0, 1.0]),  # more than there were rollouts
        (("pass_rate", "rollouts", 0), [0.0, 0.0, 0.0]),
        (("pass_rate", "num_tokens", 0), math.inf),
        (("pass_rate", "num_tokens", 0), "9"),
        (("pass_rate", "prompt_ids"), ["a", "a"]),
        (("data_ids"), ["a", "a"]),
        (("capability", "failure_rates", 0), 1.5),
        (("capability", "bin_rates", 0), [0.5, 0.5, 0.5]),
        (("capability", "bin_rates", 0), [0.5, -0.1]),
        (("guard", "streak"), 4),
        (("guard", "streak"), 1.0),
        (("step",), 10**13),
        (("step",), True),
        (("policy_version",), False),
        (("guard", "streak"), True),
        (("guard", "active"), 1),
        (("pass_rate", "last_rate"), [True, False]),
        (("version",), 1),
        (("version",), None),
        (("first_waves", "prompt_ids"), ["a"]),
    ],
)
def test_numbers_that_cannot_be_are_refused(path, wrong):
    state = allocator_with_history("window").state_dict()
    assert refuses("window", replaced(state, path if isinstance(path, tuple) else (path,), wrong))


@pytest.mark.parametrize(
    "wave",
    [
        {"successes": [3.0, 0.0, 1.0]},
        {"pass_rates": [1.5, 0.5, 0.5]},
        {"prompt_ids": ["a", "a", 1]},
        {"rollouts": [2.0, 0.0, math.nan]},
    ],
)
def test_first_waves_that_cannot_be_are_refused(wave):
    state = allocator_with_history("probe").state_dict()
    assert not refuses("probe", state)
    assert refuses("probe", state | {"first_waves": state["first_waves"] | wave})


def test_guard_cannot_be_active_where_it_never_is():
    state = Allocator(AllocationConfig(fallback_steps=0)).state_dict()
    state["guard"]["active"] = True
    with pytest.raises(ValueError, match="active must be false with fallback_steps 0"):
        Allocator(AllocationConfig(fallback_steps=0)).load_state_dict(state)


@pytest.mark.parametrize("wrong", [None, 3, "state", [], {}])
def test_no_state_at_all(wrong):
    assert refuses("window", wrong)


def test_state_of_another_version_is_refused():
    state = Allocator(AllocationConfig()).state_dict()
    with pytest.raises(ValueError, match="allocator state must have version 2, got 1"):
        Allocator(AllocationConfig()).load_state_dict(state | {"version": 1})


def test_state_of_another_configuration_is_refused_by_field():
    state = Allocator(AllocationConfig(tau=7.0, budget_max=64)).state_dict()
    with pytest.raises(ValueError, match=r"changes in tau: 7\.0 -> 5\.0; budget_max: 64 -> 128"):
        Allocator(AllocationConfig()).load_state_dict(state)


def test_every_setting_is_part_of_the_state():
    other = {
        "strategy": "uniform", "tau": 6.0, "tau_mode": "adaptive", "tau_min": 2.0, "tau_max": 13.0,
        "saturation": "inverse_variance", "kappa": 12.0, "lambd": 7.0, "gamma": 9.0, "alpha_min": 1.5, "alpha_max": 9.0,
        "capability_window": 9, "capability_bins": 2, "perturbation": 0.1, "seed": 1, "eps": 0.02, "static_alpha": 9.5,
        "static_beta": 2.5, "decay_steps": 99, "vip_estimator": "dr_grpo", "budget_min": 3, "budget_max": 127,
        "pass_rate_source": "posterior", "pass_rate_window": 2, "pass_rate_decay": 0.9, "prior_strength": 3.0,
        "optimism": 0.5, "probe_rollouts": 3, "unseen_pass_rate": 0.4, "success_rule": "score",
        "success_threshold": 0.9, "fallback_steps": 9, "solver": "heap",
    }  # fmt: skip
    state = Allocator(AllocationConfig()).state_dict()
    assert set(other) == set(state["config"])
    for name, value in other.items():
        with pytest.raises(ValueError, match=f"same configuration, got changes in {name}"):
            Allocator(AllocationConfig(**{name: value})).load_state_dict(state)


def test_numpy_numbers_in_a_state_are_numbers():
    allocator = allocator_with_history("window")
    state = allocator.state_dict()
    state["step"], state["pass_rate"]["successes"] = np.int64(state["step"]), np.array(state["pass_rate"]["successes"])
    assert not refuses("window", state)
