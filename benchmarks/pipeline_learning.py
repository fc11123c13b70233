"""Which rule teaches more through the whole pipeline: the quickstart's task with Ray, vLLM and DeepSpeed.

    python -m benchmarks.pipeline_learning            # 4 rules x 5 seeds, about an hour of two cores

Every seed has a base model, problems and draws of its own; the rules of a seed start from the same. All runs have the
same steps and rollouts. A killed comparison continues: finished runs are kept.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.learning.statistics import holm, sign_flip_p
from benchmarks.results_file import write_section
from benchmarks.timing import cpu_name
from coba_openrlhf.evaluation.intervals import t_mean

ROOT = Path(__file__).parents[1]
# The first one is what the others are compared with.
RULES: dict[str, dict[str, object]] = {
    "uniform": {"coba.strategy": "uniform"},
    "coba": {"coba.strategy": "coba"},
    "mixedhard, probe": {"coba.strategy": "mixedhard", "coba.pass_rate.source": "probe"},
    "revisit, mixedhard, probe": {
        "coba.strategy": "mixedhard",
        "coba.pass_rate.source": "probe",
        "coba.pass_rate.decay": 0.98,
        "coba.revisit.share": 0.5,
    },
}
METRIC = "eval_graded_arithmetic_pass1"


def train(rule: str, seed: int, folder: Path) -> Path:
    """Run the job if ``folder`` does not have it yet; returns the run's folder."""
    run_dir, data = folder / f"{rule.replace(', ', '-')}-seed{seed}", folder / f"data-seed{seed}"
    if (run_dir / "finished").exists():
        return run_dir
    shutil.rmtree(run_dir, ignore_errors=True)
    prepare = [sys.executable, "-m", "coba_openrlhf.prepare.quickstart", "--out", str(data), "--seed", str(seed)]
    subprocess.run(prepare, cwd=ROOT, check=True)
    options = {
        "config": "configs/quickstart_cpu.yaml",
        "actor.model_name_or_path": data / "model",
        "data.prompt_dataset": data / "train.jsonl",
        "eval.dataset": data / "eval.jsonl",
        "train.seed": seed,
        "eval.steps": 12,
        "coba.run_dir": run_dir,
        "coba.fallback_steps": 0,  # else a rule whose estimates are put aside would be compared as uniform
        **RULES[rule],
    }
    arguments = [part for key, value in options.items() for part in (f"--{key}", str(value))]
    environment = {k: v for k, v in os.environ.items() if k != "RAY_ADDRESS"}
    command = [sys.executable, "-m", "coba_openrlhf.train_grpo", *arguments]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    shutil.rmtree(run_dir / "model", ignore_errors=True)
    (run_dir / "finished").touch()
    return run_dir


def outcome(run_dir: Path) -> dict[str, float]:
    """Accuracy before, halfway and after, and what the run spent."""
    rows = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
    held_out = {row["step"]: row[METRIC] for row in rows if METRIC in row}
    steps = [row for row in rows if "timing/step_total" in row]
    seconds = ("generation", "make_experience", "ppo_train", "broadcast")
    return {
        "before": held_out[0],
        "halfway": held_out[max(held_out) // 2],
        "after": held_out[max(held_out)],
        "rollouts": steps[-1]["ledger/rollouts"],
        "tokens": steps[-1]["ledger/generated_tokens"],
        "trained": steps[-1]["ledger/trained_tokens"] / steps[-1]["ledger/generated_tokens"],
        "signal": float(np.mean([row["coba/effective_group_rate"] for row in steps])),
        "seconds": sum(steps[-1][f"ledger/seconds_{name}"] for name in seconds),
    }


def differences(outcomes: dict[str, list[dict[str, float]]], name: str) -> dict[str, str]:
    """Each rule's mean of an outcome and, against the first rule, the paired difference with interval and p-value."""
    value = {rule: np.array([run[name] for run in runs]) for rule, runs in outcomes.items()}
    base, *others = outcomes
    adjusted = holm([sign_flip_p(value[rule] - value[base]) for rule in others])
    cells = {base: f"{value[base].mean():.3f} | "}
    for rule, p in zip(others, adjusted, strict=True):
        interval = t_mean(value[rule] - value[base])
        difference = f"{interval.value:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}], p {p:.2f}"
        cells[rule] = f"{value[rule].mean():.3f} | {difference}"
    return cells


def table(outcomes: dict[str, list[dict[str, float]]]) -> str:
    """Markdown of the comparison; ``outcomes`` has one entry per seed."""
    base = next(iter(outcomes))
    num_seeds = len(outcomes[base])
    halfway, after = differences(outcomes, "halfway"), differences(outcomes, "after")
    lines = [
        f"Quickstart task through the pipeline (1 engine, 2 ZeRO-3 ranks, {cpu_name()}, {os.cpu_count()} cores); "
        f"held-out accuracy, {num_seeds} seeds, each with a base model of its own. Differences are paired over seeds, "
        "with Student's 95 % interval; p-values are exact sign-flip tests after Holm, of which this number of seeds "
        f"cannot give one below {2.0 ** (1 - num_seeds):.3g}.",
        "",
        "| rule | before | halfway | difference to uniform | after | difference to uniform | after, by seed |",
        "|---|---:|---:|---|---:|---|---|",
    ]
    for rule, runs in outcomes.items():
        before = np.mean([run["before"] for run in runs])
        by_seed = " ".join(f"{run['after']:.3f}" for run in runs)
        lines.append(f"| {rule} | {before:.3f} | {halfway[rule]} | {after[rule]} | {by_seed} |")
    lines += [
        "",
        "| rule | prompts with signal | rollouts | tokens | of them trained | seconds |",
        "|---|" + "---:|" * 5,
    ]
    for rule, runs in outcomes.items():
        mean = {name: float(np.mean([run[name] for run in runs])) for name in runs[0]}
        lines.append(
            f"| {rule} | {mean['signal']:.2f} | {mean['rollouts']:,.0f} | {mean['tokens']:,.0f} "
            f"| {mean['trained']:.2f} | {mean['seconds']:.0f} |"
        )
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description="Rules compared through the whole pipeline.")
    parser.add_argument("--seeds", type=int, default=5, help="seeds per rule, >= 2 (default: 5)")
    parser.add_argument("--out", type=Path, default=ROOT / "runs/pipeline_learning", help="runs, kept and used again")
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results.md")
    arguments = parser.parse_args(argv)
    if arguments.seeds < 2:
        parser.error(f"--seeds must be >= 2 for an interval, got {arguments.seeds}")
    outcomes: dict[str, list[dict[str, float]]] = {rule: [] for rule in RULES}
    for seed in range(arguments.seeds):
        for rule in RULES:
            outcomes[rule].append(outcome(train(rule, seed, arguments.out.resolve())))
    text = table(outcomes)
    print(text)
    if arguments.write:
        write_section("Accuracy through the pipeline", text, "benchmarks.pipeline_learning")


if __name__ == "__main__":
    main()
