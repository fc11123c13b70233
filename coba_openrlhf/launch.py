"""Start Ray, place the actors, train, save."""

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import ray
from ray.util.placement_group import PlacementGroup, placement_group

import coba_openrlhf.device.ready  # noqa: F401  isort: skip
from openrlhf.trainer.ray import vllm_engine
from openrlhf.trainer.ray.launcher import RayActorGroup
from openrlhf.utils.utils import get_strategy

from coba_openrlhf.actors.capability_allocator import CapabilityAllocator
from coba_openrlhf.actors.policy import PolicyActor, ReferenceActor
from coba_openrlhf.actors.rollout_engine import RolloutEngine
from coba_openrlhf.actors.upstream import class_replaced
from coba_openrlhf.config import ConfigError, RunConfig
from coba_openrlhf.config.allocation import to_allocation_config, to_revisits
from coba_openrlhf.config.namespace import reward_urls, to_openrlhf_args
from coba_openrlhf.device import DEVICE_VARIABLE, cpu_environment
from coba_openrlhf.preflight import gpus_needed
from coba_openrlhf.rewards.scorer import ScorerSpec
from coba_openrlhf.trainer.coba_trainer import CobaTrainer
from coba_openrlhf.trainer.report import Report

# Cores for the processes that hold no GPU: trainer, allocator, driver.
CONTROLLER_CPUS = 3
# Placement groups of an existing cluster may have to wait for another job's actors to end.
PLACEMENT_SECONDS = 300
CLOSE_SECONDS = 10


@dataclass(frozen=True)
class Pipeline:
    """The running actors of one job."""

    trainer: ray.actor.ActorHandle
    allocator: ray.actor.ActorHandle
    policy: RayActorGroup
    reference: RayActorGroup | None
    engines: list[ray.actor.ActorHandle]

    def fit(self) -> Iterator[Report]:
        """Train; yields reports as they come. An actor's failure is raised here."""
        for ref in self.trainer.fit.options(num_returns="streaming").remote():
            yield ray.get(ref)

    def save_model(self) -> None:
        """Write the final Hugging Face model to ``ckpt.output_dir``."""
        ray.get(self.policy.async_save_model())

    def close(self) -> None:
        """End the processes that engines have started; dead or stuck engines are passed over."""
        close_engines(self.engines)


def close_engines(engines: list[ray.actor.ActorHandle]) -> None:
    """End the processes that engines have started; dead or stuck engines are passed over."""
    with contextlib.suppress(ray.exceptions.RayError):
        ray.get([engine.close.remote() for engine in engines], timeout=CLOSE_SECONDS)


def start_ray(config: RunConfig, device: str, *, log_to_driver: bool, gpus: int | None = None) -> None:
    """Join the cluster of this job (or ``RAY_ADDRESS``), or start Ray on this machine.

    Args:
        config: A checked configuration.
        device: ``cpu`` or ``cuda``.
        log_to_driver: Show what actors print.
        gpus: GPUs that will be reserved; None for those of a training run.

    Raises:
        ConfigError: The cluster has too few GPUs or CPUs, or others keep them for PLACEMENT_SECONDS.
    """
    environment = {
        "TOKENIZERS_PARALLELISM": os.environ.get("TOKENIZERS_PARALLELISM", "true"),
        "NCCL_DEBUG": os.environ.get("NCCL_DEBUG", "WARN"),
        "RAY_ENABLE_ZERO_COPY_TORCH_TENSORS": os.environ.get("RAY_ENABLE_ZERO_COPY_TORCH_TENSORS", "1"),
        DEVICE_VARIABLE: device,
    }
    if device == "cpu":
        ranks = config.actor.num_nodes * config.actor.num_gpus_per_node
        environment |= cpu_environment(max(ranks, config.vllm.num_engines))
    # A job's own environment has these already, and Ray refuses to merge a variable that both set.
    job = json.loads(os.environ.get("RAY_JOB_CONFIG_JSON_ENV_VAR", "{}")).get("runtime_env", {}).get("env_vars", {})
    runtime_env = {"env_vars": {k: v for k, v in environment.items() if k not in job}}
    gpus = gpus_needed(config) if gpus is None else gpus
    needed = {"GPU": gpus, "CPU": gpus + CONTROLLER_CPUS}
    joins = bool(os.environ.get("RAY_ADDRESS"))
    # Without GPUs a Ray of our own is started (on CPU "GPU" is a mere count), never a running one joined by chance.
    local = (
        {} if joins or device == "cuda" else {"address": "local", "num_gpus": needed["GPU"], "num_cpus": needed["CPU"]}
    )
    ray.init(runtime_env=runtime_env, log_to_driver=log_to_driver, configure_logging=False, **local)
    _require_resources(needed, device)


