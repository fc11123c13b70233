"""reasoning-gym's own verifiers behind ours, and what is said where the package is missing."""

import importlib.util
import json
import sys
from types import SimpleNamespace

import pytest

from coba_openrlhf.rewards import VerifierPool
from coba_openrlhf.rewards.verifier_choice import check_label
from coba_openrlhf.rewards.verifiers import VERIFIERS, Limits
from coba_openrlhf.rewards.verifiers.reasoning_gym import find_answer

ENTRY = {"question": "1+1=", "answer": "2", "metadata": {"source_dataset": "chain_sum", "source_index": 0}}
IS_INSTALLED = importlib.util.find_spec("reasoning_gym") is not None


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        ("<answer>1</answer> no, <answer> 2\n</answer>. \\boxed{3}", "2"),
        ("so \\boxed{2}.", "2"),
        ("First 1.\n2\n", "2"),
        ("", ""),
    ],
)
def test_where_the_answer_is(response, answer):
    assert find_answer(response) == answer


@pytest.mark.parametrize(
    "label",
    [ENTRY, json.dumps(ENTRY), {**ENTRY, "metadata": json.dumps(ENTRY["metadata"])}],
    ids=["dict", "json", "mixed"],
)
def test_the_data_set_scores_its_own_entry(monkeypatch, label):
    """A stand-in shows what is handed over."""

    def score_answer(answer, entry):
        assert entry == ENTRY
        return {"2": 1.0, "two": 0.5}.get(answer, -1.0)

    stand_in = SimpleNamespace(get_score_answer_fn={"chain_sum": score_answer}.__getitem__)
    monkeypatch.setitem(sys.modules, "reasoning_gym", stand_in)
    check_label("reasoning_gym", label)
    for answer, score in (("2", 1.0), ("two", 0.5), ("3", 0.0)):
        assert VERIFIERS["reasoning_gym"].verify(f"<answer>{answer}</answer>", label, Limits(1, 1)).score == score


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("2", "must be an entry of reasoning-gym, got int"),
        ("two", "must be an entry of reasoning-gym as JSON, got 'two'"),
        ({"question": "1+1=", "answer": "2"}, "'source_dataset', got question, answer"),
        ({"answer": "2", "metadata": {}}, "'source_dataset', got answer, metadata"),
    ],
)
def test_labels_that_are_no_entries(label, message):
    with pytest.raises(ValueError, match=message):
        check_label("reasoning_gym", label)


@pytest.mark.skipif(IS_INSTALLED, reason="reasoning-gym is installed")
def test_a_missing_package_is_named_with_its_extra():
    with pytest.raises(ImportError, match=r"needs reasoning-gym: pip install 'coba_openrlhf\[reasoning-gym\]'"):
        VerifierPool(["reasoning_gym"])


@pytest.mark.skipif(not IS_INSTALLED, reason="reasoning-gym is not installed")
@pytest.mark.parametrize("name", ["chain_sum", "basic_arithmetic", "spell_backward", "leg_counting", "gcd"])
def test_real_data_sets(name):
    import reasoning_gym

    pool = VerifierPool(["reasoning_gym"], timeout=20.0)
    try:
        for entry in reasoning_gym.create_dataset(name, size=5, seed=1):
            label = json.dumps(entry, default=str)
            right = pool.submit("reasoning_gym", f"<answer>{entry['answer']}</answer>", label).result(60)
            wrong = pool.submit("reasoning_gym", "<answer>no idea</answer>", label).result(60)
            assert right.score == 1.0 and wrong.score < 0.5, (entry, right, wrong)
    finally:
        pool.close()
