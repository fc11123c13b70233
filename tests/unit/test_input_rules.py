"""What a run reads, as far as names and texts tell."""

import pytest

from coba_openrlhf.config import ConfigError, check
from tests.rollouts import base_config

TWO = {"data.prompt_dataset": "a.jsonl,b.jsonl"}


@pytest.mark.parametrize(
    "changes",
    [
        {"data.input_template": "Question: {}"},
        {"data.input_template": "Answer {} inside \\boxed{{}}."},
        {**TWO, "data.prompt_probs": "0.25, 0.75"},
        {"data.prompt_dataset": "a,b,c", "data.prompt_probs": "0.1,0.2,0.7"},
        {"reward.remote_url": "https://host:8000/score, http://10.0.0.1/"},
    ],
    ids=str,
)
def test_valid_inputs_pass(changes):
    check(base_config(changes))


@pytest.mark.parametrize(
    "template",
    ["Question:", "", "{} {}", "{0}", "{question}", "{", "}", "{} {", "{{}}", "{} \\boxed{}", "{:5}", "{!r}"],
)
def test_template_has_one_field(template):
    with pytest.raises(ConfigError, match=r"data.input_template must contain \{\} once") as error:
        check(base_config({"data.input_template": template}))
    assert repr(template) in str(error.value)


@pytest.mark.parametrize("key", ["data.prompt_dataset", "eval.dataset", "reward.remote_url"])
@pytest.mark.parametrize("names", ["a.py,", ",a.py", "a.py,,b.py", " "])
def test_no_name_is_empty(key, names):
    with pytest.raises(ConfigError, match=f"{key} must be names between commas") as error:
        check(base_config({key: names}))
    assert repr(names) in str(error.value)


@pytest.mark.parametrize(
    ("probabilities", "rule"),
    [
        ("", "must be numbers"),
        ("half,half", "must be numbers"),
        ("0.5", "must have one number per data set"),
        ("0.2,0.3,0.5", "must have one number per data set"),
        ("1.5,-0.5", "must be > 0"),
        ("1,0", "must be > 0"),
        ("nan,1", "must be > 0"),
        ("inf,1", "must add up to 1"),
        ("0.5,0.6", "must add up to 1"),
    ],
)
def test_mixing_probabilities(probabilities, rule):
    with pytest.raises(ConfigError, match=f"data.prompt_probs {rule}") as error:
        check(base_config({**TWO, "data.prompt_probs": probabilities}))
    assert repr(probabilities) in str(error.value)


@pytest.mark.parametrize(
    "url", ["localhost:8000", "ftp://host/x", "htp://host", "http://", "reward.txt", "http://h:port", "a.py,http://h"]
)
def test_reward_address(url):
    with pytest.raises(ConfigError, match=r"reward.remote_url must be one Python file"):
        check(base_config({"reward.remote_url": url}))


def test_agent_is_a_python_file():
    with pytest.raises(ConfigError, match=r"train.agent_func_path must be a Python file"):
        check(base_config({"train.agent_func_path": "agent"}))
