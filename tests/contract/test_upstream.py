"""What we rely on in the installed packages; an upgrade that changes it fails here, not in the middle of a run."""

import argparse
import ast
import dataclasses
import importlib.metadata
import importlib.util
import inspect
import re
import textwrap
import types
import typing
from datetime import datetime
from pathlib import Path

import coba_openrlhf.device.ready  # noqa: F401  isort: skip
import pytest
from openrlhf.datasets import PromptDataset
from openrlhf.datasets.utils import blending_datasets
from openrlhf.trainer import ppo_trainer
from openrlhf.trainer.ppo_utils import length_penalty
from openrlhf.trainer.ppo_utils.experience_maker import RemoteExperienceMaker
from openrlhf.trainer.ppo_utils.samples_generator import SamplesGenerator
from openrlhf.trainer.ray import launcher, ppo_actor, vllm_engine
from openrlhf.trainer.ray.vllm_worker_wrap import WorkerWrap
from openrlhf.utils import utils as upstream_utils
from openrlhf.utils.agent import SingleTurnAgentExecutor
from openrlhf.utils.deepspeed import DeepspeedStrategy
from openrlhf.utils.deepspeed import deepspeed as deepspeed_module

from coba_openrlhf import launch
from coba_openrlhf.actors.policy import PolicyActor, PolicyTrainer
from coba_openrlhf.actors.rollout_engine import RolloutEngine
from coba_openrlhf.actors.upstream import PolicyModelActor, ReferenceModelActor, RolloutRayActor, class_replaced
from coba_openrlhf.config import RunConfig, flatten
from coba_openrlhf.data.prompt_dataset import IdentifiedPromptDataset
from coba_openrlhf.device.deepspeed_strategy import CpuDeepspeedStrategy
from coba_openrlhf.device.worker_extension import CpuWorkerWrap
from coba_openrlhf.rewards.scoring_executor import ScoringExecutor
from coba_openrlhf.trainer.coba_trainer import CobaTrainer
from coba_openrlhf.trainer.experience_maker import RaggedExperienceMaker
from coba_openrlhf.trainer.samples_generator import BudgetedSamplesGenerator

ROOT = Path(__file__).parents[2]


# --- Options ---------------------------------------------------------------------------------------------------

# Option -> our default; everything else has upstream's. Each is listed in docs/configuration.md with its reason.
DEVIATIONS = {
    "actor.eps_clip_low_high": (0.2, 0.28),
    "algo.advantage.estimator": "group_norm",
    "algo.kl.init_coef": 0.0,
    "ckpt.output_dir": None,
    "ckpt.path": None,
    "ds.zero_stage": 3,
    "logger.wandb.project": "coba_openrlhf",
    "logger.wandb.run_name": None,
    "rollout.n_samples_per_prompt": 8,
    "vllm.num_engines": 1,
}


def package_folder(name):
    return Path(importlib.util.find_spec(name).submodule_search_locations[0])


def upstream_parser():
    """The parser of ``cli/train_ppo_ray.py``: the statements of its main block up to ``parse_args``."""
    tree = ast.parse((package_folder("openrlhf") / "cli" / "train_ppo_ray.py").read_text())
    main = next(node for node in tree.body if isinstance(node, ast.If) and "__name__" in ast.unparse(node.test))
    end = next(i for i, statement in enumerate(main.body) if "parse_args" in ast.unparse(statement))
    scope = {"argparse": argparse, "datetime": datetime}
    exec(compile(ast.Module(main.body[:end], []), "train_ppo_ray.py", "exec"), scope)
    return scope["parser"]


UPSTREAM_ACTIONS = {a.dest: a for a in upstream_parser()._actions if a.dest != "help"}
OUR_DEFAULTS = flatten(RunConfig())


def option_types(cls=RunConfig, prefix=""):
    kinds = {}
    for name, kind in typing.get_type_hints(cls).items():
        nested = dataclasses.is_dataclass(kind)
        kinds |= option_types(kind, f"{prefix}{name}.") if nested else {prefix + name: kind}
    return kinds


