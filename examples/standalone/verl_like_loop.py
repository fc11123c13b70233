"""Budgets of their own in a loop shaped like verl's ``fit``: python examples/standalone/verl_like_loop.py

    batch ──> repeat(budgets) ──> responses ──> token_level_scores ──> advantages by uid ──> update
               (1) allocate                                (2) observe

A trainer of that shape carries tensors and Python objects in one batch, repeats the batch before generation, and finds
groups again by a ``uid`` per prompt: advantages by uid need no change at all. Checkpoints hold the allocator's state
beside the model's (3): a run that continues sets the budgets, bit for bit, of one that never stopped.
"""

# Legend: P = prompts of a batch, R = rollouts of a step (R = budget_P.sum()), T = tokens.

import argparse
import json
import tempfile
import uuid
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from toy_policy import ToyPolicy, make_prompts

from coba_openrlhf import AllocationConfig, Allocator

NUM_PROMPTS, TRAIN_BATCH_SIZE, ROLLOUT_N = 256, 32, 8


@dataclass
class DataProto:
    """Arrays that travel together: one row per prompt, later one per rollout."""

    batch: dict
    non_tensor_batch: dict

    def repeat(self, repeat_times):
        """Every row as often as asked, copies side by side; ``repeat_times`` may be one number or one per row."""
        return DataProto(
            {name: np.repeat(column, repeat_times, axis=0) for name, column in self.batch.items()},
            {name: np.repeat(column, repeat_times, axis=0) for name, column in self.non_tensor_batch.items()},
        )


def compute_grpo_advantage(token_level_rewards, response_mask, uid):
    """Advantages ``[R, T]``: outcome minus the mean of its uid, over the standard deviation of its uid."""
    score_R = token_level_rewards.sum(axis=1)
    _, group_R, size_G = np.unique(uid, return_inverse=True, return_counts=True)
    centred_R = score_R - (np.bincount(group_R, score_R) / size_G)[group_R]
    std_G = np.sqrt(np.bincount(group_R, centred_R**2) / np.maximum(size_G - 1, 1))
    return (centred_R / (std_G[group_R] + 1e-6))[:, None] * response_mask


class Trainer:
    """Group-relative policy optimisation with checkpoints.

    Args:
        strategy: How rollouts are distributed.
        seed: Of the run.
    """

    def __init__(self, strategy, seed=0):
        self.config = AllocationConfig(strategy=strategy, budget_max=16, pass_rate_source="posterior")
        self.allocator = Allocator(self.config)
        self.policy = ToyPolicy()
        self.features, self.answers = make_prompts(NUM_PROMPTS, seed=10)
        self.seed, self.global_steps = seed, 0
        self.budgets = []

    def next_batch(self):
        """Prompts of this step; a function of seed and step, so that there is no order to save."""
        steps_per_epoch = NUM_PROMPTS // TRAIN_BATCH_SIZE
        epoch, place = divmod(self.global_steps, steps_per_epoch)
        order = np.random.default_rng([self.seed, epoch]).permutation(NUM_PROMPTS)
        rows = order[place * TRAIN_BATCH_SIZE : (place + 1) * TRAIN_BATCH_SIZE]
        uids = np.array([str(uuid.uuid4()) for _ in rows], dtype=object)
        return DataProto(
            {"prompts": self.features[rows]}, {"index": rows, "uid": uids, "ground_truth": self.answers[rows]}
        )

    def fit(self, until_step):
        """Train up to a step."""
        while self.global_steps < until_step:
            batch = self.next_batch()
            # (1) Not ``batch.repeat(ROLLOUT_N)``. The index of a row stays the same over epochs, its uid does not.
            index_P = batch.non_tensor_batch["index"]
            allocation = self.allocator.allocate(index_P, total_budget=TRAIN_BATCH_SIZE * ROLLOUT_N)
            batch = batch.repeat(allocation.budget_P)
            rng = np.random.default_rng([self.seed, 1, self.global_steps])
            response_RT = self.policy.generate(batch.batch["prompts"], rng)
            batch.batch["response_mask"] = np.ones(response_RT.shape)
            # The score stands at the last token, as outcome rewards do.
            batch.batch["token_level_scores"] = np.zeros(response_RT.shape)
            right_R = (response_RT == batch.non_tensor_batch["ground_truth"]).all(axis=1)
            batch.batch["token_level_scores"][:, -1] = right_R
            batch.batch["advantages"] = compute_grpo_advantage(
                batch.batch["token_level_scores"], batch.batch["response_mask"], batch.non_tensor_batch["uid"]
            )
            self.policy.update(batch.batch["prompts"], response_RT, batch.batch["advantages"])
            # (2) By index, with the version of the policy that generated and the length of what it wrote.
            self.allocator.observe(
                batch.non_tensor_batch["index"], batch.batch["token_level_scores"].sum(axis=1),
                num_tokens=batch.batch["response_mask"].sum(axis=1), policy_version=self.global_steps,
            )  # fmt: skip
            self.budgets.append(allocation.budget_P.tolist())
            self.global_steps += 1

    def save_checkpoint(self, path):
        """(3) The allocator's state is plain JSON; this policy is small enough to be JSON as well."""
        state = {"step": self.global_steps, "weights": self.policy.weight_TDV.tolist()}
        Path(path).write_text(json.dumps({**state, "allocator": self.allocator.state_dict()}))

    def load_checkpoint(self, path):
        """Continue; the allocator refuses a state of other settings."""
        state = json.loads(Path(path).read_text())
        self.global_steps, self.policy.weight_TDV = state["step"], np.array(state["weights"])
        self.allocator.load_state_dict(state["allocator"])

    def pass_rate(self):
        """Exact, over all prompts."""
        return self.policy.pass_rate(self.features, self.answers).mean()


def main():
    """Uniform against coba at equal rollouts; every run is also stopped in the middle and continued."""
    parser = argparse.ArgumentParser(description="Rollout budgets in a verl-like loop.")
    parser.add_argument("--steps", type=int, default=96)
    parser.add_argument("--strategies", nargs="+", default=["uniform", "coba"])
    arguments = parser.parse_args()
    for strategy in arguments.strategies:
        whole, first, second = Trainer(strategy), Trainer(strategy), Trainer(strategy)
        before = whole.pass_rate()
        whole.fit(arguments.steps)
        first.fit(arguments.steps // 2)
        with tempfile.TemporaryDirectory() as folder:
            first.save_checkpoint(f"{folder}/checkpoint.json")
            second.load_checkpoint(f"{folder}/checkpoint.json")
        second.fit(arguments.steps)
        same = first.budgets + second.budgets == whole.budgets
        same &= (second.policy.weight_TDV == whole.policy.weight_TDV).all()
        print(
            f"{strategy:>10}  pass rate {before:.3f} -> {whole.pass_rate():.3f}  "
            f"rollouts per step {set(map(sum, whole.budgets))}  continued run identical: {same}"
        )


if __name__ == "__main__":
    main()
