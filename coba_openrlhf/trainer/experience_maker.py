"""From rollouts to training experience, for groups of different sizes."""

import torch

import coba_openrlhf.device.ready  # noqa: F401  isort: skip
from openrlhf.models.utils import compute_reward
from openrlhf.trainer.ppo_utils.experience import Experience
from openrlhf.trainer.ppo_utils.experience_maker import RemoteExperienceMaker
from openrlhf.trainer.ppo_utils.length_penalty import apply_length_penalties

from .group_advantages import compute_group_advantages
from .group_weights import compute_group_weights, loss_mean
from .rollout_batch import RolloutBatch


class RaggedExperienceMaker(RemoteExperienceMaker):
    """OpenRLHF's experience maker, except that advantages are computed per group, whatever its size.

    Upstream finds groups by reshaping to ``(-1, n_samples_per_prompt)``; here every rollout carries its
    group's id.
    """

    @torch.no_grad()
    def make_experience_batch(self, rollouts: RolloutBatch) -> list[Experience]:
        """Log-probabilities, KL and advantages of a (padded) step.

        Returns:
            Micro-batches in the order of ``rollouts``.
        """
        experiences = self.make_experience(self.split_rollout_samples(rollouts.experiences))
        index_R = [i for experience in experiences for i in experience.index]
        is_padding_R = torch.from_numpy(rollouts.group_id_R)[index_R] < 0
        self._clear_padding_means(experiences, is_padding_R)
        return self._compute_ragged_advantages(experiences, rollouts, index_R)

    @staticmethod
    def _clear_padding_means(experiences: list[Experience], is_padding_R: torch.Tensor) -> None:
        # Upstream divides by a rollout's number of action tokens, which is 0 for padding.
        sizes = [len(experience.index) for experience in experiences]
        for experience, is_padding in zip(experiences, is_padding_R.split(sizes), strict=True):
            for name in ("kl", "logprobs_diff"):
                experience.info[name] = experience.info[name].masked_fill(is_padding, 0.0)

    def _compute_ragged_advantages(
        self, experiences: list[Experience], rollouts: RolloutBatch, index_R: list[int]
    ) -> list[Experience]:
        args = self.strategy.args
        for experience in experiences:
            experience.rewards = experience.rewards.to(torch.promote_types(experience.rewards.dtype, torch.float32))
        # Shaping touches the loss only; raw scores stay in ``rollouts`` for pass rates and logs.
        apply_length_penalties(experiences, args)

        sizes = [len(experience.index) for experience in experiences]
        # Back in the order of the rollouts: dynamic micro-batches permute them, and float sums depend on order.
        micro_batch_reward_R = torch.cat([experience.rewards for experience in experiences])
        reward_R = torch.empty_like(micro_batch_reward_R)
        reward_R[index_R] = micro_batch_reward_R
        shaped_R, std_R = compute_group_advantages(
            reward_R,
            torch.from_numpy(rollouts.group_id_R),
            torch.from_numpy(rollouts.scored_R),
            args.algo.advantage.estimator,
        )
        shaped_of, std_of = shaped_R[index_R].split(sizes), std_R[index_R].split(sizes)
        for experience, shaped, std in zip(experiences, shaped_of, std_of, strict=True):
            experience.info["group_reward_std"] = std
            token_reward = compute_reward(
                shaped,
                self.kl_ctl.value,
                experience.kl,
                action_mask=experience.action_mask,
                reward_clip_range=args.reward.clip_range,
            )
            experience.returns = self.get_cumulative_returns(
                token_reward, experience.action_mask, args.algo.advantage.gamma
            )
            experience.advantages = experience.returns.clone()
            experience.info["return"] = token_reward.sum(dim=-1)
            experience.kl = None
        if args.algo.advantage.estimator == "reinforce_baseline":
            self._whiten(experiences, torch.from_numpy(rollouts.scored_R)[index_R].split(sizes))
        self._weigh_groups(experiences, rollouts, index_R)
        return experiences

    def _weigh_groups(self, experiences: list[Experience], rollouts: RolloutBatch, index_R: list[int]) -> None:
        """Multiply the factors of ``coba.group_weight`` into the advantages; nothing is touched with ``rollout``.

        This is the last change: whitening before it estimates mean and scale from all tokens alike, so that the
        weighted advantages of ``reinforce_baseline`` need not have mean 0.
        """
        args = self.strategy.args
        weight_R = torch.ones(len(index_R))
        if args.coba.group_weight == "prompt":
            weight_R = compute_group_weights(
                torch.cat([experience.action_mask.sum(-1).long() for experience in experiences]),
                torch.from_numpy(rollouts.group_id_R)[index_R],
                torch.from_numpy(rollouts.scored_R)[index_R],
                loss_mean(args.actor.loss_agg_mode, args.actor.policy_loss_type),
            )
            weight_of = weight_R.split([len(experience.index) for experience in experiences])
            for experience, weight in zip(experiences, weight_of, strict=True):
                advantages = experience.advantages
                experience.advantages = (advantages * weight.unsqueeze(-1)).to(advantages.dtype)
        # The same number for every rollout, because upstream reports means over rollouts; 0 for padding, which the
        # trainer takes out of those means.
        largest_R = torch.where(torch.from_numpy(rollouts.group_id_R)[index_R] < 0, 0.0, weight_R.max())
        for experience, largest in zip(experiences, largest_R.split([len(e.index) for e in experiences]), strict=True):
            experience.info["coba/group_weight_max"] = largest

    def _whiten(self, experiences: list[Experience], scored: tuple[torch.Tensor, ...]) -> None:
        """Centre and scale token advantages over the whole step, as upstream does for this estimator.

        Constant groups are shifted with the others, as upstream's are; rollouts without a score stay at 0.
        """
        masks = [e.action_mask * s.unsqueeze(-1) for e, s in zip(experiences, scored, strict=True)]
        advantages = torch.cat([experience.advantages.flatten() for experience in experiences]).float()
        mask = torch.cat([m.flatten() for m in masks])
        num_tokens = mask.sum()
        mean = (advantages * mask).sum() / num_tokens
        scale = torch.ones(())
        if not self.args.algo.advantage.no_std_norm:
            variance = ((advantages - mean).pow(2) * mask).sum() / num_tokens
            scale = variance.clamp(min=1e-8).rsqrt()
        for experience, is_scored in zip(experiences, scored, strict=True):
            whitened = (experience.advantages - mean) * scale
            experience.advantages = whitened.masked_fill(~is_scored.unsqueeze(-1), 0.0)
