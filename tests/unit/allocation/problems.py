"""Problems for the tests of budget rules."""

# Legend: P = prompts.

import numpy as np

from coba_openrlhf.allocation import Estimates, Problem


def make_problem(
    pass_rates,
    total,
    low=2,
    high=128,
    *,
    success=None,
    failure=None,
    last_rates=None,
    num_tokens=None,
    norms=None,
    failure_rate=0.5,
    smoothed=None,
    failure_rates=None,
    seen=None,
    step=0,
):
    """A problem with sensible values for everything that is not given."""
    pass_rate_P = np.asarray(pass_rates, np.float64)
    num_prompts = len(pass_rate_P)
    smoothed = failure_rate if smoothed is None else smoothed

    def column(values, default_P):
        return np.array(default_P, np.float64) if values is None else np.asarray(values, np.float64)

    estimates = Estimates(
        pass_rate_P=pass_rate_P,
        success_P=column(success, 1 + 8 * pass_rate_P),
        failure_P=column(failure, 1 + 8 * (1 - pass_rate_P)),
        last_rate_P=column(last_rates, pass_rate_P),
        num_tokens_P=column(num_tokens, np.ones(num_prompts)),
        seen_P=np.full(num_prompts, True) if seen is None else np.asarray(seen, bool),
        version_P=np.zeros(num_prompts),
    )
    return Problem(
        estimates=estimates,
        total_budget=total,
        budget_min=low,
        budget_max=high,
        failure_rate=failure_rate,
        failure_rate_smoothed=smoothed,
        failure_rate_P=column(failure_rates, np.full(num_prompts, smoothed)),
        step=step,
        gradient_norm_P=column(norms, np.ones(num_prompts)),
    )


def random_problem(rng, lowest=1):
    """A small problem with random beliefs; some pass rates are exactly 0 or 1, some equal."""
    num_prompts = int(rng.integers(1, 8))
    low = lowest + int(rng.integers(0, 3))
    high = low + int(rng.integers(1, 25))
    total = int(rng.integers(num_prompts * low, num_prompts * high + 1))
    coarse_P = rng.integers(0, 5, num_prompts) / 4
    pass_rate_P = np.where(rng.uniform(size=num_prompts) < 0.6, rng.uniform(size=num_prompts), coarse_P)
    return make_problem(
        pass_rate_P,
        total,
        low,
        high,
        success=rng.uniform(0.02, 20, num_prompts),
        failure=rng.uniform(0.02, 20, num_prompts),
        last_rates=rng.integers(0, 5, num_prompts) / 4,
        num_tokens=rng.uniform(1, 4000, num_prompts),
        norms=rng.uniform(0.1, 3, num_prompts),
        failure_rate=float(rng.uniform()),
        smoothed=float(rng.uniform()),
        failure_rates=rng.uniform(size=num_prompts),
        step=int(rng.integers(0, 150)),
    )