def _require_resources(needed: dict[str, int], device: str) -> None:
    """Upstream's placement groups wait for ever; here a wait has a reason on the console and an end."""
    present = ray.cluster_resources()
    for name, count in needed.items():
        if present.get(name, 0) < count:
            hint = f" (ray start --head --num-cpus {needed['CPU']} --num-gpus {needed['GPU']})"
            raise ConfigError(
                f"the run needs {count} {name}s, Ray has {present.get(name, 0):g}"
                + (f"; on a machine without GPUs Ray is told to pretend{hint}" if device == "cpu" else "")
            )
    deadline = time.monotonic() + PLACEMENT_SECONDS
    announced = False
    while True:
        free = ray.available_resources()
        missing = [
            f"{count} {name}s, {free.get(name, 0):g} free"
            for name, count in needed.items()
            if free.get(name, 0) < count
        ]
        if not missing:
            return
        if time.monotonic() > deadline:
            raise ConfigError(f"other jobs kept Ray's resources for {PLACEMENT_SECONDS} s: the run needs {missing[0]}")
        if not announced:
            print(f"waiting for other jobs on this Ray: the run needs {missing[0]}", flush=True)
            announced = True
        time.sleep(1)


def build_pipeline(config: RunConfig, run_dir: Path, device: str) -> Pipeline:
    """Create all actors and load all models; Ray must be running.

    Raises:
        ray.exceptions.RayError: An actor failed to start.
    """
    args = to_openrlhf_args(config, run_dir)
    strategy = _make_strategy(args, device)
    shared = _reserve_shared(args)
    allocation_config = to_allocation_config(config.coba, config.train.seed)
    allocator = ray.remote(CapabilityAllocator).remote(allocation_config, to_revisits(config.coba, config.train.seed))
    engines = create_engines(args, shared if args.train.colocate_all else None)
    policy = _create_group(args, args.actor, PolicyActor, shared)
    reference = _create_group(args, args.ref, ReferenceActor, shared) if args.algo.kl.init_coef > 0 else None
    trainer = ray.remote(CobaTrainer).remote(
        strategy, policy, reference, engines, allocator, allocation_config, str(run_dir)
    )
    # Everything is under way at once; the trainer reads the data first, so bad data ends the run early.
    num_steps = ray.get(trainer.num_optimizer_steps.remote())
    pretrain = args.actor.model_name_or_path
    loading = policy.async_init_model_from_pretrained(strategy, pretrain, num_steps, engines)
    loading += use_scorer(engines, config)
    if reference is not None:
        loading += reference.async_init_model_from_pretrained(strategy, pretrain)
    ray.get(loading)
    return Pipeline(trainer, allocator, policy, reference, engines)


def run(config: RunConfig, run_dir: Path, device: str, show: Callable[[Report], None]) -> None:
    """The whole job: build, train, save the model. Every wait ends when an actor fails."""
    pipeline = build_pipeline(config, run_dir, device)
    try:
        for report in pipeline.fit():
            show(report)
        pipeline.save_model()
    finally:
        pipeline.close()


def use_scorer(engines: list[ray.actor.ActorHandle], config: RunConfig) -> list[ray.ObjectRef]:
    """Give every engine the scorer of the configuration; none to agents, which score by themselves."""
    if config.train.agent_func_path:
        return []
    spec = ScorerSpec(
        config.coba.verifier,
        config.coba.verifier_timeout,
        tuple(reward_urls(config)),
        config.coba.verifier_of,
        config.coba.verifier_memory_mb,
        config.coba.verifier_workers,
        config.coba.verifier_tolerance,
    )
    return [engine.use_scorer.remote(spec) for engine in engines]


def _make_strategy(args: SimpleNamespace, device: str):
    if device == "cuda":
        return get_strategy(args)
    import openrlhf.utils.deepspeed as upstream

    from coba_openrlhf.device.deepspeed_strategy import CpuDeepspeedStrategy

    with class_replaced(upstream, "DeepspeedStrategy", CpuDeepspeedStrategy):
        return get_strategy(args)


def _reserve_shared(args: SimpleNamespace) -> PlacementGroup | None:
    """One placement group for models that share GPUs, as OpenRLHF lays it out."""
    if not (args.train.colocate_all or args.train.colocate_actor_ref):
        return None
    group = placement_group(
        [{"GPU": 1, "CPU": 1}] * (args.actor.num_nodes * args.actor.num_gpus_per_node), strategy="PACK"
    )
    ray.get(group.ready(), timeout=PLACEMENT_SECONDS)
    return group


def create_engines(args: SimpleNamespace, shared: PlacementGroup | None) -> list[ray.actor.ActorHandle]:
    """Rollout engines with GPUs of their own, or those of the placement group ``shared``."""
    with class_replaced(vllm_engine, "RolloutRayActor", ray.remote(RolloutEngine)):
        return vllm_engine.create_vllm_engines(
            args.vllm.num_engines,
            args.vllm.tensor_parallel_size,
            args.actor.model_name_or_path,
            args.train.seed,
            args.train.full_determinism_enable,
            args.vllm.enable_prefix_caching,
            args.vllm.enforce_eager,
            args.data.max_len,
            shared,
            args.vllm.gpu_memory_utilization,
            args.vllm.enable_sleep,
            "processed_logprobs" if args.algo.advantage.is_correction_level != "off" else None,
            agent_func_path=args.train.agent_func_path,
        )


def _create_group(args: SimpleNamespace, ranks: SimpleNamespace, actor: type, shared: PlacementGroup | None):
    return RayActorGroup(
        ranks.num_nodes,
        ranks.num_gpus_per_node,
        ray.remote(num_gpus=1)(actor),
        pg=shared,
        num_gpus_per_actor=0.2 if shared else 1,
        duplicate_actors=args.ds.ring_attn_size * args.ds.tensor_parallel_size,
    )
