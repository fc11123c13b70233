"""A run that was stopped continues as if it had not been."""

import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq

from .conftest import FINISHED_RUN, read_metrics
from .local_ray import ROOT, environment


def shared_memory():
    """Semaphores and segments of Python's multiprocessing that exist now."""
    return {entry.name for entry in Path("/dev/shm").iterdir() if entry.name.startswith(("sem.mp-", "psm_"))}


def test_resume_continues_with_the_same_budgets(finished_run, local_ray, options, tmp_path):
    """Resume after step 4 of 6: the next batches and, for the first of them, the budgets are the same."""
    resumed = tmp_path / "run"
    shutil.copytree(finished_run.run_dir, resumed)
    shutil.rmtree(resumed / "checkpoints/_actor/global_step6")
    (resumed / "checkpoints/_actor/latest").write_text("global_step4")
    existing = shared_memory()
    extra = [*FINISHED_RUN, "--ckpt.load_enable", "--coba.run_dir", str(resumed)]
    done = subprocess.run(
        [sys.executable, "-m", "coba_openrlhf.train_grpo", *options, *extra],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment() | {"RAY_ADDRESS": local_ray.address},
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "resumed after step 4 of 6" in done.stdout
    assert not shared_memory() - existing, "a finished run leaves no shared memory behind"
    assert [r["step"] for r in read_metrics(resumed) if "policy_loss" in r] == [1, 2, 3, 4, 5, 6]
    before = pq.read_table(finished_run.run_dir / "allocations.parquet").to_pandas()
    after = pq.read_table(resumed / "allocations.parquet").to_pandas()
    columns = ["prompt_id", "revisited", "pass_rate", "budget"]
    assert after[after.step == 5][columns].equals(before[before.step == 5][columns])
    # What comes again in step 6 depends on answers of step 5, which two engines need not sample alike.
    assert after[~after.revisited].prompt_id.tolist() == before[~before.revisited].prompt_id.tolist()
    assert read_metrics(resumed)[-1]["ledger/rollouts"] == 80
