"""A warning when one prompt may have most of a step."""

import warnings

import pytest

from coba_openrlhf import AllocationConfig, Allocator
from coba_openrlhf.allocation import concentration_warning


@pytest.mark.parametrize(
    ("total", "low", "prompts", "high", "warned"),
    [
        (100, 2, 10, 20, False),  # exactly a fifth
        (100, 2, 10, 21, True),
        (100, 9, 10, 128, False),  # the others' minima leave 19
        (100, 8, 10, 128, True),  # ... and 28
        (8192, 2, 512, 128, False),
        (16, 2, 2, 8, True),
    ],
)
def test_more_than_a_fifth_is_told(total, low, prompts, high, warned):
    assert (concentration_warning(total, low, prompts, high) is not None) == warned


def test_message_shows_the_arithmetic():
    message = concentration_warning(100, 2, 10, 128)
    assert "82 of 100 rollouts, 82% of a step" in message and "20 would keep it within" in message


@pytest.mark.parametrize(("total", "low", "prompts", "high"), [(20, 2, 2, 12), (40, 9, 4, 13), (19, 2, 5, 8)])
def test_no_advice_that_cannot_be_followed(total, low, prompts, high):
    """Fewer than five prompts must have more than a fifth each, and so must five that do not divide the step."""
    message = concentration_warning(total, low, prompts, high)
    assert message is not None and "would keep" not in message


def test_allocate_warns_the_user_and_goes_on():
    allocator = Allocator(AllocationConfig())
    with pytest.warns(UserWarning, match="budget_max lets one prompt have 18 of 20 rollouts"):
        assert allocator.allocate(["a", "b"], 20).budget_P.sum() == 20
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Allocator(AllocationConfig(budget_max=8)).allocate(range(10), 40)
