"""Budget rules by name: one file each."""

from collections.abc import Mapping
from dataclasses import asdict
from types import MappingProxyType

from ..config import AllocationConfig, is_rule_file
from .base import GreedyStrategy, ProportionalStrategy, Strategy
from .coba import Coba
from .coba_released import CobaReleased
from .duet import Duet
from .explore_then_exploit import ExploreThenExploit
from .gvm import Gvm
from .hora import Hora
from .knapsack import Knapsack
from .last_outcome import LastOutcome
from .linear_decay import LinearDecay
from .mixed import Mixed
from .mixedhard import MixedHard
from .reinforce_ada import ReinforceAda
from .rule_file import load_rule, rule_identity
from .static import Static
from .uniform import Uniform
from .vip import Vip

STRATEGIES: Mapping[str, type[Strategy]] = MappingProxyType(
    {
        "uniform": Uniform,
        "coba": Coba,
        "coba_released": CobaReleased,
        "static": Static,
        "linear_decay": LinearDecay,
        "explore_then_exploit": ExploreThenExploit,
        "knapsack": Knapsack,
        "vip": Vip,
        "reinforce_ada": ReinforceAda,
        "gvm": Gvm,
        "hora": Hora,
        "duet": Duet,
        "mixed": Mixed,
        "mixedhard": MixedHard,
        "last_outcome": LastOutcome,
    }
)


def make_strategy(config: AllocationConfig) -> Strategy:
    """The rule that ``config.strategy`` names.

    Raises:
        ValueError: A rule file that does not exist or defines no such rule.
    """
    rule = load_rule(config.strategy) if is_rule_file(config.strategy) else STRATEGIES[config.strategy]
    return rule(config)


def saved_settings(config: AllocationConfig) -> dict[str, object]:
    """The settings as a saved state holds them, JSON-able; a rule file by its content instead of its place."""
    settings = asdict(config)
    if is_rule_file(config.strategy):
        settings["strategy"] = rule_identity(config.strategy)
    return settings


__all__ = ["STRATEGIES", "GreedyStrategy", "ProportionalStrategy", "Strategy", "make_strategy", "saved_settings"]
