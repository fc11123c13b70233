"""What differs where there is no CUDA: the same OpenRLHF, DeepSpeed and vLLM classes on a CPU.

``kind.py`` decides once, in the driver; the decision travels to every actor in an environment variable.
The rest of this folder is loaded only on a CPU. Nothing here edits an installed file, and nothing outside
this folder asks "CPU or GPU?" except through ``is_cpu()``.
"""

from .kind import DEVICE_VARIABLE, cpu_environment, device_kind, is_cpu

__all__ = ["DEVICE_VARIABLE", "cpu_environment", "device_kind", "is_cpu"]
