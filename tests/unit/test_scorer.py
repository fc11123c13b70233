"""Reward files and what they may return; errors that reach the trainer."""

import asyncio
import pickle
import textwrap
from types import SimpleNamespace

import pytest

from coba_openrlhf.rewards.scorer import RewardError, Scored, ScorerSpec, make_scorer
from coba_openrlhf.rewards.sourced_label import SourcedLabel


@pytest.fixture
def scorer_of(tmp_path):
    """A scorer from the body of ``reward_func``."""

    def make(body, header=""):
        file = tmp_path / "my_reward.py"
        file.write_text(f"{header}\ndef reward_func(queries, prompts, labels):\n{textwrap.indent(body, '    ')}\n")
        return make_scorer(ScorerSpec("math", 5.0, (str(file),)))

    return make


def score(scorer, *, query="q r", prompt="q", response="r", label="1"):
    return asyncio.run(scorer.score(query=query, prompt=prompt, response=response, label=label))


@pytest.mark.parametrize(
    ("returned", "scored"),
    [
        ("{'rewards': 1}", Scored(1.0, 1.0, {})),
        ("{'rewards': [0.5]}", Scored(0.5, 0.5, {})),
        ("{'rewards': True}", Scored(1.0, 1.0, {})),
        ("{'rewards': -3.0, 'scores': 0}", Scored(-3.0, 0.0, {})),
        ("{'rewards': None}", Scored(None, None, {})),
        ("{'rewards': None, 'scores': 0.7}", Scored(None, None, {})),
        ("{'rewards': [None], 'scores': [None]}", Scored(None, None, {})),
        ("{'rewards': 0, 'scores': None, 'extra_logs': None}", Scored(0.0, 0.0, {})),
        ("{'rewards': 1, 'extra_logs': {'a': 2, 'b': [3], 'c': None}}", Scored(1.0, 1.0, {"a": 2.0, "b": 3.0})),
    ],
)
def test_dictionaries(scorer_of, returned, scored):
    assert score(scorer_of(f"return {returned}")) == scored


@pytest.mark.parametrize("tensor", ["torch.tensor(0.5)", "torch.tensor([0.5])", "torch.tensor([[0.5]])"])
def test_tensors(scorer_of, tensor):
    body = f"return {{'rewards': {tensor}, 'scores': {tensor}, 'extra_logs': {{'a': {tensor}}}}}"
    assert score(scorer_of(body, "import torch")) == Scored(0.5, 0.5, {"a": 0.5})


@pytest.mark.parametrize(
    ("returned", "scored"),
    [("[1]", Scored(1.0, 1.0, {})), ("(0.5,)", Scored(0.5, 0.5, {})), ("[None]", Scored(None, None, {}))],
)
def test_simple_form_returns_a_list_of_scores(tmp_path, returned, scored):
    file = tmp_path / "my_reward.py"
    file.write_text(
        "def reward_func(responses, prompts, labels):\n"
        "    assert (responses, prompts, labels) == (['r'], ['q'], ['1'])\n"
        f"    return {returned}\n"
    )
    assert score(make_scorer(ScorerSpec("math", 5.0, (str(file),)))) == scored


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ("[2]", r"scores must be in \[0, 1\] because budgets follow them, got 2"),
        ("[1, 0]", "'scores' must have one value per query, got 2 for 1 query"),
        ("{'rewards': 1}", "must return a list of scores, got dict"),
        ("0.5", "must return a list of scores, got float"),
        ("[1 / 0]", "ZeroDivisionError"),
    ],
)
def test_simple_form_refused_results_name_the_file(tmp_path, returned, message):
    file = tmp_path / "my_reward.py"
    file.write_text(f"def reward_func(responses, prompts, labels):\n    return {returned}\n")
    with pytest.raises(RewardError, match=message) as error:
        score(make_scorer(ScorerSpec("math", 5.0, (str(file),))))
    assert "my_reward.py" in str(error.value)


def test_arguments_are_lists_of_one(scorer_of):
    body = "assert (queries, prompts, labels) == (['q r'], ['q'], ['1'])\nreturn {'rewards': 1.0}"
    assert score(scorer_of(body)).reward == 1.0


def test_exception_carries_the_files_traceback(scorer_of):
    scorer = scorer_of("return {'rewards': labels[0] / 2}")
    with pytest.raises(RewardError) as error:
        score(scorer)
    assert "my_reward.py" in str(error.value)
    assert "labels[0] / 2" in str(error.value)
    assert "TypeError" in str(error.value)


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ("{'rewards': 1.5}", r"'scores' must be in \[0, 1\] because budgets follow them, got 1\.5"),
        ("{'rewards': -1.0}", r"'scores' must be in \[0, 1\]"),
        ("{'rewards': 0.0, 'scores': 2}", r"'scores' must be in \[0, 1\].*got 2"),
        ("{'rewards': float('nan')}", "'rewards' must be finite, got nan"),
        ("{'rewards': 0, 'scores': float('inf')}", "'scores' must be finite, got inf"),
        ("{'rewards': 0, 'extra_logs': {'a': float('nan')}}", "'a' must be finite"),
        ("{'rewards': [1, 0]}", "'rewards' must have one value per query, got 2 for 1 query"),
        ("{'rewards': []}", "got 0 for 1 query"),
        ("{'rewards': 'good'}", "'rewards' must be a number, got 'good'"),
        ("{'reward': 1}", "must return a dict with 'rewards', got dict"),
        ("[1.0]", "must return a dict with 'rewards', got list"),
        ("None", "must return a dict with 'rewards', got NoneType"),
    ],
)
def test_refused_results_name_the_file(scorer_of, returned, message):
    with pytest.raises(RewardError, match=message) as error:
        score(scorer_of(f"return {returned}"))
    assert "my_reward.py" in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "No such file"),
        ("x = 1\n", "reward_func"),
        ("def reward_func(:\n", "SyntaxError"),
        ("1 / 0\n", "ZeroDivision"),
    ],
    ids=["missing", "no function", "syntax", "raises"],
)
def test_file_that_cannot_be_loaded(tmp_path, text, message):
    file = tmp_path / "my_reward.py"
    if text is not None:
        file.write_text(text)
    with pytest.raises(RewardError, match=message) as error:
        make_scorer(ScorerSpec("math", 5.0, (str(file),)))
    assert str(file) in str(error.value)


