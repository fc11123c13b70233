"""Budgets of their own in a loop shaped like TRL's ``GRPOTrainer``: python examples/standalone/trl_like_loop.py

    BudgetSampler ──> generate ──> calculate_rewards ──> compute_advantages ──> update
     (1) allocate                       (2) observe           (3) any group size

A trainer of that shape repeats every prompt ``num_generations`` times and reshapes rewards to groups of that size.
With groups of different sizes three places change; they are marked (1), (2) and (3). Everything else stays.
"""

# Legend: P = prompts of a batch, R = rollouts of a step (R = budget_P.sum()), T = tokens.

import argparse

import numpy as np
from toy_policy import ToyPolicy, make_prompts

from coba_openrlhf import AllocationConfig, Allocator

NUM_PROMPTS, BATCH_SIZE, NUM_GENERATIONS = 256, 32, 8


class BudgetSampler:
    """Yields row numbers of the data set, each repeated as often as the prompt gets rollouts.

    Args:
        allocator: Sets the budgets.
        num_steps: Batches to yield.
        seed: Of the order of the prompts, drawn anew in every epoch.
    """

    def __init__(self, allocator, num_steps, seed):
        self.allocator = allocator
        self.num_steps = num_steps
        self.rng = np.random.default_rng(seed)

    def __iter__(self):
        rows = np.empty(0, int)
        for _ in range(self.num_steps):
            if len(rows) < BATCH_SIZE:
                rows = self.rng.permutation(NUM_PROMPTS)
            batch, rows = rows[:BATCH_SIZE], rows[BATCH_SIZE:]
            # (1) Not ``np.repeat(batch, NUM_GENERATIONS)``: as many rollouts in all, spent where they are worth most.
            allocation = self.allocator.allocate(batch, total_budget=BATCH_SIZE * NUM_GENERATIONS)
            yield np.repeat(batch, allocation.budget_P)


def correct_reward(prompts, completions, answer, **kwargs):
    """1 for a right completion, 0 for any other."""
    return [float((completion == right).all()) for completion, right in zip(completions, answer, strict=True)]


def format_reward(prompts, completions, **kwargs):
    """A small extra for answers that do not begin with token 0."""
    return [0.1 * float(completion[0] != 0) for completion in completions]


def compute_advantages(reward_R, row_R):
    """Rewards minus the group's mean, over its standard deviation: a group is all rollouts of one row."""
    # (3) Not ``rewards.view(-1, num_generations)``: sums per group, whatever its size.
    _, group_R, size_G = np.unique(row_R, return_inverse=True, return_counts=True)
    centred_R = reward_R - (np.bincount(group_R, reward_R) / size_G)[group_R]
    std_G = np.sqrt(np.bincount(group_R, centred_R**2) / np.maximum(size_G - 1, 1))
    return centred_R / (std_G[group_R] + 1e-4)


class Trainer:
    """Group-relative policy optimisation.

    Args:
        strategy: How rollouts are distributed; ``uniform`` is GRPO's way.
        budget_max: Most rollouts of a prompt.
        num_steps: Updates of the policy.
        seed: Of the run.
    """

    def __init__(self, strategy, budget_max, num_steps, seed):
        self.allocator = Allocator(AllocationConfig(strategy=strategy, budget_min=2, budget_max=budget_max))
        self.sampler = BudgetSampler(self.allocator, num_steps, seed)
        self.reward_funcs = [correct_reward, format_reward]
        self.policy = ToyPolicy()
        self.features, self.answers = make_prompts(NUM_PROMPTS, seed=10)
        self.rng = np.random.default_rng([seed, 1])
        self.rollouts_per_step = []
        self.largest_budget = 0

    def calculate_rewards(self, row_R, completion_RT):
        """All reward functions, ``[F, R]``."""
        columns = {"prompts": self.features[row_R], "completions": completion_RT, "answer": self.answers[row_R]}
        return np.array([function(**columns) for function in self.reward_funcs])

    def train(self):
        """Returns the exact mean pass rate before and after."""
        before = self.policy.pass_rate(self.features, self.answers).mean()
        for row_R in self.sampler:
            completion_RT = self.policy.generate(self.features[row_R], self.rng)
            reward_FR = self.calculate_rewards(row_R, completion_RT)
            # (2) The allocator learns from success alone, not from extras that are rewarded besides.
            self.allocator.observe(row_R, reward_FR[0])
            advantage_R = compute_advantages(reward_FR.sum(axis=0), row_R)
            advantage_RT = np.broadcast_to(advantage_R[:, None], completion_RT.shape)
            self.policy.update(self.features[row_R], completion_RT, advantage_RT)
            self.rollouts_per_step.append(len(row_R))
            self.largest_budget = max(self.largest_budget, int(self.allocator.metrics()["budget_max"]))
        return before, self.policy.pass_rate(self.features, self.answers).mean()


def main():
    """Uniform against coba, at equal rollouts."""
    parser = argparse.ArgumentParser(description="Rollout budgets in a TRL-like loop.")
    parser.add_argument("--steps", type=int, default=96)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--strategies", nargs="+", default=["uniform", "coba"])
    parser.add_argument("--budget_max", type=int, default=16)
    arguments = parser.parse_args()
    print(f"{'strategy':>10}  {'seed':>4}  {'before':>6}  {'after':>6}  rollouts  largest budget")
    for strategy in arguments.strategies:
        for seed in range(arguments.seeds):
            trainer = Trainer(strategy, arguments.budget_max, arguments.steps, seed)
            before, after = trainer.train()
            assert set(trainer.rollouts_per_step) == {BATCH_SIZE * NUM_GENERATIONS}
            rollouts = sum(trainer.rollouts_per_step)
            largest = trainer.largest_budget
            print(f"{strategy:>10}  {seed:4d}  {before:6.3f}  {after:6.3f}  {rollouts:8d}  {largest:14d}")


if __name__ == "__main__":
    main()