OUR_TYPES = option_types()


def members(kind):
    """The alternatives of a union, or the type itself."""
    is_union = typing.get_origin(kind) in (typing.Union, types.UnionType)
    return [m for m in typing.get_args(kind) if m is not type(None)] if is_union else [kind]


def test_parser_was_found_whole():
    assert len(UPSTREAM_ACTIONS) > 130
    assert {"actor.adam.lr", "critic.adam.lr", "train.agent_func_path", "logger.wandb.run_name"} <= set(
        UPSTREAM_ACTIONS
    )


def test_every_upstream_option_exists():
    assert set(UPSTREAM_ACTIONS) - set(OUR_DEFAULTS) == set()


def test_every_other_option_is_ours():
    ours = {name for name in set(OUR_DEFAULTS) - set(UPSTREAM_ACTIONS) if not name.startswith("coba.")}
    assert ours == set()


@pytest.mark.parametrize("name", sorted(UPSTREAM_ACTIONS))
def test_default_is_upstreams_or_a_named_deviation(name):
    ours, theirs = OUR_DEFAULTS.get(name), UPSTREAM_ACTIONS[name].default
    if isinstance(theirs, tuple | list):
        theirs = type(ours)(float(v) for v in theirs) if ours is not None else theirs
    if name in DEVIATIONS:
        assert ours == DEVIATIONS[name]
        assert ours != theirs, "no deviation any more"
    else:
        assert ours == theirs


@pytest.mark.parametrize("name", sorted(name for name, action in UPSTREAM_ACTIONS.items() if action.choices))
def test_choices_are_upstreams(name):
    (literal,) = members(OUR_TYPES[name])
    assert set(typing.get_args(literal)) == set(UPSTREAM_ACTIONS[name].choices)


@pytest.mark.parametrize("name", sorted(UPSTREAM_ACTIONS))
def test_type_is_upstreams(name):
    action, kinds = UPSTREAM_ACTIONS[name], members(OUR_TYPES[name])
    if isinstance(action, argparse._StoreTrueAction | argparse._StoreFalseAction):
        assert kinds == [bool]
    elif action.nargs == 2:
        assert [typing.get_args(kind) for kind in kinds] == [(action.type, action.type)]
    elif action.nargs in ("+", "*"):
        assert list[action.type] in kinds
    elif action.choices:
        assert all(isinstance(value, action.type) for kind in kinds for value in typing.get_args(kind))
    else:
        assert kinds == [action.type]


@pytest.mark.parametrize("name", sorted(DEVIATIONS))
def test_deviation_is_documented(name):
    text = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert re.search(rf"`(--)?{re.escape(name)}[`: ]", text)


# --- Signatures ------------------------------------------------------------------------------------------------

