"""Whether a replay of the run's own settings gives the budgets that were logged."""

# Legend: P = prompts of a step.

from dataclasses import dataclass

import numpy as np

from .log import Log
from .replayed import Replayed
from .rule import RunOptions


@dataclass(frozen=True)
class Reproduction:
    """Logged against replayed budgets.

    Attributes:
        num_steps: Steps of the log.
        num_equal: Those whose budgets are the same for every prompt.
        first_different: Number of the first other step; None if there is none.
        num_prompts: Prompts of that step.
        num_estimates: Those of them whose pass-rate estimates differ; if none, only the rule differs.
        num_forgotten: Those of them that had a history by the log, and none in the run.
        num_remembered: Those that had a history in the run, and none by the log.
    """

    num_steps: int
    num_equal: int
    first_different: int | None = None
    num_prompts: int = 0
    num_estimates: int = 0
    num_forgotten: int = 0
    num_remembered: int = 0

    @property
    def is_exact(self) -> bool:
        """Whether every budget is reproduced."""
        return self.num_equal == self.num_steps


def compare(log: Log, own: Replayed) -> Reproduction:
    """Compare bit for bit."""
    pairs = list(zip(log.steps, own.budgets, strict=True))
    different = [i for i, (step, budget_P) in enumerate(pairs) if not np.array_equal(step.budget_P, budget_P)]
    num_equal = len(pairs) - len(different)
    if not different:
        return Reproduction(len(pairs), num_equal)
    first = different[0]
    step, seen_P = log.steps[first], own.seen[first]
    return Reproduction(
        num_steps=len(pairs),
        num_equal=num_equal,
        first_different=step.step,
        num_prompts=len(step.prompt_ids),
        num_estimates=int((step.pass_rate_P != own.pass_rates[first]).sum()),
        num_forgotten=int((seen_P & ~step.known_P).sum()),
        num_remembered=int((step.known_P & ~seen_P).sum()),
    )


def explain(reproduction: Reproduction, log: Log, options: RunOptions) -> list[str]:
    """The result in words, and what is behind a difference, one line each."""
    r, counts = reproduction, f"{reproduction.num_equal} of {reproduction.num_steps} steps"
    if r.is_exact:
        return [f"The logged rule is reproduced in {counts}, bit for bit."]
    lines = [f"The logged rule is NOT reproduced: the same budgets in {counts}."]
    where = f"  Step {r.first_different} is the first that differs: "
    if r.num_forgotten:
        what = f"{r.num_forgotten} of {r.num_prompts} prompts had no history although the log has one of them."
        why = "  So a restart forgot them: the data set lacked them for a while, or the checkpoint was of another run."
        return [*lines, where + what, why]
    if r.num_remembered:
        what = f"{r.num_remembered} of {r.num_prompts} prompts had a history that the log lacks."
        return [*lines, where + what, "  So the files of earlier steps are missing."]
    if r.num_estimates:
        lines.append(where + f"{r.num_estimates} of {r.num_prompts} estimates differ. It may be that")
    else:
        lines.append(where + "the estimates are the same and the budgets are not. It may be that")
    causes = []
    if log.steps[0].step > 1:
        causes.append(f"the log begins at step {log.steps[0].step}: what was learnt before is not known")
    if not log.is_contiguous:
        causes.append("steps of the log are missing")
    if log.missing or options.absent or options.unknown:
        causes.append("another version made the log, which had other rules or estimates")
    causes += [
        "an edited prompt or a checkpoint of other steps changed what was known at a restart",
        "config.yaml is not that of these steps, or the run's rule was a file that has been edited since",
    ]
    return lines + [f"  - {cause}" for cause in causes]
