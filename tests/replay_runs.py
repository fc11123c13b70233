"""Folders of small runs for replays: a real allocator, and outcomes drawn from known pass rates."""

# Legend: P = prompts of a step, R = rollouts.

import csv
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from coba_openrlhf import replay as library
from coba_openrlhf.allocation import AllocationConfig, Allocator
from coba_openrlhf.config import RunConfig, to_yaml
from coba_openrlhf.config.allocation import option_names
from coba_openrlhf.replay import __main__ as command

MEAN_BUDGET = 8
OLD_COLUMNS = [
    "step", "policy_version", "prompt_id", "datasource", "pass_rate", "budget", "scored", "successes", "tokens",
]  # fmt: skip


def write_config(run, config):
    """``config.yaml`` as a run writes it."""
    options = RunConfig()
    for name, option in option_names().items():
        *groups, leaf = option.split(".")
        node = options
        for group in groups:
            node = getattr(node, group)
        setattr(node, leaf, getattr(config, name))
    (run / "config.yaml").write_text(to_yaml(options), encoding="utf-8")


def write_run(
    run,
    config=None,
    *,
    num_prompts=36,
    batch=12,
    num_steps=12,
    unscored=0.0,
    graded=False,
    seed=0,
    keep=None,
    forget_at=None,
    shape=(0.5, 0.9),
):
    """A run folder from an ``Allocator`` and Bernoulli outcomes; the last batch of an episode may be short."""
    config = config or AllocationConfig(budget_max=32)
    rng = np.random.default_rng(seed)
    rate_of = {f"p{i:03d}": rate for i, rate in enumerate(rng.beta(*shape, num_prompts))}
    (run / "allocations.parquet").mkdir(parents=True)
    write_config(run, config)
    allocator = Allocator(config)
    batches = []
    while len(batches) < num_steps:
        ids = rng.permutation(list(rate_of)).tolist()
        batches += [ids[i : i + batch] for i in range(0, num_prompts, batch)]
    for step, ids in enumerate(batches[:num_steps], start=1):
        total = len(ids) * MEAN_BUDGET
        if step == forget_at:  # two restarts, the data set smaller at the first
            allocator.set_data(list(rate_of))
            allocator.set_data(list(rate_of)[: num_prompts // 2])
            allocator.set_data(list(rate_of))

        def generate(id_R):
            score_R = (rng.random(len(id_R)) < [rate_of[i] for i in id_R]).astype(float)
            if graded:
                score_R = np.round(score_R * rng.random(len(id_R)), 3)
            score_R[rng.random(len(id_R)) < unscored] = np.nan
            return score_R, rng.integers(5, 50, len(id_R))

        def counted(id_R, score_R, token_R):
            known_R = ~np.isnan(score_R)
            return [i for i, k in zip(id_R, known_R, strict=True) if k], score_R[known_R], token_R[known_R]

        first = []
        wave = None
        if config.pass_rate_source == "probe":
            first = [i for i in ids for _ in range(config.probe_rollouts)]
        score_R, token_R = generate(first)
        if first:
            wave_ids, wave_scores, _ = counted(first, score_R, token_R)
            wave = (wave_ids, wave_scores)
        allocation = allocator.allocate(ids, total, probe=wave)
        rest_P = allocation.budget_P - (config.probe_rollouts if first else 0)
        rest = [i for i, n in zip(ids, rest_P, strict=True) for _ in range(n)]
        more_score_R, more_token_R = generate(rest)
        id_R = first + rest
        score_R, token_R = np.concatenate((score_R, more_score_R)), np.concatenate((token_R, more_token_R))
        order = np.argsort([ids.index(i) for i in id_R], kind="stable")
        id_R, score_R, token_R = [id_R[r] for r in order], score_R[order], token_R[order]
        seen_ids, seen_scores, seen_tokens = counted(id_R, score_R, token_R)
        if seen_ids:
            allocator.observe(seen_ids, seen_scores, num_tokens=seen_tokens, policy_version=step - 1)
        write_step(run, step, ids, allocation, config, wave, (id_R, score_R, token_R))
    for file in (run / "allocations.parquet").iterdir():
        if keep is not None and int(file.stem[5:]) not in keep:
            file.unlink()
    return run


def write_step(run, step, ids, allocation, config, wave, rollouts):
    id_R, score_R, token_R = np.array(rollouts[0]), rollouts[1], rollouts[2]
    threshold = config.success_rule == "threshold"
    value_R = np.where(np.isnan(score_R), np.nan, score_R >= config.success_threshold) if threshold else score_R
    of_P = [id_R == i for i in ids]
    known_P = [value_R[rows & ~np.isnan(value_R)] for rows in of_P]
    wave_P = [np.zeros(0)] * len(ids)
    if wave:
        wave_ids, wave_R = np.array(wave[0]), np.asarray(wave[1])
        if threshold:
            wave_R = (wave_R >= config.success_threshold).astype(float)
        wave_P = [wave_R[wave_ids == i] for i in ids]
    estimates = allocation.estimates
    table = {
        "step": np.full(len(ids), step),
        "policy_version": np.full(len(ids), step - 1),
        "prompt_id": ids,
        "datasource": ["made"] * len(ids),
        "pass_rate": estimates.pass_rate_P,
        "posterior_success": estimates.success_P,
        "posterior_failure": estimates.failure_P,
        "last_rate": estimates.last_rate_P,
        "expected_tokens": estimates.num_tokens_P,
        "seen": estimates.seen_P,
        "estimate_version": estimates.version_P.astype(np.int64),
        "budget": allocation.budget_P,
        "wave_scored": [len(wave) for wave in wave_P],
        "wave_successes": [float(sum(wave.tolist())) for wave in wave_P],
        "scored": [len(known) for known in known_P],
        "successes": [float(sum(known.tolist())) for known in known_P],
        "mixed": [len(set(known.tolist())) > 1 for known in known_P],
        "tokens": [int(token_R[rows].sum()) for rows in of_P],
        "scored_tokens": [int(token_R[rows & ~np.isnan(score_R)].sum()) for rows in of_P],
    }
    pq.write_table(pa.table(table), run / "allocations.parquet" / f"step-{step:08d}.parquet")


def make_old(run):
    """What version 0.1.0 would have left behind."""
    for file in (run / "allocations.parquet").iterdir():
        table = pq.read_table(file).select(OLD_COLUMNS)
        successes = table["successes"].to_numpy().astype(np.int64)
        pq.write_table(table.set_column(7, "successes", pa.array(successes)), file)
    tree = yaml.safe_load((run / "config.yaml").read_text())
    known = {
        "strategy", "tau", "kappa", "lambd", "gamma", "alpha_min", "alpha_max", "capability_window", "eps", "solver",
        "budget", "pass_rate",
    }  # fmt: skip
    tree["coba"] = {name: value for name, value in tree["coba"].items() if name in known}
    of_pass_rate = tree["coba"]["pass_rate"]
    tree["coba"]["pass_rate"] = {
        name: of_pass_rate[name] for name in ("source", "window", "unseen", "success_threshold")
    }
    (run / "config.yaml").write_text(yaml.safe_dump(tree))


def make_step(budget, scored, successes, tokens=None, wave=None, mixed=None, ids=None, number=1):
    """A step from lists, one entry per prompt; ``wave`` has pairs of successes and rollouts."""
    num_prompts = len(budget)
    scored_P, success_P = np.array(scored, float), np.array(successes, float)
    wave_P2 = np.array(wave or [(0, 0)] * num_prompts, float)
    tokens_P = np.array(tokens or [10] * num_prompts, float)
    return library.LoggedStep(
        step=number,
        policy_version=number - 1,
        prompt_ids=ids or [f"p{i}" for i in range(num_prompts)],
        pass_rate_P=np.full(num_prompts, 0.5),
        seen_P=np.zeros(num_prompts, bool),
        budget_P=np.array(budget),
        wave_scored_P=wave_P2[:, 1],
        wave_success_P=wave_P2[:, 0],
        scored_P=scored_P,
        success_P=success_P,
        mixed_P=(success_P > 0) & (success_P < scored_P) if mixed is None else np.array(mixed),
        tokens_P=tokens_P,
        scored_tokens_P=tokens_P,
    )


def read_results(out):
    """The summary by rule, and the rows of replay.csv."""
    summary = json.loads((out / "summary.json").read_text())
    with (out / "replay.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    return {rule["rule"]: rule for rule in summary["rules"]}, rows


def call_replay(run, out, capsys, *argv):
    """Run the command line; its text, the summary by rule, and the rows of replay.csv."""
    assert command.main([str(run), "--out", str(out), *argv]) == 0, capsys.readouterr().err
    return capsys.readouterr().out, *read_results(out)