# Method -> its parameters after self, exactly: our subclasses override it or call it by these names.
SIGNATURES = [
    (
        ppo_actor.ActorPPOTrainer.__init__,
        "strategy actor ema_model actor_optim actor_scheduler ema_beta micro_train_batch_size buffer_limit "
        "buffer_cpu_offload eps_clip tokenizer dataloader_pin_memory vllm_engines kwargs",
    ),
    (ppo_actor.ActorPPOTrainer.training_step, "experience kl_ctl step loss_batch_info"),
    (ppo_actor.ActorPPOTrainer._init_vllm_sync_group, "backend"),
    (PolicyModelActor.init_model_from_pretrained, "strategy pretrain max_steps vllm_engines"),
    (ReferenceModelActor.init_model_from_pretrained, "strategy pretrain"),
    (RolloutRayActor.__init__, "args bundle_indices agent_func_path remote_rm_url mm_pad_token_ids kwargs"),
    (
        RolloutRayActor.generate_responses,
        "prompt label sampling_params max_length hf_tokenizer num_samples images",
    ),
    (RolloutRayActor.generate, "prompt_token_ids sampling_params multi_modal_data"),
    (
        RolloutRayActor.init_process_group,
        "master_address master_port rank_offset world_size group_name backend use_ray",
    ),
    (
        WorkerWrap.init_process_group,
        "master_address master_port rank_offset world_size group_name backend use_ray",
    ),
    (WorkerWrap.update_weight, "name dtype shape empty_cache"),
    (
        RemoteExperienceMaker.__init__,
        "actor_model_group critic_model_group reward_model_group initial_model_group kl_controller strategy tokenizer "
        "kwargs",
    ),
    (RemoteExperienceMaker.make_experience_batch, "rollout_samples"),
    (RemoteExperienceMaker.split_rollout_samples, "rollout_samples"),
    (RemoteExperienceMaker.make_experience, "samples_list"),
    (RemoteExperienceMaker.compute_advantages_and_returns, "experiences"),
    (RemoteExperienceMaker.get_cumulative_returns, "rewards action_mask gamma"),
    (length_penalty.apply_length_penalties, "experiences args"),
    (
        ppo_trainer.BasePPOTrainer.__init__,
        "strategy actor_model_group critic_model_group reward_model_group reference_model_group vllm_engines tokenizer",
    ),
    (ppo_trainer.BasePPOTrainer.train_step, "rollout_samples global_step"),
    (ppo_trainer.BasePPOTrainer.save_logs_and_checkpoints, "global_step logs_dict client_states"),
    (ppo_trainer.BasePPOTrainer.save_best_checkpoint, "eval_metrics global_step client_states"),
    (ppo_trainer.BasePPOTrainer.restore_best_checkpoint_state, "checkpoint_states"),
    (ppo_trainer.BasePPOTrainer.init_checkpoint_states, ""),
    (ppo_trainer.BasePPOTrainer.broadcast_to_vllm, ""),
    (SamplesGenerator.__init__, "strategy prompts_dataloader eval_dataloader tokenizer vllm_engines"),
    (SamplesGenerator._process_response_into_experience, "response generate_kwargs"),
    (
        vllm_engine.create_vllm_engines,
        "num_engines tensor_parallel_size pretrain seed full_determinism enable_prefix_caching enforce_eager "
        "max_model_len shared_pg gpu_memory_utilization vllm_enable_sleep logprobs_mode agent_func_path remote_rm_url "
        "max_images_per_prompt",
    ),
    (vllm_engine.batch_vllm_engine_call, "engines method_name args rank_0_only kwargs"),
    (
        launcher.RayActorGroup.__init__,
        "num_nodes num_gpus_per_node ray_actor_type pg num_gpus_per_actor duplicate_actors resources "
        "num_resources_per_node",
    ),
    (
        DeepspeedStrategy.__init__,
        "seed full_determinism max_norm micro_train_batch_size train_batch_size zero_stage args",
    ),
    (DeepspeedStrategy.get_ds_train_config, "optim_dict max_norm"),
    (DeepspeedStrategy.get_ds_eval_config, "offload"),
    (SingleTurnAgentExecutor.__init__, "remote_rm_url"),
    (
        SingleTurnAgentExecutor.execute,
        "prompt label sampling_params max_length hf_tokenizer llm_engine images",
    ),
    (SingleTurnAgentExecutor._fetch_rewards_via_http, "queries_list prompts_list labels_list"),
    (PromptDataset.__init__, "dataset tokenizer strategy input_template"),
    (blending_datasets, "datasets probabilities strategy seed max_count stopping_strategy dataset_split"),
    (upstream_utils.get_tokenizer, "pretrain model padding_side strategy use_fast"),
    (upstream_utils.get_strategy, "args"),
]


def parameters_of(function):
    """Parameters without the one that Ray's tracing adds to methods of actor classes."""
    parameters = inspect.signature(inspect.unwrap(function)).parameters
    return {name: p for name, p in parameters.items() if name != "_ray_trace_ctx"}


def names_of(function):
    return [name for name in parameters_of(function) if name != "self"]


