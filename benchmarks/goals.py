"""A benchmark's command line, and what its run must reach."""

import argparse
import sys
from collections.abc import Callable

from benchmarks.results_file import write_section


class Goals:
    """What the run must reach; remembers what it has not."""

    def __init__(self) -> None:
        self.missed: list[str] = []

    def cell(self, name: str, reached: bool, text: str) -> str:
        """A table cell that says the goal and whether it was reached."""
        if not reached:
            self.missed.append(f"{name}: {text}")
        return f"{text}: {'reached' if reached else 'MISSED'}"


def run_benchmark(title: str, report: Callable[[Goals], str], module: str) -> None:
    """Print the report; with ``--write`` also make it a section of ``results.md``. Exit status 1 for a missed goal.

    Args:
        title: Heading of the section.
        report: Measures, and returns the section's text.
        module: What was run with ``python -m``.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=f"{title}, measured.")
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results.md")
    arguments = parser.parse_args()
    goals = Goals()
    text = report(goals)
    print(text, end="")
    if arguments.write:
        write_section(title, text, module)
    if goals.missed:
        sys.exit("goals missed: " + "; ".join(goals.missed))
