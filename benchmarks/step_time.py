"""What a CoBA step costs next to a uniform one: the same pipeline, the same rollouts, side by side.

Runs the quickstart's pipeline four times (uniform, coba, coba, uniform) on 64 prompts that come round every other
step, so that budgets are ragged from the third step on. The learning rate is 0: all runs generate from the same
policy, and only the allocation differs.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.results_file import write_section
from benchmarks.timing import cpu_name

ROOT = Path(__file__).parents[1]
DATA = ROOT / "runs/quickstart/data"
ORDER = ("uniform", "coba", "coba", "uniform")
WARM_UP_STEPS = 4


def measure(strategy: str, num_episodes: int, run_dir: Path) -> list[dict[str, float]]:
    """Metrics of every step after the warm-up."""
    options = {
        "config": ROOT / "configs/quickstart_cpu.yaml",
        "actor.model_name_or_path": DATA / "model",
        "data.prompt_dataset": DATA / "train.jsonl",
        "data.max_samples": 64,
        "train.num_episodes": num_episodes,
        "actor.adam.lr": 0,
        "eval.dataset": "null",
        "coba.strategy": strategy,
        "coba.run_dir": run_dir,
    }
    arguments = [part for key, value in options.items() for part in (f"--{key}", str(value))]
    environment = {k: v for k, v in os.environ.items() if k != "RAY_ADDRESS"}
    subprocess.run(
        [sys.executable, "-m", "coba_openrlhf.train_grpo", *arguments], cwd=ROOT, env=environment, check=True
    )
    steps = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
    return [step for step in steps if step["step"] > WARM_UP_STEPS]


def table(num_episodes: int) -> str:
    """Run everything and render the comparison."""
    steps: dict[str, list[dict[str, float]]] = {"uniform": [], "coba": []}
    with tempfile.TemporaryDirectory() as folder:
        for i, strategy in enumerate(ORDER):
            steps[strategy] += measure(strategy, num_episodes, Path(folder) / f"{i}-{strategy}")
    median = {name: statistics.median(s["timing/step_total"] for s in rows) for name, rows in steps.items()}
    rows = [
        f"| {name} | {len(steps[name])} | {statistics.median(s['rollout/num_samples'] for s in steps[name]):.0f} "
        f"| {statistics.median(s['coba/budget_max'] for s in steps[name]):.0f} "
        f"| {statistics.median(s['timing/generation'] for s in steps[name]):.3f} "
        f"| {median[name]:.3f} | {median[name] / median['uniform']:.3f} "
        f"| {statistics.median(s['coba/exposed_seconds'] / s['timing/step_total'] for s in steps[name]):.3%} |"
        for name in steps
    ]
    return "\n".join(
        [
            f"Quickstart pipeline (1 engine, 2 ZeRO-3 ranks), order of runs: {', '.join(ORDER)}; medians over",
            f"all steps after the first {WARM_UP_STEPS} of each run. {cpu_name()}, {os.cpu_count()} cores, "
            f"Python {platform.python_version()}.",
            "",
            "| strategy | steps | rollouts | largest budget | generation s | step s | ratio | waiting for budgets |",
            "|---|---:|---:|---:|---:|---:|---:|---:|",
            *rows,
        ]
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description="Step time of coba against uniform.")
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results.md")
    parser.add_argument("--episodes", type=int, default=14, help="episodes of two steps per run (default: 14)")
    arguments = parser.parse_args(argv)
    subprocess.run([sys.executable, "-m", "coba_openrlhf.prepare.quickstart", "--out", str(DATA)], cwd=ROOT, check=True)
    text = table(arguments.episodes)
    print(text)
    if arguments.write:
        write_section("Step time", text, "benchmarks.step_time")


if __name__ == "__main__":
    main()
