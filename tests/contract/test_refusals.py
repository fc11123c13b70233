"""Lists by which preflight refuses, compared with what the installed packages accept."""

import inspect
import re

import coba_openrlhf.device.ready  # noqa: F401  isort: skip
import pytest
import torch
from openrlhf.datasets import utils as dataset_utils
from openrlhf.datasets.prompts_dataset import preprocess_data
from openrlhf.trainer.ray import vllm_engine
from openrlhf.utils.agent import SingleTurnAgentExecutor
from openrlhf.utils.deepspeed import deepspeed as deepspeed_module
from transformers.trainer import get_scheduler
from transformers.trainer_utils import SchedulerType

from coba_openrlhf.config.rules import LR_SCHEDULERS
from coba_openrlhf.preflight.data_sets import LOCAL_FORMATS


def can_train_with(name):
    """Build and step the scheduler as upstream and DeepSpeed do: without further arguments or metrics."""
    kwargs = {"min_lr_rate": 0.1} if name in ("cosine_with_min_lr", "cosine_warmup_with_min_lr") else {}
    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], lr=1e-6)
    try:
        scheduler = get_scheduler(
            name, optimizer, num_warmup_steps=1, num_training_steps=10, scheduler_specific_kwargs=kwargs
        )
        optimizer.step()
        scheduler.step()
    except TypeError:
        return False
    return True


@pytest.mark.parametrize("name", [kind.value for kind in SchedulerType])
def test_schedulers_are_those_that_can_train(name):
    assert (name in LR_SCHEDULERS) == can_train_with(name)


def test_no_scheduler_is_unknown():
    assert set(LR_SCHEDULERS) <= {kind.value for kind in SchedulerType}
    source = inspect.getsource(deepspeed_module.DeepspeedStrategy)
    assert 'scheduler_name in {"cosine_with_min_lr", "cosine_warmup_with_min_lr"}' in source


def test_formats_are_upstreams():
    formats = re.search(r"ext in (\[.*?\])", inspect.getsource(dataset_utils.blending_datasets))[1]
    assert formats == str(list(LOCAL_FORMATS)).replace("'", '"')


def test_names_that_user_code_must_define():
    assert "reward_module.reward_func" in inspect.getsource(SingleTurnAgentExecutor.__init__)
    assert "agent_module.AgentExecutor" in inspect.getsource(vllm_engine._load_agent_executor)


def test_prompts_are_rendered_by_this_function():
    names = ["data", "input_template", "input_key", "label_key", "apply_chat_template"]
    assert list(inspect.signature(preprocess_data).parameters) == names
