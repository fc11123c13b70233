"""Whether a step could be spent on a few prompts."""

# Beyond this share of a step, one prompt's group is most of an optimiser batch.
CONCENTRATED = 0.2


def concentration_warning(total_budget: int, budget_min: int, num_prompts: int, budget_max: int) -> str | None:
    """What to tell a user whose bounds let one prompt take more than a fifth of a step; None if they do not."""
    most = min(budget_max, total_budget - (num_prompts - 1) * budget_min)
    if most <= CONCENTRATED * total_budget:
        return None
    within = int(CONCENTRATED * total_budget)
    # Few prompts cannot share a step without taking more each: then no maximum helps.
    is_possible = within >= budget_min and num_prompts * within >= total_budget
    return (
        f"budget_max lets one prompt have {most} of {total_budget} rollouts, {most / total_budget:.0%} of a step "
        f"(more than {CONCENTRATED:.0%}): such a step learns from a few prompts only"
        + (f"; {within} would keep it within" if is_possible else "")
    )
