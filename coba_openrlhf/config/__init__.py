"""Typed configuration; loads no torch, ray, vllm, deepspeed or openrlhf."""

from .error import ConfigError
from .rules import check
from .run_config import RunConfig, flatten, load_config, to_yaml

__all__ = ["ConfigError", "RunConfig", "check", "flatten", "load_config", "to_yaml"]
