"""Arrays with a row per prompt."""

import numpy as np

from coba_openrlhf.allocation.estimates.rows import PromptRows


def test_new_prompts_get_rows_of_zeros_and_old_ones_keep_theirs():
    rows = PromptRows(count=0, visits=2)
    assert rows.add(["a", 1, "1"]).tolist() == [0, 1, 2]
    rows["count"][[0, 1]] = 5, 7
    rows["visits"][2] = 1, 2
    assert rows.add(["1", "b", "a"]).tolist() == [2, 3, 0]
    assert rows.find(["b", "c", 1, 2]).tolist() == [3, -1, 1, -1]
    assert rows.prompt_ids == ["a", 1, "1", "b"] and len(rows) == 4
    assert rows.state_dict() == {
        "prompt_ids": ["a", 1, "1", "b"], "count": [5, 7, 0, 0], "visits": [[0, 0], [0, 0], [1, 2], [0, 0]]
    }  # fmt: skip


def test_grows_beyond_its_capacity_without_losing_anything():
    rng = np.random.default_rng(1)
    rows, plain = PromptRows(count=0, visits=3), {}
    for size in (1, 1000, 24, 1, 3000, 20_000, 1):
        ids = rng.integers(0, 30_000, size).tolist()
        ids = list(dict.fromkeys(ids))
        number_P = rng.uniform(size=len(ids))
        index_P = rows.add(ids)
        rows["count"][index_P] = number_P
        rows["visits"][index_P] = number_P[:, None] * [1, 2, 3]
        plain |= dict(zip(ids, number_P.tolist(), strict=True))
    assert len(rows) == len(plain) and set(rows.prompt_ids) == set(plain)
    ids = list(plain)
    np.testing.assert_array_equal(rows["count"][rows.find(ids)], list(plain.values()))
    np.testing.assert_array_equal(rows["visits"][rows.find(ids), 2], 3 * np.array(list(plain.values())))


def test_keep_drops_the_others_and_their_numbers():
    rows = PromptRows(count=0)
    rows.add(["a", "b", "c", "d"])
    rows["count"][:4] = 1, 2, 3, 4
    assert rows.keep(["d", "b", "unknown"]) == ["a", "c"]
    assert rows.state_dict() == {"prompt_ids": ["b", "d"], "count": [2, 4]}
    # A row that comes back is new.
    assert rows["count"][rows.add(["a", "d"])].tolist() == [0, 4]
    assert rows.keep([]) == ["b", "d", "a"] and len(rows) == 0
    assert rows["count"][rows.add(["b"])].tolist() == [0]


def test_keep_gives_memory_back():
    rows = PromptRows(count=0)
    index_P = rows.add(range(50_000))
    rows["count"][index_P] = np.arange(50_000)
    rows.keep(range(0, 50_000, 10))
    assert len(rows["count"]) < 10_000
    np.testing.assert_array_equal(rows["count"][rows.find(range(0, 50_000, 10))], np.arange(0, 50_000, 10))


def test_load_replaces_everything():
    rows = PromptRows(count=0, visits=2)
    rows.add(["x"])
    rows.load(["a", "b"], {"count": np.array([1.0, 2.0]), "visits": np.array([[1.0, 2.0], [3.0, 4.0]])})
    assert rows.find(["x", "b"]).tolist() == [-1, 1]
    assert rows["visits"][rows.add(["b", "c"])].tolist() == [[3, 4], [0, 0]]
