"""vLLM engine: OpenRLHF's rollout actor with scoring that reports its errors."""

from coba_openrlhf.device import is_cpu
from coba_openrlhf.rewards.scorer import ScorerSpec, make_scorer
from coba_openrlhf.rewards.scoring_executor import ScoringExecutor

from .upstream import RolloutRayActor


class RolloutEngine(RolloutRayActor):
    """One vLLM engine; generation, scoring and weight sync go through upstream's methods."""

    async def __init__(self, *args, **kwargs):
        if is_cpu():
            kwargs["worker_extension_cls"] = "coba_openrlhf.device.worker_extension.CpuWorkerWrap"
        await super().__init__(*args, **kwargs)

    async def use_scorer(self, spec: ScorerSpec) -> None:
        """Score single-turn responses by ``spec`` from now on (agents bring their own rewards).

        Raises:
            RewardError: A reward file cannot be loaded.
        """
        self.executor = ScoringExecutor(make_scorer(spec))

    async def close(self) -> None:
        """End vLLM's core process and the scorer's workers; Ray would kill them without their cleaning up."""
        if isinstance(self.executor, ScoringExecutor):
            self.executor.close()
        self.llm.shutdown()

    async def response_log_probs(self, token_ids: list[int]) -> list[float]:
        """Log-probability of every token after the first under the engine's present weights.

        Args:
            token_ids: A sequence of at least two tokens.

        Returns:
            ``len(token_ids) - 1`` natural logarithms, at temperature 1.
        """
        from vllm import SamplingParams

        output = await self.generate(token_ids, SamplingParams(max_tokens=1, prompt_logprobs=0))
        return [
            positions[token].logprob for token, positions in zip(token_ids[1:], output.prompt_logprobs[1:], strict=True)
        ]
