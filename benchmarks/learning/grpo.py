"""One step of GRPO for all seeds: sample, score, weigh, update."""

# Legend: S = seeds, P = prompts of a step per seed, N = rollouts of a step per seed, T = tokens of a prompt,
#         A = tokens of an answer, U = different rollouts with an advantage, R = S * N.

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from coba_openrlhf.trainer.group_advantages import compute_group_advantages
from coba_openrlhf.trainer.group_weights import compute_group_weights

from .policies import Policies, uniforms
from .tasks import Prompts
from .tasks.task import END, VOCABULARY

LARGEST_GRADIENT = 1.0


@dataclass(frozen=True, eq=False)
class Rollouts:
    """Scored answers of one step.

    Attributes:
        prompt_SN: int64, index of the prompt within the step.
        answer_SNA: int64.
        score_SN: float32, 0 or 1.
        num_tokens_SN: int64, tokens up to and with the first ``END``.
    """

    prompt_SN: torch.Tensor
    answer_SNA: torch.Tensor
    score_SN: torch.Tensor
    num_tokens_SN: torch.Tensor

    def joined(self, other: "Rollouts") -> "Rollouts":
        """Two waves of one step."""
        return Rollouts(*(torch.cat((getattr(self, name), getattr(other, name)), 1) for name in self.__annotations__))


def roll_out(
    policies: Policies, batches: list[Prompts], budgets: list[NDArray[np.int64]], rngs: list[np.random.Generator]
) -> Rollouts:
    """Sample and score ``budgets[s][p]`` answers to prompt ``p`` of seed ``s``; the sum is the same for all seeds."""
    prompt_SN = torch.from_numpy(np.stack([np.repeat(np.arange(len(budget_P)), budget_P) for budget_P in budgets]))
    prompt_SPT = torch.from_numpy(np.stack([batch.token_MT for batch in batches]))
    right_SPA = torch.from_numpy(np.stack([batch.answer_MA for batch in batches]))
    uniform_SNA = uniforms(rngs, prompt_SN.shape[1], right_SPA.shape[2])
    answer_SNA = policies.sample(prompt_SPT, prompt_SN, uniform_SNA, END)
    seed_SN = torch.arange(len(prompt_SN))[:, None].expand_as(prompt_SN)
    score_SN = (answer_SNA == right_SPA[seed_SN, prompt_SN]).all(-1).float()
    num_tokens_SN = ((answer_SNA != END).sum(-1) + 1).clamp_(max=answer_SNA.shape[2])
    return Rollouts(prompt_SN, answer_SNA, score_SN, num_tokens_SN)


