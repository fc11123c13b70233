"""Pass rates of prompts, estimated from what their rollouts have shown."""

from ..config import AllocationConfig
from .history import History
from .posterior import PosteriorHistory
from .rows import PromptId
from .window import WindowHistory


def make_history(config: AllocationConfig) -> History:
    """The source of estimates that ``config.pass_rate_source`` names; ``probe`` updates a posterior within a step."""
    if config.pass_rate_source == "window":
        return WindowHistory(config.pass_rate_window, config.unseen_pass_rate, config.prior_strength, config.optimism)
    return PosteriorHistory(config.pass_rate_decay, config.prior_strength, config.optimism)


__all__ = ["History", "PosteriorHistory", "PromptId", "WindowHistory", "make_history"]
