"""Argument checks shared by the doors of this package; every message says argument, rule and value."""

# Legend: N = rows of the argument.

from collections.abc import Iterable, Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

# Wide enough for every sensible run, narrow enough that no gain under- or overflows to inf or NaN.
SMALLEST, LARGEST = 1e-9, 1e9
# Sums of budgets stay far inside 64 bits, also in compiled code that cannot notice an overflow.
LARGEST_INT = 10**12


def check_real(name: str, value: object, interval: str, low: float = SMALLEST, high: float = LARGEST) -> float:
    """``value`` as a float.

    Args:
        name: What the user calls the value.
        value: Any object; bools and strings are not numbers here.
        interval: Brackets such as ``"[]"`` or ``"(]"``: which ends of ``low .. high`` belong to it.
        low: Lower end.
        high: Upper end.

    Raises:
        ValueError: ``value`` is not a number in the interval.
    """
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    rule = f"a number in {interval[0]}{low:g}, {high:g}{interval[1]}"
    if (
        not is_number
        or not low <= value <= high  # type: ignore[operator]  # numbers only; NaN fails both comparisons
        or (interval[0] == "(" and value == low)
        or (interval[1] == ")" and value == high)
    ):
        raise ValueError(f"{name} must be {rule}, got {value!r}")
    return float(value)  # type: ignore[arg-type]


def check_int(name: str, value: object, low: int, high: int = LARGEST_INT) -> int:
    """``value`` as an int.

    Raises:
        ValueError: ``value`` is not an integer (bools are not), or not in [low, high].
    """
    is_int = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_int or value < low:  # type: ignore[operator]
        raise ValueError(f"{name} must be an integer >= {low}, got {value!r}")
    if value > high:  # type: ignore[operator]
        raise ValueError(f"{name} must be an integer in [{low}, {high:,}], got {value!r}")
    return int(value)  # type: ignore[call-overload,no-any-return]


