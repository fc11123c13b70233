"""What changes when the data set does."""

import json

import pytest

from coba_openrlhf import AllocationConfig, Allocator
from coba_openrlhf.allocation import DataChange
from coba_openrlhf.allocation.data_change import compare_data

pytestmark = pytest.mark.filterwarnings("ignore:budget_max lets one prompt")


@pytest.mark.parametrize(
    ("old", "new", "added", "removed", "edited"),
    [
        ("abcd", "abcd", "", "", []),
        ("abcd", "dcba", "", "", []),  # order is no change
        ("abcd", "abcdef", "ef", "", []),
        ("abcd", "eabcd", "e", "", []),
        ("abcd", "bd", "", "ac", []),
        ("abcd", "abXd", "", "", [("c", "X")]),
        ("abcd", "XbcY", "", "", [("a", "X"), ("d", "Y")]),
        ("abcd", "aXYd", "", "", [("b", "X"), ("c", "Y")]),
        ("abcd", "aXYZd", "Z", "", [("b", "X"), ("c", "Y")]),
        ("abcd", "aXd", "", "c", [("b", "X")]),
        ("abcd", "dcXa", "X", "b", []),  # moved rows hide what took whose place
        ("abcd", "efgh", "", "", [("a", "e"), ("b", "f"), ("c", "g"), ("d", "h")]),
    ],
)
def test_rows_that_came_went_or_were_edited(old, new, added, removed, edited):
    change = compare_data(list(old), list(new))
    assert change == DataChange(list(added), list(removed), edited)
    assert bool(change) == (set(old) != set(new))
    assert str(change) == f"{len(added)} added, {len(removed)} removed, {len(edited)} edited"


def test_str_and_int_ids_are_different_rows():
    assert compare_data([1, 2], ["1", 2]) == DataChange([], [], [(1, "1")])


def allocator_that_knows(*prompt_ids):
    allocator = Allocator(AllocationConfig())
    allocator.set_data(prompt_ids)
    allocator.observe([prompt_id for prompt_id in prompt_ids for _ in range(2)], [1, 0] * len(prompt_ids))
    return allocator


def test_history_of_what_is_gone_is_forgotten():
    allocator = allocator_that_knows("a", "b", "c")
    change = allocator.set_data(["a", "B", "d", "c"])
    assert change == DataChange(["d"], [], [("b", "B")])
    estimates = allocator.allocate(["a", "b", "B", "c", "d"], 20).estimates
    assert estimates.seen_P.tolist() == [True, False, False, True, False]
    assert allocator.state_dict()["pass_rate"]["prompt_ids"] == ["a", "c"]
    # A row that comes back starts anew.
    assert allocator.set_data(["a", "b", "d", "c"]) == DataChange([], [], [("B", "b")])
    assert not allocator.allocate(["b"], 4).estimates.seen_P.any()


def test_first_call_and_reordering_change_nothing():
    allocator = Allocator(AllocationConfig())
    allocator.observe(["a", "b"], [1, 0])
    assert not allocator.set_data(["b", "c"])  # nobody has said what the data was before
    before = json.dumps(allocator.state_dict()["pass_rate"])
    assert not allocator.set_data(["c", "b"])
    assert json.dumps(allocator.state_dict()["pass_rate"]) == before


def test_change_is_seen_across_a_restart():
    allocator = allocator_that_knows("a", "b", "c")
    twin = Allocator(AllocationConfig())
    twin.load_state_dict(json.loads(json.dumps(allocator.state_dict())))
    assert twin.set_data(["a", "c", "d"]) == allocator.set_data(["a", "c", "d"]) == DataChange(["d"], ["b"], [])
    assert twin.state_dict() == allocator.state_dict()


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (["a", "b", "a"], "prompt_ids must be unique, got 'a' repeatedly"),
        ([], "prompt_ids must not be empty"),
        ("abc", "prompt_ids must be a sequence of str or int"),
        ([1.5], "prompt_ids must be str or int"),
    ],
)
def test_wrong_ids_are_named_and_change_nothing(ids, message):
    allocator = allocator_that_knows("a", "b")
    before = json.dumps(allocator.state_dict())
    with pytest.raises(ValueError, match=message):
        allocator.set_data(ids)
    assert json.dumps(allocator.state_dict()) == before


def test_large_data_sets():
    old = list(range(200_000))
    new = [-index if index % 1000 == 1 else index for index in old if index % 500] + ["new"]
    change = compare_data(old, new)
    assert (len(change.added), len(change.removed), len(change.edited)) == (1, 400, 200)
