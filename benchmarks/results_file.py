"""``benchmarks/results.md``: one section per benchmark, each rewritten by its own run."""

import re
from pathlib import Path

RESULTS = Path(__file__).with_name("results.md")


def write_section(title: str, text: str, module: str) -> None:
    """Replace or append the section ``title``."""
    section = f"## {title}\n\n{text.strip()}\n\nMade by `python -m {module} --write`.\n"
    old = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else "# Benchmark results\n"
    pattern = re.compile(rf"^## {re.escape(title)}\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
    new, replaced = pattern.subn(lambda _: section + "\n", old)
    if not replaced:
        new = f"{old.rstrip()}\n\n{section}"
    RESULTS.write_text(new.rstrip() + "\n", encoding="utf-8")