def check_choice(name: str, value: object, choices: Iterable[str]) -> None:
    """Raise ValueError unless ``value`` is one of ``choices``."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}")


def check_bounds(budget_min: object, budget_max: object, lowest: int) -> tuple[int, int]:
    """``(budget_min, budget_max)`` as ints.

    Raises:
        ValueError: One is not an integer >= ``lowest``, or the minimum exceeds the maximum.
    """
    budget_min = check_int("budget_min", budget_min, lowest)
    budget_max = check_int("budget_max", budget_max, lowest)
    if budget_min > budget_max:
        raise ValueError(f"budget_min must be <= budget_max, got {budget_min} > {budget_max}")
    return budget_min, budget_max


def check_total(
    total_budget: object, num_prompts: int, budget_min: int, budget_max: int, min_name: str = "budget_min"
) -> int:
    """``total_budget`` as an int.

    Raises:
        ValueError: It is not an integer, or no budgets within the bounds sum to it. ``min_name`` says what the
            minimum is.
    """
    total = check_int("total_budget", total_budget, 0)
    lowest, highest = num_prompts * budget_min, num_prompts * budget_max
    if total < lowest:
        raise ValueError(
            f"total_budget must be >= prompts * {min_name}, got {total} < {num_prompts} * {budget_min} = {lowest}"
        )
    if total > highest:
        raise ValueError(
            f"total_budget must be <= prompts * budget_max, got {total} > {num_prompts} * {budget_max} = {highest}"
        )
    return total


def check_unit_interval(name: str, values: object, dtype_kinds: str) -> NDArray[Any]:
    """``values`` as an array ``[N]`` in the dtype it came in, N >= 1, every entry in [0, 1].

    Args:
        name: What the user calls the array.
        values: Anything numpy can turn into an array.
        dtype_kinds: Numpy kind characters that are accepted, e.g. ``"iuf"``.

    Raises:
        ValueError: Not one-dimensional, empty, of another dtype, not finite, or outside [0, 1].
    """
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be a one-dimensional array of numbers, got {values!r}") from error
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {array.shape}")
    if array.size == 0:
        raise ValueError(f"{name} must not be empty, got shape {array.shape}")
    if array.dtype.kind not in dtype_kinds:
        raise ValueError(f"{name} must hold real numbers, got dtype {array.dtype}: {values!r}")
    for rule, valid_N in (("be finite", np.isfinite(array)), ("lie in [0, 1]", (array >= 0) & (array <= 1))):
        if not valid_N.all():
            row = int(np.argmin(valid_N))
            raise ValueError(f"{name} must {rule}, got {array[row]} at index {row}")
    return array


def check_column(name: str, values: object, num_rows: int, row: str, *, zero: bool) -> NDArray[np.float64]:
    """``values`` as float64 ``[N]``, N = num_rows.

    Args:
        name: What the user calls the array.
        values: Anything numpy can turn into an array.
        num_rows: Entries it must have.
        row: What an entry belongs to, for the message.
        zero: Whether an entry may be 0; all others lie in (0, 1e9].

    Raises:
        ValueError: Of another shape or type, or an entry out of range.
    """
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be a one-dimensional array of numbers, got {values!r}") from error
    if array.dtype.kind not in "iuf":
        raise ValueError(f"{name} must hold real numbers, got dtype {array.dtype}: {values!r}")
    if array.shape != (num_rows,):
        raise ValueError(f"{name} must have one entry per {row}, got shape {array.shape} for {num_rows}")
    array = array.astype(np.float64)
    valid_N = (array <= LARGEST) & ((array >= 0) if zero else (array > 0))
    if not valid_N.all():
        index = int(np.argmin(valid_N))
        rule = f"lie in {'[' if zero else '('}0, {LARGEST:g}]"
        raise ValueError(f"{name} must {rule}, got {array[index]} at index {index}")
    return array


def check_numbers(name: str, values: object, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """``values`` of a saved state as float64 of a shape.

    Raises:
        ValueError: Of another shape or type, not finite, or negative.
    """
    rule = f"{name} must be finite numbers >= 0 of shape {shape}"
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{rule}, got {values!r}") from error
    if array.size == 0 and 0 in shape:
        return np.zeros(shape)  # lists have lost the further lengths of an empty array
    if array.shape != shape or array.dtype.kind not in "iuf":
        raise ValueError(f"{rule}, got shape {array.shape} and dtype {array.dtype}")
    array = array.astype(np.float64)
    if not np.isfinite(array).all() or (array < 0).any():
        raise ValueError(f"{rule}, got values in {array.min()} .. {array.max()}")
    return array


def check_saved_ids(name: str, prompt_ids: object) -> list[str | int]:
    """Prompt ids of a saved state, possibly none.

    Raises:
        ValueError: No list of unique str or int.
    """
    if not isinstance(prompt_ids, list | tuple):
        raise ValueError(f"{name} must be a list, got {prompt_ids!r}")
    ids = check_prompt_ids(prompt_ids) if prompt_ids else []
    if len(set(ids)) < len(ids):
        raise ValueError(f"{name} must be unique, got repeated ids")
    return ids


def check_prompt_ids(prompt_ids: Iterable[object]) -> list[str | int]:
    """``prompt_ids`` as a list of Python str or int, so that they survive JSON with their type.

    Raises:
        ValueError: Not a collection of str or int (bools are neither), or empty.
    """
    if isinstance(prompt_ids, str) or not isinstance(prompt_ids, Iterable):
        raise ValueError(f"prompt_ids must be a sequence of str or int, got {prompt_ids!r}")
    ids = [prompt_id.item() if isinstance(prompt_id, np.generic) else prompt_id for prompt_id in prompt_ids]
    if not ids:
        raise ValueError("prompt_ids must not be empty, got 0 ids")
    if not set(map(type, ids)) <= {str, int}:
        wrong = next(prompt_id for prompt_id in ids if type(prompt_id) not in (str, int))
        raise ValueError(f"prompt_ids must be str or int, got {wrong!r}")
    return cast(list[str | int], ids)


def check_keys(name: str, state: Mapping[str, object], keys: Iterable[str]) -> None:
    """Raise ValueError unless ``state`` is a mapping with every key of ``keys``."""
    if not isinstance(state, Mapping):
        raise ValueError(f"{name} must be a mapping, got {state!r}")
    missing = [key for key in keys if key not in state]
    if missing:
        raise ValueError(f"{name} must have the keys {', '.join(keys)}, got none for {', '.join(missing)}")
