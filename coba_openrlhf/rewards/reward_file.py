"""Rewards of a user's Python file."""

import asyncio
import importlib.util
import inspect
import traceback

from .scored import RewardError, Scored, scored_from, scored_from_list


class RewardFileScorer:
    """Scores by the ``reward_func`` of a file, one response at a time, in a thread of the engine's process.

    Two forms, told apart by the name of the first parameter: OpenRLHF's ``reward_func(queries, prompts, labels)``
    returns a dictionary with ``rewards``; ``reward_func(responses, prompts, labels)`` gets the responses alone and
    returns a list of scores in [0, 1].

    Raises:
        RewardError: The file cannot be loaded; with its traceback.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        try:
            spec = importlib.util.spec_from_file_location("reward_func", path)
            assert spec is not None and spec.loader is not None, path
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            self._reward_func = module.reward_func
        except Exception as error:
            raise RewardError(f"cannot load reward_func from {path}:\n{traceback.format_exc()}") from error
        self._takes_responses = takes_responses(self._reward_func)

    async def score(
        self, *, query: str, prompt: str, response: str, label: object, datasource: str = "default"
    ) -> Scored:
        """See ``Scorer``; the function runs in a thread so that generation goes on."""
        first = response if self._takes_responses else query
        try:
            result = await asyncio.to_thread(self._reward_func, [first], [prompt], [label])
        except Exception as error:
            raise RewardError(f"reward_func of {self._path} failed:\n{traceback.format_exc()}") from error
        return (scored_from_list if self._takes_responses else scored_from)(result, self._path)

    def close(self) -> None:
        """See ``Scorer``; nothing was started."""


def takes_responses(reward_func) -> bool:
    """Whether a reward function has the simple form, by its first parameter's name."""
    try:
        return next(iter(inspect.signature(reward_func).parameters), None) == "responses"
    except (TypeError, ValueError):  # a callable without a readable signature
        return False
