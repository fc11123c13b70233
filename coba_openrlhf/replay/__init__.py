"""What other budget rules would have done in a run that is over: tuning without training.

    python -m coba_openrlhf.replay runs/20260101-120000 --strategy knapsack --strategy coba --coba.tau 7

Needs numpy, numba, pyarrow and matplotlib, none of the training stack. See ``docs/replay.md``.
"""

from .belief import Belief, compute_beliefs, fit_prior
from .error import ReplayError
from .log import Log, read_log
from .logged_step import LoggedStep
from .replayed import Replayed, replay, replay_log
from .rule import Family, Request, Rule, RunOptions, make_families, read_options
from .signal import chance_of_signal

__all__ = [
    "Belief",
    "Family",
    "Log",
    "LoggedStep",
    "ReplayError",
    "Replayed",
    "Request",
    "Rule",
    "RunOptions",
    "chance_of_signal",
    "compute_beliefs",
    "fit_prior",
    "make_families",
    "read_log",
    "read_options",
    "replay",
    "replay_log",
]
