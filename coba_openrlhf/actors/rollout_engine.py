"""vLLM engine: OpenRLHF's rollout actor with scoring that reports its errors."""

import asyncio
import copy

from coba_openrlhf.device import is_cpu
from coba_openrlhf.rewards.scorer import ScorerSpec, make_scorer
from coba_openrlhf.rewards.scoring_executor import ScoringExecutor

from .upstream import RolloutRayActor


class RolloutEngine(RolloutRayActor):
    """One vLLM engine; generation, scoring and weight sync go through upstream's methods."""

    async def __init__(self, *args, **kwargs):
        if is_cpu():
            kwargs["worker_extension_cls"] = "coba_openrlhf.device.worker_extension.CpuWorkerWrap"
            # Of a prompt that is read in parts vLLM takes back a random number, which generators on a CPU cannot do:
            # a request with a seed would end the engine.
            kwargs["enable_chunked_prefill"] = False
        await super().__init__(*args, **kwargs)

    async def use_scorer(self, spec: ScorerSpec) -> None:
        """Score single-turn responses by ``spec`` from now on (agents bring their own rewards).

        Raises:
            RewardError: A reward file cannot be loaded.
        """
        self.executor = ScoringExecutor(make_scorer(spec))

    async def generate_seeded(self, seeds: list[int], sampling_params, **request) -> list[dict]:
        """One response per seed to one prompt; the random numbers of each depend on its seed alone.

        Args:
            seeds: One per response.
            sampling_params: vLLM's, shared by all responses but for the seed.
            **request: ``prompt``, ``label``, ``max_length``, ``hf_tokenizer`` and ``images``, as upstream's
                ``generate_responses`` takes them; that one gives all its samples the same seed.
        """
        calls = []
        for seed in seeds:
            seeded = copy.copy(sampling_params)
            seeded.seed = seed
            calls.append(self.generate_responses(sampling_params=seeded, num_samples=1, **request))
        return [responses[0] for responses in await asyncio.gather(*calls)]

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
