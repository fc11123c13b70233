"""``coba.verifier*`` on the command line, in files, and where they cannot work."""

import importlib.util
from types import SimpleNamespace

import pytest

from coba_openrlhf.config import ConfigError, check, load_config, to_yaml
from coba_openrlhf.preflight import check_machine
from coba_openrlhf.rewards.scorer import ScorerSpec
from tests.rollouts import base_config


def test_a_verifier_per_source_on_the_command_line_and_in_files(tmp_path):
    chosen = {"gsm8k": "numeric", "a source": "exact"}
    config, _ = load_config(["--coba.verifier_of", '{"gsm8k": "numeric", "a source": "exact"}'])
    assert config.coba.verifier_of == chosen
    file = tmp_path / "run.yaml"
    file.write_text(to_yaml(config))
    assert load_config(["--config", str(file)])[0].coba.verifier_of == chosen
    file.write_text("coba: {verifier_of: {}}\n")
    assert load_config(["--config", str(file)])[0].coba.verifier_of == {}


@pytest.mark.parametrize(
    "text", ["coba: {verifier_of: numeric}\n", "coba: {verifier_of: [numeric]}\n", "coba: {verifier_of: {a: [b]}}\n"]
)
def test_only_a_mapping_of_names(tmp_path, text):
    file = tmp_path / "run.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match="verifier_of"):
        load_config(["--config", str(file)])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"coba.verifier_of": {"gsm8k": "numerc"}},
            "coba.verifier_of: 'gsm8k' must have one of exact, numeric, math, multiple_choice, code, reasoning_gym",
        ),
        (
            {"coba.verifier_of": {"a": "math"}, "reward.remote_url": "http://localhost"},
            "coba.verifier_of has no effect with reward.remote_url",
        ),
        (
            {"coba.verifier_of": {"a": "math"}, "train.agent_func_path": "agent.py"},
            "coba.verifier_of has no effect with train.agent_func_path",
        ),
        ({"coba.verifier_memory_mb": 0}, "coba.verifier_memory_mb must be >= 1, got 0"),
        ({"coba.verifier_workers": 0}, "coba.verifier_workers must be >= 1, got 0"),
        ({"coba.verifier_tolerance": -0.1}, "coba.verifier_tolerance must be >= 0, got -0.1"),
        ({"coba.verifier_tolerance": float("nan")}, "coba.verifier_tolerance must be finite, got nan"),
        ({"coba.verifier_tolerance": float("inf")}, "coba.verifier_tolerance must be finite, got inf"),
        ({"coba.verifier_timeout": 0.0}, "coba.verifier_timeout must be > 0, got 0.0"),
    ],
)
def test_refused_before_anything_starts(changes, message):
    with pytest.raises(ConfigError) as error:
        check(base_config(changes))
    assert message in str(error.value)


def test_what_is_chosen_reaches_every_engine():
    """Those of a run and of an evaluation: both hand the scorer over by this function."""
    pytest.importorskip("ray")
    from coba_openrlhf.launch import use_scorer

    given = []
    engine = SimpleNamespace(use_scorer=SimpleNamespace(remote=given.append))
    changes = {"verifier": "numeric", "verifier_of": {"a": "exact"}, "verifier_tolerance": 0.01}
    changes |= {"verifier_timeout": 3.0, "verifier_memory_mb": 300, "verifier_workers": 4}
    use_scorer([engine, engine], base_config({f"coba.{key}": value for key, value in changes.items()}))
    spec = ScorerSpec("numeric", 3.0, (), {"a": "exact"}, memory_mb=300, max_workers=4, tolerance=0.01)
    assert given == [spec, spec]


@pytest.mark.skipif(importlib.util.find_spec("reasoning_gym") is not None, reason="reasoning-gym is installed")
@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"coba.verifier": "reasoning_gym"}, "coba.verifier"),
        ({"coba.verifier_of": {"games": "reasoning_gym"}}, "coba.verifier_of: games"),
    ],
)
def test_a_missing_package_is_named_before_ray_starts(changes, key):
    with pytest.raises(ConfigError) as error:
        check_machine(base_config(changes), "cuda")
    assert str(error.value).startswith(f"{key}: verifier reasoning_gym needs reasoning-gym: pip install ")
