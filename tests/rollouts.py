"""Rollouts and options for tests, built by upstream's own code."""

# Legend: R = rollouts.

import functools
from pathlib import Path

import coba_openrlhf.device.ready  # noqa: F401  isort: skip
import numpy as np
from openrlhf.trainer.ppo_utils.samples_generator import SamplesGenerator

from coba_openrlhf.config import RunConfig
from coba_openrlhf.config.namespace import to_openrlhf_args
from coba_openrlhf.data.prompt_stream import PromptBatch
from coba_openrlhf.trainer.rollout_batch import RolloutBatch


def base_config(changes=None):
    """A small valid configuration, with ``{"dotted.option": value}`` on top."""
    config = RunConfig()
    base = {
        "actor.model_name_or_path": "org/model",
        "actor.num_gpus_per_node": 1,
        "data.prompt_dataset": "org/data",
        "data.label_key": "answer",
    }
    for key, value in {**base, **(changes or {})}.items():
        *groups, name = key.split(".")
        owner = functools.reduce(getattr, groups, config)
        assert hasattr(owner, name), key
        setattr(owner, name, value)
    return config


def base_args(changes=None):
    """The same as OpenRLHF's namespace."""
    return to_openrlhf_args(base_config(changes), Path("/tmp/run"))


def prompt_batch(num_prompts):
    names = [f"p{i}" for i in range(num_prompts)]
    return PromptBatch(
        episode=0,
        prompt_ids=names,
        prompts=names,
        labels=names,
        images=[None] * num_prompts,
        datasources=["a" if i % 2 == 0 else "b" for i in range(num_prompts)],
    )


def one_experience(reward, num_prompt_tokens=2, num_response_tokens=3, truncated=False):
    """One rollout as upstream builds it from an engine's response."""
    generator = SamplesGenerator.__new__(SamplesGenerator)
    length = num_prompt_tokens + num_response_tokens
    response = {
        "observation_tokens": list(range(1, length + 1)),
        "action_ranges": [(num_prompt_tokens, length)],
        "reward": float(reward),
        "scores": float(reward),
        "rollout_log_probs": None,
        "truncated": truncated,
        "prompt": "p",
        "label": "l",
        "extra_logs": {},
    }
    return generator._process_response_into_experience(response, max_len=64)


def rollout_batch(budgets, scores, lengths=None, truncated=None):
    """A step with ``budgets[i]`` rollouts of prompt ``i``; a score of NaN is an unscored rollout."""
    score_R = np.asarray(scores, np.float64)
    num_rollouts = sum(budgets)
    assert len(score_R) == num_rollouts
    length_R = np.full(num_rollouts, 3) if lengths is None else np.asarray(lengths)
    truncated_R = np.zeros(num_rollouts, np.bool_) if truncated is None else np.asarray(truncated, np.bool_)
    return RolloutBatch(
        batch=prompt_batch(len(budgets)),
        experiences=[
            one_experience(np.nan_to_num(s), 2, int(n), bool(t))
            for s, n, t in zip(score_R, length_R, truncated_R, strict=True)
        ],
        group_id_R=np.repeat(np.arange(len(budgets)), budgets),
        score_R=score_R,
        response_length_R=length_R.astype(np.int64),
        truncated_R=truncated_R,
    )
