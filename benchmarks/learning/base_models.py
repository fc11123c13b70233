"""Base models: supervised warm-up on a task's corpus, one model per seed, kept on disk."""

# Legend: S = seeds, M = examples of a batch, T = tokens of a prompt, A = tokens of an answer.

import os
from pathlib import Path

import numpy as np
import torch

from .policies import Policies, Shape
from .tasks import TASKS, Task
from .tasks.task import VOCABULARY

BATCH = 128
LEARNING_RATE = 3e-3


def make_policies(task: Task, seeds: list[int]) -> Policies:
    """Fresh models of the right size."""
    # One position less: the last answer token is predicted and never read.
    return Policies(Shape(VOCABULARY, task.prompt_length + task.answer_length - 1), seeds)


def warm_up(task: Task, seeds: list[int], steps: int | None = None) -> Policies:
    """Imitate the corpus; the learning rate falls linearly to 0, so that noise averages out."""
    steps = task.warm_up_steps if steps is None else steps
    policies = make_policies(task, seeds)
    generators = [np.random.default_rng([6, seed]) for seed in seeds]
    optimizer = torch.optim.Adam(policies.weights.values(), lr=LEARNING_RATE, betas=(0.9, 0.99))
    for step in range(steps):
        drawn = [task.draw_corpus(seed, rng, BATCH) for seed, rng in zip(seeds, generators, strict=True)]
        prompt_SMT = torch.from_numpy(np.stack([prompt for prompt, _ in drawn]))
        answer_SMA = torch.from_numpy(np.stack([answer for _, answer in drawn]))
        for group in optimizer.param_groups:
            group["lr"] = LEARNING_RATE * (1 - step / steps)
        optimizer.zero_grad()
        # A sum over seeds: every model has the gradient of its own mean.
        (-policies.answer_logprobs(prompt_SMT, answer_SMA).mean((1, 2)).sum()).backward()
        optimizer.step()
    return policies


def load_or_warm_up(name: str, seeds: list[int], folder: Path, steps: int | None = None) -> Policies:
    """Base models of a task from ``folder``; those that are missing are made, all of one call together.

    Args:
        name: Key of ``TASKS``.
        seeds: Worlds, one model each.
        folder: Where they are kept.
        steps: Of the warm-up; None for the task's.
    """
    task = TASKS[name]
    steps = task.warm_up_steps if steps is None else steps
    paths = {seed: folder / f"{name}-{steps}-{seed}.pt" for seed in seeds}
    missing = [seed for seed in seeds if not paths[seed].exists()]
    if missing:
        folder.mkdir(parents=True, exist_ok=True)
        made = warm_up(task, missing, steps).copy_weights()
        for index, seed in enumerate(missing):
            # Renamed when complete: a killed run leaves no half a model.
            partial = paths[seed].with_suffix(f".{os.getpid()}")
            torch.save({key: weight[index].clone() for key, weight in made.items()}, partial)
            partial.rename(paths[seed])
    policies = make_policies(task, seeds)
    loaded = [torch.load(paths[seed], weights_only=True) for seed in seeds]
    policies.load_weights({key: torch.stack([weights[key] for weights in loaded]) for key in loaded[0]})
    return policies
