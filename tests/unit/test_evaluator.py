"""Evaluation during training: its sampling is its own, and it leaves the allocator alone."""

from types import SimpleNamespace

import coba_openrlhf.device.ready  # noqa: F401  isort: skip
import numpy as np

from coba_openrlhf.allocation import AllocationConfig, Allocator
from coba_openrlhf.trainer.coba_trainer import CobaTrainer
from coba_openrlhf.trainer.evaluator import Evaluator, eval_top_p
from coba_openrlhf.trainer.ledger import Ledger
from tests.rollouts import base_args, rollout_batch


class Generator:
    """Answers every problem alike and remembers what it was asked."""

    def __init__(self):
        self.calls = []

    def generate(self, batch, budget_P, **kwargs):
        self.calls.append((batch.prompt_ids, budget_P.tolist(), kwargs))
        rollouts = rollout_batch(budget_P.tolist(), np.tile([1.0, 0.0], len(batch)))
        return rollouts.__class__(**{**vars(rollouts), "batch": batch})


def dataset(num_problems=3):
    names = [f"p{i}" for i in range(num_problems)]
    columns = dict.fromkeys(("prompts", "labels", "images", "prompt_ids"), names)

    class DataSet(SimpleNamespace):
        def __len__(self):
            return num_problems

    return DataSet(**columns, datasources=["a", "b", "a"][:num_problems])


def test_every_problem_gets_k_responses_by_seed():
    generator = Generator()
    evaluator = Evaluator(dataset(), generator, 2, seed=7)
    metrics = evaluator.evaluate(temperature=0.5)
    assert generator.calls == [(["p0", "p1", "p2"], [2, 2, 2], {"seed": 7, "temperature": 0.5})]
    assert metrics["eval_a_pass1"] == 0.5 and metrics["eval_b_pass2"] == 1.0
    assert evaluator.respond([2, 0]).batch.prompt_ids == ["p2", "p0"]
    assert evaluator.num_rollouts == 6


def test_top_p_of_evaluation():
    assert eval_top_p(base_args({"rollout.top_p": 0.9})) == 0.9
    assert eval_top_p(base_args({"rollout.top_p": 0.9, "coba.eval.top_p": 0.5})) == 0.5


class Untouchable:
    def __getattr__(self, name):
        raise AssertionError(f"evaluation used the allocator: {name}")


def test_evaluation_during_training_never_touches_the_allocator():
    trainer, generator = CobaTrainer.__new__(CobaTrainer), Generator()
    trainer.args = base_args({"eval.temperature": 0.3, "coba.eval.top_p": 0.5, "rollout.max_new_tokens": 8})
    trainer._allocator = Untouchable()
    trainer._evaluator = Evaluator(dataset(), generator, 2, seed=0)
    trainer._generate_kwargs = {"temperature": 1.0, "top_p": 1.0, "max_len": 64, "max_new_tokens": 8}
    trainer._ledger, trainer._num_steps = Ledger(), 1
    trainer._run_log = SimpleNamespace(write_metrics=lambda *_: None)
    trainer.wandb_logger = trainer.tensorboard_logger = None
    report = trainer._evaluate(1)
    assert report.metrics["eval_a_pass1"] == 0.5 and trainer._ledger.eval_rollouts == 6
    expected = {"seed": 0, "temperature": 0.3, "top_p": 0.5, "max_len": 64, "max_new_tokens": 8}
    assert generator.calls[0][2] == expected


def test_the_stand_in_for_the_allocator_has_what_the_real_one_has():
    """Whatever the trainer calls on an allocator would have failed in the test above."""
    for name in ("allocate", "observe", "state_dict"):
        assert hasattr(Allocator(AllocationConfig()), name)
