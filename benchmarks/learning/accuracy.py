"""Exact accuracy: the probability of the right answer, teacher-forced, without sampling."""

# Legend: S = seeds, M = prompts of a set.

import numpy as np
import torch
from numpy.typing import NDArray

from .policies import Policies
from .tasks import Prompts


@torch.no_grad()
def right_probability(policies: Policies, sets: list[Prompts]) -> NDArray[np.float64]:
    """P(right answer) of every prompt, ``[S, M]``; one set of equal size per seed."""
    prompt_SMT = torch.from_numpy(np.stack([prompts.token_MT for prompts in sets]))
    answer_SMA = torch.from_numpy(np.stack([prompts.answer_MA for prompts in sets]))
    return policies.answer_logprobs(prompt_SMT, answer_SMA).sum(-1).exp().double().numpy()
