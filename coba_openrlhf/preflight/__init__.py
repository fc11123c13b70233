"""Checks that need the machine or the files, made before any model is loaded."""

from .folders import check_folders, check_run_dir, write_config
from .machine import check_machine
from .placement import describe, gpus_needed

__all__ = ["check_folders", "check_machine", "check_run_dir", "describe", "gpus_needed", "write_config"]
