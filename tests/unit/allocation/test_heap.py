"""The heap solver against a pure-Python twin, without JIT, and without a place for its cache."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coba_openrlhf
from benchmarks.oracles import heapq_budgets
from coba_openrlhf.allocation.solvers.heap import solve_heap

PACKAGE = Path(coba_openrlhf.__file__).parent

# Prints the budgets and the exact shadow prices of a fixed set of problems.
SOLVE_MANY = """
import numpy as np
from coba_openrlhf import allocate_greedy
rng = np.random.default_rng(5)
for _ in range(20):
    pass_rate_P = rng.integers(0, 9, rng.integers(1, 60)) / 8
    total = int(rng.integers(2 * len(pass_rate_P), 16 * len(pass_rate_P) + 1))
    alpha = float(rng.uniform(1, 10))
    done = allocate_greedy(pass_rate_P, total, alpha=alpha, beta=11 - alpha, budget_max=16)
    print(done.budget_P.tolist(), done.shadow_price.hex())
"""


def run_python(code, cwd, **environment):
    """Output of a fresh interpreter with the package of ``cwd``; JIT on unless told otherwise."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": str(cwd), "NUMBA_DISABLE_JIT": "0"} | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def twin(intercept_P, slope_P, total, low, high):
    return heapq_budgets(lambda i, budget: float(intercept_P[i] - slope_P[i] * budget), len(slope_P), total, low, high)


@st.composite
def problems(draw):
    """Few distinct rules, so that ties are common; some slopes are near or below what a float resolves."""
    num_prompts = draw(st.integers(1, 12))
    plain = st.tuples(st.sampled_from([-30.0, -1.5, 0.0, 0.1, 2.0]), st.sampled_from([1e-17, 0.002, 0.05, 0.1, 3.0]))
    coarse = st.tuples(st.just(1e6), st.sampled_from([5e-11, 1e-10, 3e-10]))  # floats at 1e6 are 1.2e-10 apart
    rule = draw(st.sampled_from([plain, coarse]))
    intercept_P, slope_P = np.array([draw(rule) for _ in range(num_prompts)]).T.copy()
    low = draw(st.integers(0, 3))
    high = draw(st.integers(low, low + 40))
    return intercept_P, slope_P, draw(st.integers(num_prompts * low, num_prompts * high)), low, high


@given(problems())
@settings(max_examples=400, deadline=None, derandomize=True)
def test_budgets_are_those_of_the_twin(problem):
    intercept_P, slope_P, _, low, _ = problem
    budget_P, log_shadow_price = solve_heap(*problem)
    assert budget_P.tolist() == twin(*problem)
    # The last rollout placed has the smallest gain of all that were placed.
    gains = [intercept_P[i] - slope_P[i] * (budget - 1) for i, budget in enumerate(budget_P) if budget > low]
    assert log_shadow_price == min(gains) if gains else np.isnan(log_shadow_price)


def test_large_batches_are_those_of_the_twin():
    rng = np.random.default_rng(3)
    for total in (1024, 1025, 8192, 8193, 60_000, 65_536):
        problem = rng.normal(size=512), rng.uniform(1e-3, 0.06, 512), total, 2, 128
        assert solve_heap(*problem)[0].tolist() == twin(*problem)


def test_bound_beyond_int64_is_no_bound():
    budget_P, _ = solve_heap(np.zeros(3), np.array([1.0, 1.0, 1.0]), 10, 1, 10**30)
    assert budget_P.tolist() == [4, 3, 3]


def test_inputs_are_left_alone():
    intercept_P, slope_P = np.array([0.0, 1.0]), np.array([0.1, 0.2])
    solve_heap(intercept_P, slope_P, 20, 2, 16)
    assert (intercept_P.tolist(), slope_P.tolist()) == ([0.0, 1.0], [0.1, 0.2])


def test_same_result_without_jit():
    jitted = run_python(SOLVE_MANY, PACKAGE.parent)
    assert jitted.count("\n") == 20
    assert run_python(SOLVE_MANY, PACKAGE.parent, NUMBA_DISABLE_JIT="1") == jitted


@pytest.mark.skipif(os.name != "posix", reason="/dev/null is no folder: a cache cannot be made there, even by root")
def test_works_where_no_cache_can_be_written(tmp_path):
    shutil.copytree(
        PACKAGE / "allocation", tmp_path / "coba_openrlhf" / "allocation", ignore=lambda *_: {"__pycache__"}
    )
    shutil.copy(PACKAGE / "__init__.py", tmp_path / "coba_openrlhf")
    # A file in the place of numba's cache folder next to the source, and no home for the folder of the user.
    (tmp_path / "coba_openrlhf" / "allocation" / "solvers" / "__pycache__").write_text("")
    nowhere = dict.fromkeys(("XDG_CACHE_HOME", "HOME"), "/dev/null") | {"NUMBA_CACHE_DIR": ""}
    nowhere["PYTHONDONTWRITEBYTECODE"] = "1"
    probe = """
from coba_openrlhf.allocation.solvers import heap
print(heap.__file__, type(heap._heap_kernel._cache).__name__)
"""
    file, cache = run_python(probe, tmp_path, **nowhere).split()
    assert Path(file).is_relative_to(tmp_path)
    assert cache == "NullCache"
    assert run_python(SOLVE_MANY, tmp_path, **nowhere) == run_python(SOLVE_MANY, PACKAGE.parent)
