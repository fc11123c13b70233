"""Generate one response and score it, with errors that reach the trainer."""

import coba_openrlhf.device.ready  # noqa: F401  isort: skip
from openrlhf.utils.agent import SingleTurnAgentExecutor

from .scorer import Scorer
from .sourced_label import SourcedLabel


class ScoringExecutor(SingleTurnAgentExecutor):
    """OpenRLHF's single-turn executor with our scoring.

    Upstream logs a failing reward function and continues without a reward; the run then dies later with a
    message about reward models. Here upstream only generates (it gets no reward endpoint), and scoring follows
    outside its ``try``.
    """

    def __init__(self, scorer: Scorer) -> None:
        super().__init__(remote_rm_url=None)
        self._scorer = scorer

    def close(self) -> None:
        """End the scorer's processes."""
        self._scorer.close()

    async def execute(self, prompt, label, sampling_params, max_length, hf_tokenizer, llm_engine, images=None):
        """Upstream's response dictionary with ``reward``, ``scores``, ``extra_logs``, ``is_error`` and ``reason``.

        A ``SourcedLabel`` is taken apart; the dictionary has the plain label.

        Raises:
            RewardError: The reward function or server failed.
        """
        datasource = "default"
        if isinstance(label, SourcedLabel):
            label, datasource = label.label, label.datasource
        output = await super().execute(
            prompt, label, sampling_params, max_length, hf_tokenizer, llm_engine, images=images
        )
        tokens = output["observation_tokens"]
        (start, end) = output["action_ranges"][0]
        scored = await self._scorer.score(
            query=hf_tokenizer.decode(tokens, skip_special_tokens=False),
            prompt=prompt,
            response=hf_tokenizer.decode(tokens[start:end], skip_special_tokens=True),
            label=label,
            datasource=datasource,
        )
        output.update(
            reward=scored.reward,
            scores=scored.score,
            extra_logs=scored.extra_logs,
            is_error=scored.is_error,
            reason=scored.reason,
        )
        return output