@pytest.mark.parametrize(("function", "names"), SIGNATURES, ids=[f.__qualname__ for f, _ in SIGNATURES])
def test_signature(function, names):
    assert names_of(function) == names.split()


# Ours -> the upstream method that callers believe they call.
OVERRIDES = [
    (PolicyTrainer.training_step, ppo_actor.ActorPPOTrainer.training_step),
    (PolicyTrainer._init_vllm_sync_group, ppo_actor.ActorPPOTrainer._init_vllm_sync_group),
    (PolicyActor.init_model_from_pretrained, PolicyModelActor.init_model_from_pretrained),
    (CpuWorkerWrap.init_process_group, WorkerWrap.init_process_group),
    (CpuWorkerWrap.update_weight, WorkerWrap.update_weight),
    (CpuDeepspeedStrategy.get_ds_train_config, DeepspeedStrategy.get_ds_train_config),
    (CpuDeepspeedStrategy.get_ds_eval_config, DeepspeedStrategy.get_ds_eval_config),
    (ScoringExecutor.execute, SingleTurnAgentExecutor.execute),
]


@pytest.mark.parametrize(("ours", "theirs"), OVERRIDES, ids=[ours.__qualname__ for ours, _ in OVERRIDES])
def test_override_takes_the_same_arguments(ours, theirs):
    def shape(function):
        return [(p.name, p.default, p.kind) for p in parameters_of(function).values()]

    assert shape(ours) == shape(theirs)
    assert inspect.iscoroutinefunction(ours) == inspect.iscoroutinefunction(theirs)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (CobaTrainer, ppo_trainer.BasePPOTrainer),
        (RaggedExperienceMaker, RemoteExperienceMaker),
        (BudgetedSamplesGenerator, SamplesGenerator),
        (RolloutEngine, RolloutRayActor),
        (IdentifiedPromptDataset, PromptDataset),
    ],
    ids=lambda cls: cls.__name__,
)
def test_private_names_do_not_collide(ours, theirs):
    """A helper of ours that happens to replace one of upstream's would be called by upstream."""
    intended = {"_abc_impl", "fit", "make_experience_batch"}
    shared = set(vars(ours)) & set(dir(theirs)) - intended
    assert [name for name in shared if not name.startswith("__")] == []


def test_engine_constructor_stays_a_coroutine():
    assert inspect.iscoroutinefunction(RolloutRayActor.__init__)
    assert inspect.iscoroutinefunction(RolloutEngine.__init__)


# --- Names and text that our code takes hold of ------------------------------------------------------------------

# Module, the name that class_replaced replaces in it, and the function whose body looks the name up there.
REPLACED = [
    (ppo_actor, "ActorPPOTrainer", PolicyModelActor.init_model_from_pretrained),
    (vllm_engine, "RolloutRayActor", vllm_engine.create_vllm_engines),
]


@pytest.mark.parametrize(("module", "name", "user"), REPLACED, ids=[name for _, name, _ in REPLACED])
def test_replaced_name_is_the_one_the_body_uses(module, name, user):
    user = inspect.unwrap(user)
    assert user.__globals__ is vars(module)
    assert name in user.__code__.co_names
    assert hasattr(module, name)
    original = getattr(module, name)
    with class_replaced(module, name, "ours"):
        assert user.__globals__[name] == "ours"
    assert getattr(module, name) is original


def test_class_is_put_back_after_an_error():
    original = ppo_actor.ActorPPOTrainer
    with pytest.raises(ZeroDivisionError), class_replaced(ppo_actor, "ActorPPOTrainer", None):
        raise ZeroDivisionError
    assert ppo_actor.ActorPPOTrainer is original


def test_get_strategy_makes_our_strategy_on_a_cpu():
    """It imports the class inside its body, from the package that we replace the name in."""
    from coba_openrlhf.config.namespace import to_openrlhf_args

    args = to_openrlhf_args(RunConfig(), ROOT)
    assert type(launch._make_strategy(args, "cpu")) is CpuDeepspeedStrategy
    assert type(launch._make_strategy(args, "cuda")) is DeepspeedStrategy
    assert deepspeed_module.DeepspeedStrategy is DeepspeedStrategy


