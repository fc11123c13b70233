"""The real stack, small: two ZeRO-3 policy ranks, a reference rank, two vLLM engines, the allocator."""

import math

import pyarrow.parquet as pq
import pytest
import ray
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from .conftest import NUM_PROMPTS, read_metrics

STEPS_PER_EPISODE = 3


@pytest.fixture(scope="module")
def steps(finished_run):
    return [r.metrics for r in finished_run.reports if r.kind == "step"]


def test_every_step_spends_exactly_its_total(finished_run, steps):
    assert [s["rollout/num_samples"] for s in steps] == [16, 16, 8, 16, 16, 8]
    table = pq.read_table(finished_run.run_dir / "allocations.parquet").to_pandas()
    assert table.groupby("step")["budget"].sum().tolist() == [16, 16, 8, 16, 16, 8]
    assert table.groupby("step").size().tolist() == [4, 4, 2, 4, 4, 2]


def test_budgets_become_ragged_once_prompts_have_a_history(finished_run):
    table = pq.read_table(finished_run.run_dir / "allocations.parquet").to_pandas()
    assert set(table[~table.seen].groupby("step")["budget"].nunique()) == {1}
    assert table[table.step > STEPS_PER_EPISODE].groupby("step")["budget"].nunique().max() > 1


def test_prompts_come_again_from_the_third_step_on(finished_run):
    """Then the step before is not all that was met; two of the third step's prompts are one regular and one other."""
    table = pq.read_table(finished_run.run_dir / "allocations.parquet").to_pandas()
    assert table.groupby("step")["revisited"].sum().tolist() == [0, 0, 1, 2, 2, 1]
    regular = table[~table.revisited].prompt_id.tolist()
    assert len(set(regular[:NUM_PROMPTS])) == NUM_PROMPTS, "the data goes on in its own order"
    met = {step: set(rows.prompt_id) for step, rows in table.groupby("step")}
    for step, rows in table[table.revisited].groupby("step"):
        assert set(rows.prompt_id) <= set.union(*(met[s] for s in range(1, step))) - met[step - 1]
    logged = [row for row in read_metrics(finished_run.run_dir) if "policy_loss" in row]
    assert [row["coba/revisited_rate"] for row in logged] == [0, 0, 0.5, 0.5, 0.5, 0.5]


def test_a_short_batch_is_padded_and_trained(steps):
    assert [s["rollout/num_padding"] for s in steps] == [0, 0, 8, 0, 0, 8]
    assert all(math.isfinite(s["policy_loss"]) and s["actor_grad_norm"] > 0 for s in steps)


def test_metrics_and_ledger(finished_run, steps):
    logged = [row for row in read_metrics(finished_run.run_dir) if "policy_loss" in row]
    assert [row["step"] for row in logged] == [1, 2, 3, 4, 5, 6]
    for name in ("coba/alpha", "coba/failure_rate", "coba/budget_gini", "coba/solve_seconds", "coba/exposed_seconds"):
        assert name in logged[-1], name
    assert logged[-1]["ledger/rollouts"] == sum(s["rollout/num_samples"] for s in steps) == 80
    assert 0 < logged[-1]["ledger/trained_tokens"] <= logged[-1]["ledger/generated_tokens"]
    assert list((finished_run.run_dir / "tensorboard").rglob("events*"))


def test_held_out_evaluation_before_and_after(finished_run):
    evaluations = [r for r in finished_run.reports if r.kind == "eval"]
    assert [r.step for r in evaluations] == [0, 6]
    assert {"eval_graded_arithmetic_pass1", "eval_graded_arithmetic_pass2"} <= set(evaluations[0].metrics)


def test_kl_is_zero_at_first_and_measured_against_the_reference(steps):
    assert steps[0]["kl"] == pytest.approx(0.0, abs=1e-6)
    assert abs(steps[-1]["kl"]) > 1e-4


def test_rollouts_are_on_policy_in_the_first_update(steps):
    # Log-probabilities of the update's forward pass equal those of the experience pass.
    assert steps[0]["ppo_kl"] == pytest.approx(0.0, abs=1e-6)


@torch.no_grad()
def log_probs(model, ids):
    """Log-probabilities of all tokens after the first."""
    return model(ids).logits.float()[0, :-1].log_softmax(-1).gather(-1, ids[0, 1:, None])[:, 0]


def test_engines_follow_the_trained_weights(finished_run, tiny):
    """Engine and policy agree on a sequence, and both have moved away from the checkpoint they started from."""
    tokenizer = AutoTokenizer.from_pretrained(tiny / "model")
    tokens = tokenizer("c 573+214=787")["input_ids"]
    ids = torch.tensor([tokens])
    mask = torch.ones_like(ids)
    forward = finished_run.pipeline.policy.async_run_method_batch(
        "forward", sequences=[ids, ids], action_mask=[mask[:, 1:]] * 2, attention_mask=[mask, mask]
    )
    policy = ray.get(forward)[0][0][0]
    engines = [torch.tensor(ray.get(e.response_log_probs.remote(tokens))) for e in finished_run.pipeline.engines]
    start = AutoModelForCausalLM.from_pretrained(tiny / "model", dtype=torch.bfloat16)
    before = log_probs(start, ids)
    # vLLM packs the output head, and with tied embeddings no weight of its own arrives for it.
    stale_head = AutoModelForCausalLM.from_pretrained(finished_run.run_dir / "model", dtype=torch.bfloat16)
    stale_head.lm_head.weight = torch.nn.Parameter(start.lm_head.weight.detach().clone())
    stale = log_probs(stale_head, ids)
    for engine in engines:
        gap = (engine - policy).abs().mean()
        assert gap < 0.15 * (policy - before).abs().mean(), (engine, policy, before)
        assert gap < 0.5 * (engine - stale).abs().mean(), (engine, policy, stale)


def test_saved_model_is_the_trained_policy(finished_run, tiny):
    saved = AutoModelForCausalLM.from_pretrained(finished_run.run_dir / "model").state_dict()
    start = AutoModelForCausalLM.from_pretrained(tiny / "model").state_dict()
    assert saved.keys() == start.keys()
    assert any(not torch.equal(saved[name], start[name]) for name in start)
    assert all(tensor.isfinite().all() for tensor in saved.values())
