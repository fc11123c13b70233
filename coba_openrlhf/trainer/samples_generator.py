"""Generation with a budget per prompt."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import ray
from numpy.typing import NDArray
from vllm import SamplingParams

import coba_openrlhf.device.ready  # noqa: F401  isort: skip
from openrlhf.trainer.ppo_utils.samples_generator import SamplesGenerator
from openrlhf.trainer.ray.vllm_engine import batch_vllm_engine_call

from coba_openrlhf.data.prompt_stream import PromptBatch
from coba_openrlhf.evaluation.seeds import request_seed
from coba_openrlhf.rewards.sourced_label import SourcedLabel

from .engine_schedule import Assignment, schedule_rollouts
from .rollout_batch import RolloutBatch


class BudgetedSamplesGenerator(SamplesGenerator):
    """Sends each prompt's rollouts to the engines and puts the answers back in order."""

    def __init__(self, strategy, tokenizer, vllm_engines: Sequence) -> None:
        super().__init__(strategy, None, None, tokenizer, vllm_engines)
        # Upstream sends the tokenizer with every prompt; it is the same each time, so it is stored once.
        self._tokenizer_ref = ray.put(tokenizer)
        self._are_awake = not self.args.vllm.enable_sleep

    @contextmanager
    def engines_awake(self) -> Iterator[None]:
        """Engines that sleep between steps are awake inside; around several calls it saves waking for each."""
        if self._are_awake:
            yield
            return
        batch_vllm_engine_call(self.vllm_engines, "wake_up")
        self._are_awake = True
        try:
            yield
        finally:
            self._are_awake = False
            batch_vllm_engine_call(self.vllm_engines, "sleep")

    def generate(self, batch: PromptBatch, budget_P: NDArray[np.int64], **generate_kwargs) -> RolloutBatch:
        """Generate and score ``budget_P[i]`` responses to prompt ``i``.

        Args:
            batch: Prompts.
            budget_P: Responses per prompt, >= 0.
            **generate_kwargs: ``temperature``, ``top_p``, ``max_len``, ``max_new_tokens``; with ``seed``, the random
                numbers of a response follow from it, the prompt's id and the index in the group.

        Returns:
            All rollouts, ordered by prompt and index in the group.

        Raises:
            ray.exceptions.RayTaskError: An engine or a reward function failed.
        """
        with self.engines_awake():
            responses_P = self._collect(batch, budget_P, generate_kwargs)
        return self._to_rollouts(batch, responses_P, generate_kwargs)

    def _collect(
        self, batch: PromptBatch, budget_P: NDArray[np.int64], generate_kwargs: dict[str, object]
    ) -> list[list[dict]]:
        """Responses of every prompt; a prompt split over engines is joined again."""
        sampling_params = SamplingParams(
            temperature=generate_kwargs["temperature"],
            top_p=generate_kwargs["top_p"],
            max_tokens=generate_kwargs["max_new_tokens"],
            min_tokens=1,
            skip_special_tokens=False,
            logprobs=1 if self.args.algo.advantage.is_correction_level != "off" else None,
        )
        assignments = schedule_rollouts(budget_P, len(self.vllm_engines))
        refs = [self._send(batch, a, sampling_params, generate_kwargs) for a in assignments]
        responses_P: list[list[dict]] = [[] for _ in batch.prompts]
        # One get for all: it raises as soon as any of them has failed.
        for a, responses in zip(assignments, ray.get(refs), strict=True):
            assert len(responses_P[a.prompt]) == a.first, a
            responses_P[a.prompt].extend(responses)
        return responses_P

    def _send(
        self, batch: PromptBatch, a: Assignment, sampling_params: SamplingParams, generate_kwargs: dict[str, object]
    ) -> ray.ObjectRef:
        engine = self.vllm_engines[a.engine]
        request = {
            "prompt": batch.prompts[a.prompt],
            "label": self._label(batch, a.prompt),
            "sampling_params": sampling_params,
            "max_length": generate_kwargs["max_len"],
            "hf_tokenizer": self._tokenizer_ref,
            "images": batch.images[a.prompt],
        }
        seed = generate_kwargs.get("seed")
        if seed is None:
            return engine.generate_responses.remote(num_samples=a.count, **request)
        name = batch.prompt_ids[a.prompt]
        seeds = [request_seed(seed, name, index) for index in range(a.first, a.first + a.count)]  # type: ignore[arg-type]
        return engine.generate_seeded.remote(seeds, **request)

    def _label(self, batch: PromptBatch, prompt: int) -> object:
        """Our own executor chooses the verifier by the data source; an agent gets the label as it is."""
        if self.args.train.agent_func_path:
            return batch.labels[prompt]
        return SourcedLabel(batch.labels[prompt], batch.datasources[prompt])

    def _to_rollouts(
        self, batch: PromptBatch, responses_P: list[list[dict]], generate_kwargs: dict[str, object]
    ) -> RolloutBatch:
        experiences, group_ids, scores, errors, reasons = [], [], [], [], []
        for group_id, responses in enumerate(responses_P):
            for response in responses:
                score = None if response["reward"] is None else response["scores"]
                scores.append(float("nan") if score is None else float(score))
                errors.append(bool(response.get("is_error")))  # agents have no such entry, and no reason
                reasons.append(response.get("reason") or "")
                if response["reward"] is None:
                    # Upstream takes a missing reward for "ask the reward model". The rollout is kept out of
                    # its group by its NaN score; the number itself is never used.
                    response = {**response, "reward": 0.0, "scores": 0.0}
                experiences.append(self._process_response_into_experience(response, **generate_kwargs))
                group_ids.append(group_id)
        log_names = {frozenset(experience.info) for experience in experiences}
        if len(log_names) > 1:
            differing = sorted(frozenset.union(*log_names) - frozenset.intersection(*log_names))
            raise ValueError(f"extra_logs must have the same names for every response; only some have {differing}")
        return RolloutBatch(
            batch=batch,
            experiences=experiences,
            group_id_R=np.array(group_ids, np.int64),
            score_R=np.array(scores, np.float64),
            response_length_R=np.array([int(e.response_length) for e in experiences], np.int64),
            truncated_R=np.array([bool(e.truncated) for e in experiences], np.bool_),
            error_R=np.array(errors, np.bool_),
            reason_R=np.array(reasons, object),
        )
