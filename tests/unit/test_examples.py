"""The examples run as they are printed, learn, spend what they were given, and continue bit for bit."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from coba_openrlhf import AllocationConfig, Allocator

pytestmark = pytest.mark.filterwarnings("ignore:budget_max lets one prompt")

ROOT = Path(__file__).parents[2]
RULE = f"{ROOT}/examples/rules/most_uncertain.py:MostUncertain"


def run(script, *arguments):
    """Lines that a script prints, started from elsewhere; warnings are errors."""
    command = [sys.executable, "-W", "error::UserWarning", str(ROOT / "examples/standalone" / script), *arguments]
    done = subprocess.run(command, cwd=ROOT / "tests", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("strategy", ["uniform", "coba", "mixed", RULE])
def test_trl_like_loop(strategy):
    header, *rows = run("trl_like_loop.py", "--seeds", "2", "--strategies", strategy)
    assert header.split() == ["strategy", "seed", "before", "after", "rollouts", "largest", "budget"]
    for seed, row in enumerate(rows):
        name, number, before, after, rollouts, largest = row.split()
        assert (name, int(number), int(rollouts)) == (strategy, seed, 96 * 32 * 8)
        assert 0.1 < float(before) < 0.2 and float(after) > float(before) + 0.25
        assert int(largest) == 8 if strategy == "uniform" else 8 < int(largest) <= 16
    assert len(rows) == 2


def test_verl_like_loop():
    rows = run("verl_like_loop.py", "--strategies", "uniform", "coba", RULE)
    for row, strategy in zip(rows, ("uniform", "coba", RULE), strict=True):
        pattern = r" *(\S+)  pass rate (\S+) -> (\S+)  rollouts per step \{256\}  continued run identical: True"
        name, before, after = re.fullmatch(pattern, row).groups()
        assert name == strategy and float(after) > float(before) + 0.25


def test_loops_need_nothing_heavy():
    code = (
        "import sys; sys.path.insert(0, 'examples/standalone'); import trl_like_loop, verl_like_loop; "
        "print(sorted({'torch', 'ray', 'vllm', 'transformers', 'openrlhf', 'trl', 'verl'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"


def test_rule_of_the_user():
    """Three prompts, the more is known about one the less it gets; the best of all budgets, by trying all."""
    config = AllocationConfig(strategy=RULE, pass_rate_source="posterior", prior_strength=2.0, budget_max=20)
    allocator = Allocator(config)
    allocator.warm_up()
    allocator.observe(["seen"] * 4 + ["often"] * 30, [1, 0, 1, 0] + [1, 0] * 15, policy_version=0)
    done = allocator.allocate(["seen", "often", "new"], 30)
    a_P, b_P = done.estimates.success_P, done.estimates.failure_P
    size_P = a_P + b_P
    variance_P = a_P * b_P / (size_P**2 * (size_P + 1))

    def left(budget_P):
        return float((variance_P * size_P / (size_P + budget_P)).sum())

    options = [
        np.array([i, j, 30 - i - j]) for i in range(2, 21) for j in range(2, 21) if 2 <= 30 - i - j <= 20
    ]  # every allocation within the bounds
    assert left(done.budget_P) == pytest.approx(min(map(left, options)), rel=1e-12)
    assert done.budget_P.tolist() == min(options, key=left).tolist()
    assert done.budget_P[2] > done.budget_P[0] > done.budget_P[1]
    assert allocator.metrics()["estimate_std"] == pytest.approx(float(np.sqrt(variance_P).mean()))
    twin = Allocator(config)
    twin.load_state_dict(json.loads(json.dumps(allocator.state_dict())))
    ids = ["often", "other", "seen"]
    assert twin.allocate(ids, 30).budget_P.tolist() == allocator.allocate(ids, 30).budget_P.tolist()


def test_rule_at_tight_bounds():
    for total, high in ((6, 2), (6, 9), (7, 9), (27, 9)):
        allocator = Allocator(AllocationConfig(strategy=RULE, budget_max=high))
        assert allocator.allocate([*"abc"], total).budget_P.sum() == total