def test_actors_are_the_plain_classes():
    for cls in (PolicyModelActor, ReferenceModelActor, RolloutRayActor):
        assert isinstance(cls, type)
        assert not hasattr(cls, "remote")
    assert issubclass(PolicyActor, PolicyModelActor)


def test_engine_takes_the_worker_extension_by_keyword():
    """``RolloutEngine`` swaps this keyword; a positional or renamed one would keep upstream's class on a CPU."""
    assert '"worker_extension_cls": "openrlhf.trainer.ray.vllm_worker_wrap.WorkerWrap"' in inspect.getsource(
        vllm_engine.create_vllm_engines
    )
    assert f"{CpuWorkerWrap.__module__}.{CpuWorkerWrap.__qualname__}" in inspect.getsource(RolloutEngine.__init__)


def test_weight_sync_marks_the_last_parameter():
    """``CpuWorkerWrap`` reloads the engine when ``empty_cache`` is true."""
    source = inspect.getsource(ppo_actor.ActorPPOTrainer)
    assert "empty_cache=count == num_params" in source
    assert "_model_update_group.broadcast(" in source


def test_training_step_reports_what_we_read():
    """``PolicyTrainer`` looks into this dictionary."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(ppo_actor.ActorPPOTrainer.training_step)))
    returned = [node.value for node in ast.walk(tree) if isinstance(node, ast.Return)]
    assert {key.value for value in returned if isinstance(value, ast.Dict) for key in value.keys} >= {
        "metrics",
        "weights",
        "num_action_tokens",
    }


def test_phases_are_timed_under_the_names_we_read():
    source = inspect.getsource(ppo_trainer)
    for name in ("make_experience", "ppo_train", "broadcast"):
        assert f'"timing/{name}"' in source


def test_flash_attn_is_imported_for_what_the_standin_offers():
    from coba_openrlhf.device.flash_attn_standin import _standins

    tree = ast.parse((package_folder("openrlhf") / "models" / "ring_attn_utils.py").read_text())
    wanted = {
        (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("flash_attn")
        for alias in node.names
    }
    assert wanted
    standins = _standins()
    assert all(hasattr(standins[module], name) for module, name in wanted)


def test_only_one_imported_module_needs_flash_attn():
    """The stand-in serves ring_attn_utils alone; another top-level import elsewhere would need one too."""
    importing = {
        path.name
        for path in package_folder("openrlhf").rglob("*.py")
        if re.search(r"^(from|import) flash_attn", path.read_text(), re.MULTILINE)
    }
    assert importing == {"ring_attn_utils.py"}


# --- Versions --------------------------------------------------------------------------------------------------

PINNED = {
    "openrlhf": "0.11.2",
    "ray": "2.55.0",
    "deepspeed": "0.19.6",
    "transformers": "5.15.0",
    "torch": "2.13.0",
    "vllm": "0.29.0",
}


def installed_version(name):
    """Without a build suffix; vLLM's CPU build is a package of its own."""
    for candidate in (name, f"{name}-cpu"):
        try:
            return importlib.metadata.version(candidate).split("+")[0]
        except importlib.metadata.PackageNotFoundError:
            continue
    raise AssertionError(f"{name} is not installed")


@pytest.mark.parametrize("name", PINNED)
def test_installed_version_is_the_pinned_one(name):
    assert installed_version(name) == PINNED[name]


@pytest.mark.parametrize("name", PINNED)
def test_cpu_lock_pins_the_same_version(name):
    lock = (ROOT / "requirements" / "cpu.txt").read_text()
    pins = re.findall(rf"^{name}(?:-cpu)?==([^\s;+]+)", lock, re.MULTILINE)
    # torch is installed on its own: its CPU build comes from another index.
    assert pins == [PINNED[name]] or (name == "torch" and pins == [])
