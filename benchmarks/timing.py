"""Side by side: several solvers measured in turn, in processor time of the calling thread.

A busy machine takes the processor away from long calls and leaves short ones alone: wall time would make fast solvers
look better than they are. On an idle machine both times are the same.
"""

import platform
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import thread_time
from typing import Any


@dataclass
class Contestant:
    """One way to do the work.

    Attributes:
        run: Does it once and returns the result.
        calls: Calls per round.
        every: Takes part in every ``every``-th round.
        seconds: Processor time of every call.
        result: Of the last call.
    """

    run: Callable[[], Any]
    calls: int = 1
    every: int = 1
    seconds: list[float] = field(default_factory=list)
    result: Any = None

    @property
    def median(self) -> float:
        """Median processor time of a call, in seconds."""
        return statistics.median(self.seconds)


def interleave(contestants: Mapping[str, Contestant], rounds: int) -> None:
    """Run all contestants in turn, ``rounds`` times; each round starts with another one.

    ``seconds`` and ``result`` of the contestants are modified in place. Compile first: every call counts.
    """
    order = list(contestants.values())
    for turn in range(rounds):
        start = turn % len(order)
        for contestant in order[start:] + order[:start]:
            if turn % contestant.every:
                continue
            for _ in range(contestant.calls):
                started = thread_time()
                contestant.result = contestant.run()
                contestant.seconds.append(thread_time() - started)


def cpu_name() -> str:
    """Model name where Linux tells it, else what ``platform`` knows."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
