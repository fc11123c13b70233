"""Packaging. The core (allocation and configuration) is light; the training stack comes by extras."""

import re
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent


def pins(name: str, *, but: tuple[str, ...] = ()) -> list[str]:
    """The requirements of ``requirements/<name>.txt``, without the packages named in ``but``."""
    lines = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    wanted = [line.strip() for line in lines if line.strip() and not line.startswith(("#", "-"))]
    return [line for line in wanted if re.split(r"[\[=<>! ]", line, maxsplit=1)[0].lower() not in but]


DEV = ["hypothesis", "import-linter", "mypy", "pytest", "pytest-timeout", "ruff"]

setup(
    name="coba_openrlhf",
    version=re.search(r'__version__ = "(.+)"', (ROOT / "coba_openrlhf/__init__.py").read_text()).group(1),
    description="Capability-oriented rollout budgets (CoBA-RL) for GRPO on OpenRLHF, Ray, vLLM and DeepSpeed",
    long_description=(ROOT / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.11",
    packages=find_packages(include=["coba_openrlhf", "coba_openrlhf.*"]),
    install_requires=["numpy>=1.26", "numba>=0.60", "jsonargparse>=4.40", "docstring-parser>=0.16", "PyYAML>=6.0"],
    extras_require={
        "cpu": ["torch==2.13.0", *pins("cpu", but=tuple(DEV))],
        "gpu": pins("gpu"),
        # Not in the pinned lists: one of its dependencies is compiled on installation.
        "reasoning-gym": ["reasoning-gym==0.1.25"],
        "dev": DEV,
    },
)
