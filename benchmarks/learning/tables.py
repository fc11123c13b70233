"""Which rules and regimes a table compares."""

from dataclasses import dataclass, replace

from .rules import Rule
from .training import Regime

# The first rule of a table is what the others are compared with.
UNIFORM = Rule("uniform", {"strategy": "uniform"})
POSTERIOR = {"pass_rate_source": "posterior", "pass_rate_decay": 0.95}

MIXEDHARD = {"strategy": "mixedhard", **POSTERIOR}
# Estimates are remembered longer for choosing prompts than for budgets: a prompt comes round every 8 to 16 steps.
REMEMBERED = {"pass_rate_source": "posterior", "pass_rate_decay": 0.98}

COBA = Rule("coba")
COBA_BY_PROMPT = Rule("coba, prompt weights", weighting="prompt")
MIXEDHARD_BY_PROMPT = Rule("mixedhard, prompt weights", MIXEDHARD, weighting="prompt")
POSTERIOR_MIXEDHARD = Rule("mixedhard", MIXEDHARD)
REVISIT = Rule("revisit", {"strategy": "uniform", **REMEMBERED}, revisit={})
PROBED = {**MIXEDHARD, "pass_rate_source": "probe"}
PROBE = Rule("mixedhard, probe", PROBED)
REVISIT_AND_PROBE = Rule("revisit, mixedhard, probe", {**PROBED, "pass_rate_decay": 0.98}, revisit={})

RULES = (
    UNIFORM,
    COBA,
    COBA_BY_PROMPT,
    Rule("coba_released", {"strategy": "coba_released"}),
    Rule("knapsack", {"strategy": "knapsack"}),
    Rule("reinforce_ada", {"strategy": "reinforce_ada"}),
    Rule("hora", {"strategy": "hora"}),
    Rule("vip", {"strategy": "vip"}),
    Rule("gvm", {"strategy": "gvm"}),
    Rule("mixed", {"strategy": "mixed", **POSTERIOR}),
    MIXEDHARD_BY_PROMPT,
    PROBE,
    REVISIT,
    REVISIT_AND_PROBE,
    Rule("revisit, mixedhard, prompt weights", MIXEDHARD, "prompt", revisit={}),
    Rule("revisit, coba, prompt weights", REMEMBERED, "prompt", revisit={}),
)
# Compared at 4 rollouts only, so that all tables take less than three hours of two cores.
VARIANTS = (
    Rule("coba, posterior", POSTERIOR),
    Rule("coba, cap 2n", max_share=2.0),
    Rule("static", {"strategy": "static"}),
    Rule("linear_decay", {"strategy": "linear_decay"}),
    Rule("explore_then_exploit", {"strategy": "explore_then_exploit"}),
    POSTERIOR_MIXEDHARD,
    Rule("even revisit", {"strategy": "uniform", **REMEMBERED}, revisit={"sharpness": 0}),
)
# At 16 rollouts without rules that gained nothing at both 4 and 8, for the same three hours.
LARGE_GROUPS = (
    UNIFORM,
    COBA,
    COBA_BY_PROMPT,
    Rule("coba_released", {"strategy": "coba_released"}),
    Rule("reinforce_ada", {"strategy": "reinforce_ada"}),
    Rule("hora", {"strategy": "hora"}),
    Rule("mixed", {"strategy": "mixed", **POSTERIOR}),
    POSTERIOR_MIXEDHARD,
    PROBE,
    REVISIT,
    REVISIT_AND_PROBE,
)
CURVES = {rule.name for rule in (UNIFORM, COBA, COBA_BY_PROMPT, MIXEDHARD_BY_PROMPT, PROBE, REVISIT)} | {
    "knapsack",
    "revisit, mixedhard, prompt weights",
}
# What in the published rule makes it lose or win.
CAUSES = (
    UNIFORM,
    COBA,
    COBA_BY_PROMPT,
    Rule("coba, cap 2n", max_share=2.0),
    Rule("coba, cap 4n", max_share=4.0),
    Rule("coba, at least n/2", min_share=0.5),
    Rule("coba, cap 2n, at least n/2", min_share=0.5, max_share=2.0),
    Rule("coba, tau 0.5, kappa 4", {"tau": 0.5, "kappa": 4.0}),
    Rule("coba, tau 0.5", {"tau": 0.5}),
    Rule("coba, kappa 4", {"kappa": 4.0}),
    Rule("coba, posterior", POSTERIOR),
    Rule("coba, posterior, optimism 1", {**POSTERIOR, "optimism": 1.0}),
)
HALF = (
    UNIFORM,
    *(
        replace(rule, name=f"{rule.name}, half", rollouts=0.5)
        for rule in (UNIFORM, COBA, COBA_BY_PROMPT, MIXEDHARD_BY_PROMPT, PROBE, REVISIT)
    ),
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

    @property
    def drawn(self) -> list[str]:
        """Rules whose curves are drawn: more than these are no longer told apart."""
        names = [rule.name for rule in self.rules]
        return [name for name in names if name in CURVES] if len(names) > 8 else names


# The published ratio of prompts to rollouts in miniature: the same 2,048 prompts, and as many rollouts in all.
LARGE_BATCHES = tuple(
    Regime(f"{count} prompts", "mode_2048", 16, 8192 // count, num_prompts=count) for count in (32, 256, 512)
)
TABLES = {
    "n4": Table("Budget rules, 4 rollouts per prompt", regimes(4, 200), RULES + VARIANTS),
    "n8": Table("Budget rules, 8 rollouts per prompt", regimes(8, 120), RULES),
    "n16": Table("Budget rules, 16 rollouts per prompt", regimes(16, 80), LARGE_GROUPS),
    "half": Table("Half the rollouts against uniform with 8", regimes(8, 120), HALF),
    "causes": Table(
        "What makes coba lose or win, 8 rollouts per prompt",
        tuple(regime for regime in regimes(8, 120) if regime.name in ("saturated", "ladder", "recall")),
        CAUSES,
    ),
    "batches": Table(
        "Small and large batches, 16 rollouts per prompt",
        LARGE_BATCHES,
        (UNIFORM, COBA, COBA_BY_PROMPT, POSTERIOR_MIXEDHARD, PROBE, REVISIT),
    ),
}

# Learning rates are chosen per rule and regime, on seeds that no table reports.
LEARNING_RATES = (5e-4, 1e-3)
TUNING_SEEDS = tuple(range(1000, 1008))
SEEDS = tuple(range(16))
