"""From ``--coba.*`` to the allocation library's own configuration."""

from coba_openrlhf.allocation import AllocationConfig

from .coba_options import CobaOptions


def to_allocation_config(options: CobaOptions) -> AllocationConfig:
    """The allocator's configuration.

    Raises:
        ValueError: A value is out of range; the message uses the library's field names.
    """
    return AllocationConfig(
        strategy=options.strategy,
        tau=options.tau,
        kappa=options.kappa,
        lambd=options.lambd,
        gamma=options.gamma,
        alpha_min=options.alpha_min,
        alpha_max=options.alpha_max,
        capability_window=options.capability_window,
        eps=options.eps,
        solver=options.solver,
        budget_min=options.budget.min,
        budget_max=options.budget.max,
        pass_rate_source=options.pass_rate.source,
        pass_rate_window=options.pass_rate.window,
        unseen_pass_rate=options.pass_rate.unseen,
        success_threshold=options.pass_rate.success_threshold,
    )
