"""Generation: problems in chunks to the engines of training, and what comes back to files."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import ray

import coba_openrlhf.device.ready  # noqa: F401  isort: skip
from openrlhf.utils.utils import get_tokenizer

from coba_openrlhf import launch
from coba_openrlhf.config import ConfigError
from coba_openrlhf.config.namespace import to_openrlhf_args
from coba_openrlhf.data.prompt_dataset import IdentifiedPromptDataset, to_prompts
from coba_openrlhf.evaluation.response_files import ResponseFiles
from coba_openrlhf.trainer.evaluator import Evaluator, eval_top_p
from coba_openrlhf.trainer.rollout_batch import RolloutBatch
from coba_openrlhf.trainer.samples_generator import BudgetedSamplesGenerator

from .benchmarks import Problems
from .command_line import CommandLine


@dataclass(frozen=True)
class Progress:
    """A chunk is done: how many problems are there now, of how many, and this session's cost."""

    num_done: int
    num_problems: int
    num_responses: int
    num_tokens: int
    seconds: float
    seconds_left: float


class PromptSet:
    """The prompts of an evaluation, made before Ray starts.

    Args:
        command: What was asked for.
        problems: All problems.

    Raises:
        ConfigError: The tokenizer does not load or has no chat template but needs one; no prompt fits.
    """

    def __init__(self, command: CommandLine, problems: Problems) -> None:
        config = command.config
        self.args = to_openrlhf_args(config, command.out)
        self.strategy = SimpleNamespace(args=self.args, is_rank_0=lambda: False, print=lambda *_: None)
        name = self.args.actor.model_name_or_path
        try:
            self.tokenizer = get_tokenizer(
                name, None, "left", self.strategy, use_fast=not config.data.disable_fast_tokenizer
            )
        except Exception as error:  # damaged files surface as whatever the library stumbled over
            raise ConfigError(f"--model: cannot load the tokenizer of {name}: {error!r}") from error
        if config.data.apply_chat_template and not self.tokenizer.chat_template:
            raise ConfigError(f"data.apply_chat_template: the tokenizer of {name} has no chat template")
        try:
            self.dataset: IdentifiedPromptDataset = to_prompts(problems.rows, self.strategy, self.tokenizer)
        except ValueError as error:
            raise ConfigError(f"--benchmarks: {error}") from error
        # Ids of the problems, not of the prompts: other templates and models are compared by them.
        self.dataset.prompt_ids = [problems.ids[row] for row in self.dataset.row_numbers]
        self.row_numbers = [problems.row_numbers[row] for row in self.dataset.row_numbers]


def start_engines(command: CommandLine, prompts: PromptSet, device: str) -> list[ray.actor.ActorHandle]:
    """Start Ray or join one, and load the model into the engines of training."""
    vllm = command.config.vllm
    launch.start_ray(
        command.config,
        device,
        log_to_driver=command.config.coba.log_to_driver,
        gpus=vllm.num_engines * vllm.tensor_parallel_size,
    )
    engines = launch.create_engines(prompts.args, None)
    ray.get(launch.use_scorer(engines, command.config))
    return engines


def generate(
    command: CommandLine, prompts: PromptSet, engines: list[ray.actor.ActorHandle], files: ResponseFiles
) -> Iterator[Progress]:
    """Generate and score what is not there yet, chunk by chunk.

    Yields:
        A ``Progress`` after every chunk, when its file is complete.

    Raises:
        ray.exceptions.RayError: An engine or a reward function failed.
    """
    args = prompts.args
    k = args.eval.n_samples_per_prompt
    generator = BudgetedSamplesGenerator(prompts.strategy, prompts.tokenizer, engines)
    evaluator = Evaluator(prompts.dataset, generator, k, args.train.seed)
    there = files.finished()
    left = [row for row, name in enumerate(prompts.dataset.prompt_ids) if name not in there]
    num_problems, started, tokens = len(prompts.dataset), time.perf_counter(), 0
    for at in range(0, len(left), command.chunk):
        rows = left[at : at + command.chunk]
        rollouts = evaluator.respond(
            rows,
            temperature=args.eval.temperature,
            top_p=eval_top_p(args),
            max_len=args.data.max_len,
            max_new_tokens=args.rollout.max_new_tokens,
        )
        files.write(to_columns(rollouts, [prompts.row_numbers[row] for row in rows], prompts.tokenizer))
        done, seconds = at + len(rows), time.perf_counter() - started
        tokens += int(rollouts.response_length_R.sum())
        yield Progress(
            num_done=num_problems - len(left) + done,
            num_problems=num_problems,
            num_responses=done * k,
            num_tokens=tokens,
            seconds=seconds,
            seconds_left=seconds / done * (len(left) - done),
        )


def to_columns(rollouts: RolloutBatch, row_numbers: list[int], tokenizer) -> dict[str, list]:
    """The columns of ``response_files.SCHEMA``.

    Args:
        rollouts: Of one chunk, ordered by problem and index.
        row_numbers: Of its problems.
        tokenizer: Decodes responses as the scorer saw them, without special tokens.
    """
    batch = rollouts.batch
    group_R = rollouts.group_id_R.tolist()
    first_P = np.concatenate(([0], np.cumsum(np.bincount(rollouts.group_id_R, minlength=len(batch)))))
    responses = []
    for experience in rollouts.experiences:
        # action_mask[t] says whether token t + 1 is the model's.
        tokens = experience.sequences[0, 1:][experience.action_mask[0].bool()]
        responses.append(tokenizer.decode(tokens, skip_special_tokens=True))
    return {
        "datasource": [batch.datasources[g] for g in group_R],
        "row": [row_numbers[g] for g in group_R],
        "problem_id": [batch.prompt_ids[g] for g in group_R],
        "index": [r - int(first_P[g]) for r, g in enumerate(group_R)],
        "prompt": [batch.prompts[g] for g in group_R],
        "label": [str(batch.labels[g]) for g in group_R],
        "response": responses,
        "score": [None if np.isnan(score) else score for score in rollouts.score_R.tolist()],
        "reason": [str(reason) or None for reason in rollouts.reason_R],
        "num_tokens": rollouts.response_length_R.tolist(),
        "truncated": rollouts.truncated_R.tolist(),
    }