def test_reward_error_crosses_processes():
    again = pickle.loads(pickle.dumps(RewardError("message")))
    assert isinstance(again, RuntimeError)
    assert str(again) == "message"


def test_verifier_scores_the_response_not_the_prompt():
    scorer = make_scorer(ScorerSpec("exact", 30.0))
    try:
        for label, points, reason in ((2, 1.0, "equal texts"), (1, 0.0, "different texts")):
            scored = score(scorer, query="1 2", prompt="1", response="2", label=label)
            assert scored == Scored(points, points, {}, reason=reason)
    finally:
        scorer.close()


def test_the_data_source_chooses_the_verifier():
    scorer = make_scorer(ScorerSpec("exact", 30.0, verifier_of={"sums": "numeric"}))
    try:
        scores = [
            asyncio.run(scorer.score(query="", prompt="", response="2.0", label="2", datasource=source)).score
            for source in ("default", "sums")
        ]
        assert scores == [0.0, 1.0]
        output = execute(scorer, SourcedLabel("r", "default"))
        assert (output["reward"], output["label"], output["is_error"]) == (1.0, "r", False)
        assert output["reason"] == "equal texts"
    finally:
        scorer.close()


def test_numbers_are_equal_within_the_tolerance():
    for tolerance, points in ((0.01, 1.0), (0.001, 0.0)):
        scorer = make_scorer(ScorerSpec("numeric", 30.0, tolerance=tolerance))
        try:
            assert score(scorer, response="99.5", label="100").score == points
        finally:
            scorer.close()


def test_a_verifier_that_fails_is_counted_and_logged_once(caplog):
    scorer = make_scorer(ScorerSpec("numeric", 30.0))
    try:
        for _ in range(3):
            scored = score(scorer, response="2", label="two")
            assert scored == Scored(None, None, {}, True, "ValueError: could not convert string to float: 'two'")
        assert execute(scorer, SourcedLabel("two", "default"))["is_error"] is False  # no number: wrong before that
    finally:
        scorer.close()
    assert [record.getMessage() for record in caplog.records] == [
        "verifier numeric failed on a response for the reference answer 'two': "
        "ValueError: could not convert string to float: 'two'"
    ]


def test_reward_server_failure_names_the_server(monkeypatch):
    """Nothing listens there; upstream's client tries five times, so its pauses are cut."""
    real_sleep = asyncio.sleep
    monkeypatch.setattr("asyncio.sleep", lambda _seconds: real_sleep(0))
    scorer = make_scorer(ScorerSpec("math", 5.0, ("http://127.0.0.1:9/reward",)))
    with pytest.raises(RewardError, match=r"reward server http://127\.0\.0\.1:9/reward failed"):
        score(scorer)


class OneAnswerEngine:
    """Stands for vLLM: continues every prompt with the same tokens."""

    async def generate(self, prompt_token_ids, sampling_params, multi_modal_data=None):
        answer = SimpleNamespace(token_ids=[7, 8], finish_reason="length", logprobs=None)
        return SimpleNamespace(outputs=[answer])


class LetterTokenizer:
    """A letter per token; 8 is a special token."""

    def __call__(self, text, add_special_tokens, return_tensors):
        import torch

        return {"input_ids": torch.tensor([[ord(c) for c in text]])}

    def decode(self, tokens, skip_special_tokens):
        return "".join(chr(t) if t > 8 else {7: "r", 8: "" if skip_special_tokens else "<end>"}[t] for t in tokens)


def execute(scorer, label="1"):
    from coba_openrlhf.rewards.scoring_executor import ScoringExecutor

    sampling_params = SimpleNamespace(max_tokens=4, logprobs=None)
    return asyncio.run(
        ScoringExecutor(scorer).execute("ab", label, sampling_params, 16, LetterTokenizer(), OneAnswerEngine())
    )


def test_executor_hands_over_query_prompt_and_response(scorer_of):
    scorer = scorer_of(
        "assert (queries, prompts) == (['abr<end>'], ['ab']), (queries, prompts)\n"
        "return {'rewards': -2, 'scores': 0.5, 'extra_logs': {'n': 3}}"
    )
    output = execute(scorer)
    assert (output["reward"], output["scores"], output["extra_logs"]) == (-2.0, 0.5, {"n": 3.0})
    assert output["observation_tokens"] == [97, 98, 7, 8]
    assert output["truncated"] is True


def test_executor_scores_without_special_tokens():
    scorer = make_scorer(ScorerSpec("exact", 30.0))
    try:
        assert asyncio.run(scorer.score(query="", prompt="", response="r", label="r")).score == 1.0
        output = execute(scorer)
        assert (output["reward"], output["label"]) == (0.0, "1")
    finally:
        scorer.close()


def test_executor_lets_reward_errors_through(scorer_of):
    """Upstream logs them and goes on without a reward."""
    with pytest.raises(RewardError, match="ZeroDivisionError"):
        execute(scorer_of("return 1 / 0"))
