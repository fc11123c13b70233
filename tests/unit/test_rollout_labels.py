"""What the engines get as label, and what comes back from an agent of several turns."""

import asyncio
from types import SimpleNamespace

import coba_openrlhf.device.ready  # noqa: F401  isort: skip
import pytest
import torch
from openrlhf.utils.agent import AgentInstanceBase, MultiTurnAgentExecutor

from coba_openrlhf.evaluate.generation import to_columns
from coba_openrlhf.rewards.sourced_label import SourcedLabel
from coba_openrlhf.trainer.padding import pad_rollouts
from coba_openrlhf.trainer.samples_generator import BudgetedSamplesGenerator
from tests.rollouts import base_args, prompt_batch


def generator_of(changes=None):
    generator = BudgetedSamplesGenerator.__new__(BudgetedSamplesGenerator)
    generator.args = base_args(changes)
    return generator


def test_labels_travel_with_their_source_to_our_own_executor():
    assert generator_of()._label(prompt_batch(2), 1) == SourcedLabel("p1", "b")


def test_agents_get_plain_labels():
    assert generator_of({"train.agent_func_path": "agent.py"})._label(prompt_batch(2), 1) == "p1"


class CountingAgent(AgentInstanceBase):
    """Two turns; each is worth half."""

    def __init__(self):
        self.turn = 0

    async def step(self, state_dict):
        assert state_dict["label"] == "p0"
        self.turn += 1
        return {
            "rewards": torch.tensor(0.5),
            "scores": 0.5 * self.turn,
            "environment_feedback": "go on",
            "done": self.turn == 2,
            "extra_logs": {"turns": self.turn},
        }


class Engine:
    """Answers every turn with two tokens."""

    async def generate(self, prompt_token_ids, sampling_params, multi_modal_data=None):
        answer = SimpleNamespace(token_ids=[7, 8], text="ab", finish_reason="stop", logprobs=None)
        return SimpleNamespace(outputs=[answer])


class Tokenizer:
    """A letter per token."""

    def __call__(self, text, add_special_tokens, return_tensors):
        return {"input_ids": torch.tensor([[ord(c) for c in text]])}


def test_rollouts_of_an_agent_of_several_turns():
    batch = prompt_batch(1)
    generator = generator_of({"train.agent_func_path": "agent.py"})

    async def rollouts():
        executor = MultiTurnAgentExecutor(CountingAgent)
        options = SimpleNamespace(max_tokens=4, logprobs=None)
        label = generator._label(batch, 0)
        return [await executor.execute("q", label, options, 64, Tokenizer(), Engine()) for _ in range(2)]

    responses = asyncio.run(rollouts())
    made = generator._to_rollouts(batch, [responses], {"max_len": 64})
    assert made.score_R.tolist() == [1.0, 1.0]
    assert made.error_R.tolist() == [False, False]
    # q, two tokens, five of the environment, two tokens, five of the environment: only four are the policy's.
    assert [int(e.action_mask.sum()) for e in made.experiences] == [4, 4]
    assert made.metrics()["verifier/correct_rate"] == 1.0


@pytest.mark.parametrize("is_error", [True, False])
def test_failed_verifiers_are_told_from_limits(is_error):
    batch = prompt_batch(1)
    response = {
        "observation_tokens": [1, 2, 3],
        "action_ranges": [(1, 3)],
        "reward": None,
        "scores": None,
        "is_error": is_error,
        "rollout_log_probs": None,
        "truncated": False,
        "prompt": "p",
        "label": "l",
        "extra_logs": {},
    }
    metrics = generator_of()._to_rollouts(batch, [[response]], {"max_len": 64}).metrics()
    assert (metrics["verifier/error_rate"], metrics["verifier/unscorable_rate"]) == (is_error, not is_error)
    assert metrics["rollout/unscored_rate"] == 1.0


def test_the_verifiers_reason_reaches_the_table_of_responses():
    batch = prompt_batch(2)
    response = {
        "observation_tokens": [1, 2, 3],
        "action_ranges": [(1, 3)],
        "rollout_log_probs": None,
        "truncated": False,
        "prompt": "p",
        "label": "l",
        "extra_logs": {},
    }
    scored = {**response, "reward": 0.0, "scores": 0.0, "is_error": False, "reason": "chose B"}
    unscorable = {**response, "reward": None, "scores": None, "is_error": False, "reason": "took longer than 5 s"}
    of_an_agent = {**response, "reward": 1.0, "scores": 1.0}
    options = {"max_len": 64}
    rollouts = generator_of()._to_rollouts(batch, [[scored], [of_an_agent]], options)
    rollouts = rollouts.joined(generator_of()._to_rollouts(batch, [[unscorable], []], options))
    columns = to_columns(rollouts, [4, 7], SimpleNamespace(decode=lambda tokens, skip_special_tokens: "r"))
    assert columns["reason"] == ["chose B", "took longer than 5 s", None]
    assert (columns["row"], columns["index"]) == ([4, 4, 7], [0, 1, 0])
    assert pad_rollouts(rollouts, 4).reason_R.tolist() == ["chose B", "took longer than 5 s", "", ""]
