"""Which engine generates which rollouts.

Budgets differ by an order of magnitude between prompts, so handing out whole prompts leaves engines waiting
for the one that drew the largest. Here the rollouts of a step are laid out in one line, prompt after prompt,
and the line is cut into as many equal pieces as there are engines (McNaughton's wrap-around rule): loads
differ by at most one rollout, at most ``engines - 1`` prompts are split, and a prompt's rollouts on one engine
stay together, so that its prefix cache is shared.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Assignment:
    """``count`` rollouts of prompt ``prompt`` on engine ``engine``; ``first`` is their index in the group."""

    prompt: int
    engine: int
    first: int
    count: int


def schedule_rollouts(budget_P: NDArray[np.int64], num_engines: int) -> list[Assignment]:
    """Split a step's rollouts evenly over the engines.

    Args:
        budget_P: Rollouts per prompt, >= 0.
        num_engines: Engines, >= 1.

    Returns:
        Assignments that cover every rollout once; engine loads differ by at most one.
    """
    assert num_engines >= 1, num_engines
    total = int(budget_P.sum())
    # Engine e takes the rollouts [bound[e], bound[e + 1]) of the line.
    bounds = [total * e // num_engines for e in range(num_engines + 1)]
    assignments = []
    engine = 0
    start = 0
    for prompt, budget in enumerate(budget_P.tolist()):
        end = start + budget
        at = start
        while at < end:
            while at >= bounds[engine + 1]:
                engine += 1
            until = min(end, bounds[engine + 1])
            assignments.append(Assignment(prompt, engine, at - start, until - at))
            at = until
        start = end
    return assignments
