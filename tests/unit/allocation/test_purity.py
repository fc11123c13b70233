"""The allocation library needs numpy and numba only."""

import os
import subprocess
import sys
from pathlib import Path

import coba_openrlhf

HEAVY = ("torch", "ray", "vllm", "deepspeed", "openrlhf", "transformers")


def test_import_loads_nothing_heavy():
    code = f"""
import sys
import coba_openrlhf, coba_openrlhf.allocation
coba_openrlhf.Allocator(coba_openrlhf.AllocationConfig()).allocate(["a", "b"], 9)
print([name for name in {HEAVY} if name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(Path(coba_openrlhf.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


def test_public_names():
    assert coba_openrlhf.__version__ == "0.1.0"
    assert set(coba_openrlhf.__all__) == {
        "Allocation",
        "AllocationConfig",
        "Allocator",
        "__version__",
        "allocate_greedy",
    }
