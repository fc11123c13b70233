"""Compiled, cached, uncached or interpreted: the budgets are the same to the last bit."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import coba_openrlhf

PACKAGE = Path(coba_openrlhf.__file__).parent

# Prints budgets and the exact shadow prices of every rule with every solver, over a few steps of a run.
ALLOCATE_MANY = """
import warnings
import numpy as np
from coba_openrlhf import AllocationConfig, Allocator, allocate_greedy
from coba_openrlhf.allocation import STRATEGY_NAMES, Gains
from coba_openrlhf.allocation.solvers import SOLVER_NAMES, solve

warnings.simplefilter("ignore")
for strategy in STRATEGY_NAMES:
    for solver in SOLVER_NAMES:
        allocator = Allocator(AllocationConfig(strategy=strategy, solver=solver, budget_max=16, pass_rate_decay=0.7))
        rng = np.random.default_rng(5)
        for step in range(3):
            ids = rng.permutation(20)[:14].tolist()
            done = allocator.allocate(ids, int(rng.integers(29, 14 * 16)))
            print(strategy, solver, done.budget_P.tolist(), done.shadow_price.hex())
            rows = np.repeat(ids, done.budget_P)
            allocator.observe(rows.tolist(), rng.uniform(size=len(rows)) < rows % 9 / 8)
for slope in (5e-324, 1e-300, 1e-17, 1e9):
    gains = Gains.geometric(np.array([0.0, 0.0, -1.0, 3.0, 3.0]), np.array([slope, 1.0, slope, slope, 1.0]))
    for solver in ("heap", "threshold"):
        budget_P, price = solve(gains, 110, 2, 90, solver)
        print(slope, budget_P.tolist(), price.hex())
"""


def run_python(code, cwd, **environment):
    """Output of a fresh interpreter with the package of ``cwd``; JIT on unless told otherwise."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": str(cwd), "NUMBA_DISABLE_JIT": "0"} | environment,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def compiled():
    """Output with JIT, and with the cache next to the source."""
    output = run_python(ALLOCATE_MANY, PACKAGE.parent)
    assert output.count("\n") == 15 * 4 * 3 + 8
    return output


def test_heap_and_threshold_agree_in_it(compiled):
    lines = [line.split(" ", 2) for line in compiled.splitlines()[:-8]]
    by_solver = {
        s: [(rule, rest) for rule, solver, rest in lines if solver == s] for s in ("heap", "threshold", "auto")
    }
    assert by_solver["heap"] == by_solver["threshold"] == by_solver["auto"]


def test_same_result_without_jit(compiled):
    assert run_python(ALLOCATE_MANY, PACKAGE.parent, NUMBA_DISABLE_JIT="1") == compiled


def test_same_result_with_a_new_and_with_a_filled_cache(compiled, tmp_path):
    new, filled = (run_python(ALLOCATE_MANY, PACKAGE.parent, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert list(tmp_path.rglob("*.nbc"))
    assert new == filled == compiled


@pytest.mark.skipif(os.name != "posix", reason="/dev/null is no folder: a cache cannot be made there, even by root")
def test_works_where_no_cache_can_be_written(compiled, tmp_path):
    shutil.copytree(
        PACKAGE / "allocation", tmp_path / "coba_openrlhf" / "allocation", ignore=lambda *_: {"__pycache__"}
    )
    shutil.copy(PACKAGE / "__init__.py", tmp_path / "coba_openrlhf")
    # A file in the place of numba's cache folder next to the source, and no home for the folder of the user.
    (tmp_path / "coba_openrlhf" / "allocation" / "solvers" / "__pycache__").write_text("")
    nowhere = dict.fromkeys(("XDG_CACHE_HOME", "HOME"), "/dev/null") | {"NUMBA_CACHE_DIR": ""}
    nowhere["PYTHONDONTWRITEBYTECODE"] = "1"
    probe = """
from coba_openrlhf.allocation.solvers import heap, threshold
caches = [type(kernel._cache).__name__ for kernel in (heap._heap_kernel, threshold._threshold_kernel)]
print(heap.__file__, *caches)
"""
    file, *caches = run_python(probe, tmp_path, **nowhere).split()
    assert Path(file).is_relative_to(tmp_path)
    assert caches == ["NullCache", "NullCache"]
    assert run_python(ALLOCATE_MANY, tmp_path, **nowhere) == compiled
