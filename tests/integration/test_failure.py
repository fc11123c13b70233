"""What fails, fails loudly: the job is FAILED, the exit status is not 0, the cause is in the output."""

import os
import signal

import pytest

from .conftest import REWARDS

SMALL = ["--actor.num_gpus_per_node", "1", "--vllm.num_engines", "1"]


@pytest.fixture(autouse=True)
def no_job_left(local_ray):
    yield
    local_ray.stop_jobs()


def test_an_error_in_the_reward_function_fails_the_job(local_ray, options, tmp_path):
    extra = ["--reward.remote_url", str(REWARDS / "reward_failing.py"), "--coba.run_dir", str(tmp_path / "run")]
    job = local_ray.submit(*options, *SMALL, *extra)
    output, _ = job.communicate(timeout=300)
    assert job.returncode != 0, output
    assert local_ray.last_job_status() == "FAILED"
    assert "KeyError: 'the answer column is missing'" in output and "reward_failing.py" in output


def test_a_killed_policy_rank_fails_the_job(local_ray, options, tmp_path):
    """One of two ranks dies in the middle of a run: the other must not wait for it for ever."""
    before = local_ray.actor_pids("Policy")
    job = local_ray.submit(
        *options, "--vllm.num_engines", "1", "--train.num_episodes", "500", "--coba.run_dir", str(tmp_path / "run")
    )
    lines = []
    for line in job.stdout:
        lines.append(line)
        if line.startswith("[ ") and "/1500] reward" in line:
            break
    # Ray titles a process with the upstream class that ours derives from.
    victims = sorted(local_ray.actor_pids("Policy") - before)
    assert len(victims) == 2, "".join(lines)
    os.kill(victims[-1], signal.SIGKILL)
    rest, _ = job.communicate(timeout=120)
    assert job.returncode != 0, "".join(lines) + rest
    assert local_ray.last_job_status() == "FAILED"
    assert "ActorDiedError" in rest