class Learner:
    """Adam on the on-policy GRPO loss, a mean over tokens; one update per step, no KL term, hence no clipping.

    Args:
        policies: Trained in place.
        learning_rate: Constant.
        weighting: ``rollout``, or ``prompt`` for the trainer's weights that let every prompt count the same.
    """

    def __init__(self, policies: Policies, learning_rate: float, weighting: str) -> None:
        assert weighting in ("rollout", "prompt"), weighting
        self._policies = policies
        self._weighting = weighting
        self._optimizer = torch.optim.Adam(policies.weights.values(), lr=learning_rate, betas=(0.9, 0.95))

    def advantages(self, rollouts: Rollouts, num_prompts: int) -> torch.Tensor:
        """Group advantages with their weights, float32 ``[S, N]``, by the training job's own code."""
        num_seeds, num_rollouts = rollouts.prompt_SN.shape
        group_SN = rollouts.prompt_SN + num_prompts * torch.arange(num_seeds)[:, None]
        scored_R = torch.ones(num_seeds * num_rollouts, dtype=torch.bool)
        advantage_R, _ = compute_group_advantages(
            rollouts.score_SN.flatten(), group_SN.flatten(), scored_R, "group_norm"
        )
        advantage_SN = advantage_R.view(num_seeds, num_rollouts)
        if self._weighting == "prompt":
            weight_SN = torch.stack(
                [
                    compute_group_weights(num_tokens_N, prompt_N, scored_R[:num_rollouts], "token")
                    for num_tokens_N, prompt_N in zip(rollouts.num_tokens_SN, rollouts.prompt_SN, strict=True)
                ]
            )
            advantage_SN = advantage_SN * weight_SN
        return advantage_SN

    def update(self, batches: list[Prompts], rollouts: Rollouts) -> None:
        """One optimiser step."""
        advantage_SN = self.advantages(rollouts, len(batches[0]))
        prompt_SUT, answer_SUA, weight_SU = _distinct(batches, rollouts, advantage_SN)
        if not weight_SU.numel():
            return
        logprob_SUA = self._policies.answer_logprobs(prompt_SUT, answer_SUA)
        # Tokens after the end are no part of an answer.
        is_past_SUA = (answer_SUA == END).cumsum(-1) > 1
        loss_S = -(logprob_SUA.masked_fill(is_past_SUA, 0).sum(-1) * weight_SU).sum(1)
        self._optimizer.zero_grad()
        (loss_S / rollouts.num_tokens_SN.sum(1)).sum().backward()
        self._clip()
        self._optimizer.step()

    @torch.no_grad()
    def _clip(self) -> None:
        """Every seed's gradient to a norm of 1 at most."""
        gradients = [weight.grad for weight in self._policies.weights.values()]
        square_S = sum(gradient.square().flatten(1).sum(1) for gradient in gradients)
        factor_S = (LARGEST_GRADIENT / (square_S.sqrt() + 1e-6)).clamp(max=1)
        for gradient in gradients:
            gradient.mul_(factor_S.view(-1, *[1] * (gradient.ndim - 1)))


def _distinct(
    batches: list[Prompts], rollouts: Rollouts, advantage_SN: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Rollouts with an advantage, equal ones of a prompt once with the sum of their advantages.

    The gradient is the same; the forward and backward passes are shorter.

    Returns:
        Prompts ``[S, U, T]``, answers ``[S, U, A]`` and summed advantages ``[S, U]``, 0 in padding.
    """
    seed_SN = torch.arange(len(advantage_SN))[:, None].expand_as(advantage_SN)
    num_prompts, length = len(batches[0]), rollouts.answer_SNA.shape[2]
    assert len(batches) * num_prompts * VOCABULARY**length < 2**63
    code_SN = seed_SN * num_prompts + rollouts.prompt_SN
    for place in range(length):
        code_SN = code_SN * VOCABULARY + rollouts.answer_SNA[:, :, place]
    has_part_SN = advantage_SN != 0
    code_R, advantage_R = code_SN[has_part_SN], advantage_SN[has_part_SN]
    code_U, row_R = torch.unique(code_R, return_inverse=True)
    weight_U = torch.zeros(len(code_U)).index_add_(0, row_R, advantage_R)
    first_U = torch.full((len(code_U),), len(row_R)).scatter_reduce_(0, row_R, torch.arange(len(row_R)), "amin")
    seed_U, prompt_U = seed_SN[has_part_SN][first_U], rollouts.prompt_SN[has_part_SN][first_U]
    answer_UA = rollouts.answer_SNA[has_part_SN][first_U]
    # Codes are sorted by seed: a rollout's place within its seed is its distance from the seed's first.
    count_S = torch.bincount(seed_U, minlength=len(batches))
    place_U = torch.arange(len(code_U)) - (count_S.cumsum(0) - count_S)[seed_U]
    width = int(count_S.max()) if len(count_S) else 0
    token_SPT = torch.from_numpy(np.stack([batch.token_MT for batch in batches]))
    prompt_SUT = torch.zeros(len(batches), width, token_SPT.shape[2], dtype=torch.int64)
    answer_SUA = torch.zeros(len(batches), width, length, dtype=torch.int64)
    weight_SU = torch.zeros(len(batches), width)
    prompt_SUT[seed_U, place_U] = token_SPT[seed_U, prompt_U]
    answer_SUA[seed_U, place_U] = answer_UA
    weight_SU[seed_U, place_U] = weight_U
    return prompt_SUT, answer_SUA, weight_SU
