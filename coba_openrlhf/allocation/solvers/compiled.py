"""Compilation of the solvers' inner loops."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

from numba import njit  # type: ignore[import-untyped]

_Args = ParamSpec("_Args")
_Result = TypeVar("_Result")


def compiled(function: Callable[_Args, _Result]) -> Callable[_Args, _Result]:
    """Compile with an on-disk cache, or without where no cache location is writable (read-only images)."""
    try:
        return cast(Callable[_Args, _Result], njit(cache=True)(function))
    except RuntimeError as error:
        if "no locator available" not in str(error):
            raise
        return cast(Callable[_Args, _Result], njit(function))
