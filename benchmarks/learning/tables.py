"""Which rules and regimes a table compares."""

from dataclasses import dataclass

from .rules import Rule
from .training import Regime

# The first rule of a table is what the others are compared with.
UNIFORM = Rule("uniform", {"strategy": "uniform"})
POSTERIOR = {"pass_rate_source": "posterior", "pass_rate_decay": 0.95}

PUBLISHED = (
    UNIFORM,
    Rule("coba"),
    Rule("coba, prompt weights", weighting="prompt"),
    Rule("coba, posterior", POSTERIOR),
    Rule("coba, cap 2n", max_share=2.0),
    Rule("coba_released", {"strategy": "coba_released"}),
    Rule("static", {"strategy": "static"}),
    Rule("linear_decay", {"strategy": "linear_decay"}),
    Rule("explore_then_exploit", {"strategy": "explore_then_exploit"}),
    Rule("knapsack", {"strategy": "knapsack"}),
    Rule("reinforce_ada", {"strategy": "reinforce_ada"}),
    Rule("hora", {"strategy": "hora"}),
    Rule("vip", {"strategy": "vip"}),
    Rule("gvm", {"strategy": "gvm"}),
    Rule("mixed", {"strategy": "mixed", **POSTERIOR}),
    Rule("mixedhard", {"strategy": "mixedhard", **POSTERIOR}),
    Rule("mixedhard, prompt weights", {"strategy": "mixedhard", **POSTERIOR}, weighting="prompt"),
    Rule("mixedhard, probe", {"strategy": "mixedhard", **POSTERIOR, "pass_rate_source": "probe"}),
)


def regimes(group_size: int, steps: int) -> tuple[Regime, ...]:
    """The six regimes at a mean group size."""
    return (
        Regime("mode", "mode", group_size, steps),
        Regime("fresh", "mode", group_size, steps, is_fresh=True),
        Regime("saturated", "saturated", group_size, steps),
        Regime("ladder", "ladder", group_size, steps),
        Regime("chain", "chain", group_size, steps),
        Regime("recall", "recall", group_size, steps),
    )


@dataclass(frozen=True)
class Table:
    """A comparison.

    Attributes:
        title: Heading.
        regimes: Where.
        rules: What; the first is the baseline.
    """

    title: str
    regimes: tuple[Regime, ...]
    rules: tuple[Rule, ...]


TABLES = {
    "n4": Table("Budget rules, 4 rollouts per prompt", regimes(4, 200), PUBLISHED),
    "n8": Table("Budget rules, 8 rollouts per prompt", regimes(8, 150), PUBLISHED),
    "n16": Table("Budget rules, 16 rollouts per prompt", regimes(16, 100), PUBLISHED),
}

# Learning rates are chosen per rule and regime, on seeds that no table reports.
LEARNING_RATES = (5e-4, 1e-3)
TUNING_SEEDS = tuple(range(1000, 1008))
SEEDS = tuple(range(16))
