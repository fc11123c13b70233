"""Budget rules of the user's own, from a file."""

import json
import shutil

import numpy as np
import pytest

from coba_openrlhf import AllocationConfig, Allocator

pytestmark = pytest.mark.filterwarnings("ignore:budget_max lets one prompt")

HEADER = """
from dataclasses import dataclass

import numpy as np

from coba_openrlhf.allocation import Gains, GreedyStrategy, ProportionalStrategy, Strategy

"""

GREEDY = """
class MyRule(GreedyStrategy):
    def gains(self, problem):
        p = problem.estimates.pass_rate_P
        columns = min(problem.budget_max, problem.total_budget) - problem.budget_min
        curve_N = 1 / (1 + np.arange(columns))
        return Gains.table(1 - p, np.zeros(len(problem), int), curve_N[None], problem.budget_min)

    def metrics(self, problem):
        return {"hardest": float(1 - problem.estimates.pass_rate_P.min())}
"""

PROPORTIONAL = """
class MyRule(ProportionalStrategy):
    def weights(self, problem):
        return 1.25 - problem.estimates.pass_rate_P
"""

PLAIN = """
@dataclass
class Note:
    price: float

class MyRule(Strategy):
    def allocate(self, problem):
        budget_P = np.full(len(problem), problem.budget_min)
        hardest = int(np.argmin(problem.estimates.pass_rate_P))
        left = problem.total_budget - budget_P.sum()
        for prompt in [hardest, *range(len(problem))]:
            more = min(left, problem.budget_max - budget_P[prompt])
            budget_P[prompt] += more
            left -= more
        return budget_P, Note(0.5).price
"""


def write(folder, body, name="rule.py"):
    path = folder / name
    path.write_text(HEADER + body)
    return f"{path}:MyRule"


def history(allocator):
    """Pass rates 0, 1/4, 1/2, 1 for a .. d."""
    allocator.observe([*"aaaabbbbccccdddd"], [0] * 4 + [1, 0, 0, 0] + [1, 1, 0, 0] + [1] * 4)
    return allocator


@pytest.mark.parametrize("solver", ["auto", "heap", "threshold", "exact"])
def test_gains_of_the_user(tmp_path, solver):
    allocator = Allocator(AllocationConfig(strategy=write(tmp_path, GREEDY), solver=solver, budget_max=12))
    allocator.warm_up()
    done = history(allocator).allocate([*"abcd"], 23)
    # The 15 above the minima: gains 1, 1/2, .. 1/7; 3/4, 3/8, .. 3/20; 1/2, 1/4, 1/6; d gains nothing.
    assert done.budget_P.tolist() == [9, 7, 5, 2] and done.shadow_price == pytest.approx(1 / 7)
    assert allocator.metrics()["hardest"] == 1.0


def test_proportions_of_the_user(tmp_path):
    allocator = Allocator(AllocationConfig(strategy=write(tmp_path, PROPORTIONAL)))
    allocator.warm_up()
    # 5 : 4 : 3 : 1.
    assert history(allocator).allocate([*"abcd"], 39).budget_P.tolist() == [15, 12, 9, 3]


def test_budgets_of_the_user(tmp_path):
    allocator = Allocator(AllocationConfig(strategy=write(tmp_path, PLAIN), budget_max=12))
    allocator.warm_up()
    done = history(allocator).allocate([*"abcd"], 24)
    assert done.budget_P.tolist() == [12, 8, 2, 2] and done.shadow_price == 0.5


@pytest.mark.parametrize("body", [GREEDY, PROPORTIONAL, PLAIN])
def test_state_round_trip_and_where_the_file_lies_does_not_matter(tmp_path, body):
    def rounds(allocator):
        return [history(allocator).allocate([*"abcd"], total).budget_P.tolist() for total in (24, 31, 40)]

    first = Allocator(AllocationConfig(strategy=write(tmp_path, body)))
    rounds(first)
    text = json.dumps(first.state_dict(), allow_nan=False)
    (tmp_path / "elsewhere").mkdir()
    shutil.copy(tmp_path / "rule.py", tmp_path / "elsewhere")
    twin = Allocator(AllocationConfig(strategy=f"{tmp_path}/elsewhere/rule.py:MyRule"))
    twin.load_state_dict(json.loads(text))
    assert rounds(twin) == rounds(first)
    assert twin.state_dict() == first.state_dict()


def test_state_of_another_content_is_refused(tmp_path):
    allocator = Allocator(AllocationConfig(strategy=write(tmp_path, GREEDY)))
    state = allocator.state_dict()
    edited = Allocator(AllocationConfig(strategy=write(tmp_path, GREEDY + "\n# edited\n")))
    with pytest.raises(ValueError, match=r"changes in strategy: 'rule.py:MyRule sha256:\w+' -> 'rule.py:MyRule"):
        edited.load_state_dict(state)
    # A run goes on as what it was started as, whatever happens to the file.
    assert allocator.state_dict() == state
    (tmp_path / "rule.py").unlink()
    assert history(allocator).allocate([*"abcd"], 24).budget_P.sum() == 24
    assert allocator.state_dict()["config"] == state["config"]


def test_two_files_of_one_name_are_two_rules(tmp_path):
    (tmp_path / "other").mkdir()
    names = write(tmp_path, PROPORTIONAL), write(tmp_path / "other", PLAIN)
    rules = [history(Allocator(AllocationConfig(strategy=name))).allocate([*"abcd"], 39).budget_P for name in names]
    assert rules[0].tolist() != rules[1].tolist()


