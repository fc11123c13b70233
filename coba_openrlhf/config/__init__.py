"""Typed configuration; loads no torch, ray, vllm, deepspeed or openrlhf."""

from .rules import check
from .run_config import ConfigError, RunConfig, flatten, load_config, to_yaml

__all__ = ["ConfigError", "RunConfig", "check", "flatten", "load_config", "to_yaml"]
