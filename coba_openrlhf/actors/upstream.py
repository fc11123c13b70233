"""OpenRLHF's actor classes without Ray's wrapper.

Upstream decorates its actors with ``@ray.remote`` where they are defined, and a Ray actor class cannot be
inherited from. The plain class is kept inside the wrapper; this module is the only place that takes it out.
"""

import contextlib
from collections.abc import Iterator
from types import ModuleType

import coba_openrlhf.device.ready  # noqa: F401  isort: skip
from openrlhf.trainer.ray import launcher, ppo_actor, vllm_engine


def plain_class(actor_class: object) -> type:
    """The class under a Ray actor class."""
    return actor_class.__ray_metadata__.modified_class  # type: ignore[attr-defined]


PolicyModelActor = plain_class(ppo_actor.PolicyModelActor)
ReferenceModelActor = plain_class(launcher.ReferenceModelActor)
RolloutRayActor = plain_class(vllm_engine.RolloutRayActor)


@contextlib.contextmanager
def class_replaced(module: ModuleType, name: str, replacement: object) -> Iterator[None]:
    """Let upstream code that names a class of its own module use ours, while the block runs.

    Upstream's constructors name their collaborators directly (no parameter, no registry). Replacing the name
    for the duration of one call keeps their code in use instead of a copy of it.
    """
    original = getattr(module, name)
    setattr(module, name, replacement)
    try:
        yield
    finally:
        setattr(module, name, original)