def test_relative_path(tmp_path, monkeypatch):
    write(tmp_path, PROPORTIONAL)
    monkeypatch.chdir(tmp_path)
    assert history(Allocator(AllocationConfig(strategy="rule.py:MyRule"))).allocate([*"ab"], 18).budget_P[0] == 10


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("MyRule = 3", "'MyRule' is 3"),
        ("class MyRule: pass", "must name a subclass of coba_openrlhf.allocation.Strategy"),
        ("def MyRule(config): return None", "must name a subclass of coba_openrlhf.allocation.Strategy"),
        ("class Other(Strategy): pass", "'MyRule' is not defined in the file"),
        ("class MyRule(Strategy): pass", "must define allocate, or it cannot be used"),
        ("class MyRule(GreedyStrategy): pass", "must define gains, or it cannot be used"),
        ("class MyRule(ProportionalStrategy): pass", "must define weights, or it cannot be used"),
    ],
)
def test_file_without_a_rule_is_refused(tmp_path, body, message):
    config = AllocationConfig(strategy=write(tmp_path, body))
    with pytest.raises(ValueError, match=message):
        Allocator(config)


def test_missing_file_is_named(tmp_path):
    for name in (f"{tmp_path}/none.py:MyRule", f"{tmp_path}.py:MyRule"):
        with pytest.raises(ValueError, match=r"existing file as path/to/rule.py:ClassName, got .*: no "):
            Allocator(AllocationConfig(strategy=name))


@pytest.mark.parametrize(("body", "error"), [("class MyRule(", SyntaxError), ("1 / 0", ZeroDivisionError)])
def test_errors_of_the_file_are_its_own(tmp_path, body, error):
    with pytest.raises(error):
        Allocator(AllocationConfig(strategy=write(tmp_path, body)))


def allocating(answer):
    return f"""
class MyRule(Strategy):
    def allocate(self, problem):
        {answer}
"""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (allocating("return np.array([9, 5, 5, 4]), 0.0"), "must return a sum of 24, got 23"),
        (allocating("return np.array([21, 1, 1, 1]), 0.0"), r"must return budgets in \[2, 12\], got 1 .. 21"),
        (allocating("return np.array([13, 7, 2, 2]), 0.0"), r"must return budgets in \[2, 12\], got 2 .. 13"),
        (allocating("return np.full(4, 6.0), 0.0"), r"must return 4 integers, got dtype float64 and shape \(4,\)"),
        (allocating("return np.full(3, 8), 0.0"), r"must return 4 integers, got dtype int64 and shape \(3,\)"),
        (allocating("return np.full((4, 1), 6), 0.0"), r"must return 4 integers, .* shape \(4, 1\)"),
        (allocating("return np.full(4, 6)"), r"must return \(budget_P, shadow_price\)"),
        (allocating("return None"), r"must return \(budget_P, shadow_price\).*got None"),
        (allocating("return np.full(4, 6), None"), r"must return \(budget_P, shadow_price\)"),
        (PROPORTIONAL.replace("1.25 -", "-0.5 *"), "weights must be 4 finite numbers >= 0"),
        (PROPORTIONAL.replace("1.25 -", "np.nan *"), "weights must be 4 finite numbers >= 0"),
        (PROPORTIONAL.replace("1.25 -", "np.inf +"), "weights must be 4 finite numbers >= 0"),
        (PROPORTIONAL.replace("pass_rate_P", "pass_rate_P[1:]"), "weights must be 4 finite numbers >= 0"),
        (GREEDY.replace("1 / (1 +", "(1 +"), "gains must not increase with the budget"),
        (GREEDY.replace("1 - p,", "np.nan * p,"), "gains must be finite"),
        (GREEDY.replace("curve_N[None]", "curve_N[None, :3]"), "gains must have a column for each of the budgets"),
        (GREEDY.replace("problem.budget_min)", "0)"), "gains must start at budget_min, got 0 for 2"),
        (GREEDY.replace("return Gains", "return 5\n        Gains"), "gains must be Gains of 4 prompts, got 5"),
        (
            GREEDY.replace("1 - p,", "1 - p[1:],").replace("len(problem), int", "3, int"),
            "gains must be Gains of 4 prompts, got those of 3",
        ),
    ],
)
def test_wrong_answers_are_named_and_change_nothing(tmp_path, body, message):
    allocator = history(Allocator(AllocationConfig(strategy=write(tmp_path, body), budget_max=12)))
    before = allocator.state_dict(), allocator.metrics()
    with pytest.raises(ValueError, match=message):
        allocator.allocate([*"abcd"], 24)
    assert (allocator.state_dict(), allocator.metrics()) == before


def test_other_integers_and_lists_are_budgets(tmp_path):
    for answer in ("return [6] * 4, 0.5", "return np.full(4, 6, np.uint8), np.float32(0.5)", "return np.full(4, 6), 0"):
        allocator = Allocator(AllocationConfig(strategy=write(tmp_path, allocating(answer)), budget_max=12))
        done = allocator.allocate([*"abcd"], 24)
        assert done.budget_P.tolist() == [6] * 4 and done.budget_P.dtype == np.int64
        assert type(done.shadow_price) is float
