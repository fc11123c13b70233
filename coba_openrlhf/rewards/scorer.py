"""From a configuration to the object that scores a response."""

import asyncio
import importlib.util
import traceback
from dataclasses import dataclass
from typing import Protocol

from .verifier_pool import VerifierPool


class RewardError(RuntimeError):
    """A reward function or server failed; the run stops instead of training on missing scores."""


@dataclass(frozen=True)
class ScorerSpec:
    """What scores responses.

    Attributes:
        verifier: Built-in verifier, used when ``remote_urls`` is empty.
        timeout: Its time limit per answer in seconds.
        remote_urls: One Python file with ``reward_func``, or reward server URLs.
    """

    verifier: str
    timeout: float
    remote_urls: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scored:
    """Reward and score of one response.

    Attributes:
        reward: What the advantage is computed from; None when the response could not be scored.
        score: Correctness in [0, 1], what pass rates are computed from; None with ``reward``.
    """

    reward: float | None
    score: float | None
    extra_logs: dict[str, float]


class Scorer(Protocol):
    """Scores one response."""

    async def score(self, *, query: str, prompt: str, response: str, label: object) -> Scored:
        """Score ``response`` (``query`` is prompt and response as decoded, special tokens included)."""
        ...

    def close(self) -> None:
        """End what the scorer has started."""
        ...


class VerifierScorer:
    """Scores by a built-in verifier."""

    def __init__(self, pool: VerifierPool) -> None:
        self._pool = pool

    async def score(self, *, query: str, prompt: str, response: str, label: object) -> Scored:
        """See ``Scorer``."""
        score = await self._pool.score(response, str(label))
        return Scored(score, score, {})

    def close(self) -> None:
        """See ``Scorer``; killed workers would leave their semaphores in /dev/shm."""
        self._pool.close()


class RewardFileScorer:
    """Scores by ``reward_func(queries, prompts, labels)`` of a user's file, as OpenRLHF calls it."""

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

    async def score(self, *, query: str, prompt: str, response: str, label: object) -> Scored:
        """See ``Scorer``; the function runs in a thread so that generation goes on."""
        try:
            result = await asyncio.to_thread(self._reward_func, [query], [prompt], [label])
        except Exception as error:
            raise RewardError(f"reward_func of {self._path} failed:\n{traceback.format_exc()}") from error
        return _scored_from(result, self._path)

    def close(self) -> None:
        """See ``Scorer``; nothing was started."""


class RewardServerScorer:
    """Scores by OpenRLHF's reward-server protocol."""

    def __init__(self, urls: tuple[str, ...]) -> None:
        import coba_openrlhf.device.ready  # noqa: F401  isort: skip
        from openrlhf.utils.agent import SingleTurnAgentExecutor

        self._urls = urls
        self._client = SingleTurnAgentExecutor(list(urls))

    async def score(self, *, query: str, prompt: str, response: str, label: object) -> Scored:
        """See ``Scorer``; upstream's client retries five times."""
        try:
            results = await self._client._fetch_rewards_via_http([query], [prompt], [label])
        except Exception as error:
            raise RewardError(f"reward server {', '.join(self._urls)} failed: {error}") from error
        return _scored_from(results[0], ", ".join(self._urls))

    def close(self) -> None:
        """See ``Scorer``; nothing was started."""


def make_scorer(spec: ScorerSpec) -> Scorer:
    """The scorer that ``spec`` describes."""
    if not spec.remote_urls:
        return VerifierScorer(VerifierPool(spec.verifier, spec.timeout))
    if spec.remote_urls[0].endswith(".py"):
        return RewardFileScorer(spec.remote_urls[0])
    return RewardServerScorer(spec.remote_urls)


def _scored_from(result: object, origin: str) -> Scored:
    """Read OpenRLHF's reward dictionary ``{"rewards", "scores", "extra_logs"}``."""
    if not isinstance(result, dict) or "rewards" not in result:
        raise RewardError(f"{origin} must return a dict with 'rewards', got {type(result).__name__}: {result!r:.200}")
    reward = _number(result["rewards"], "rewards", origin)
    score = _number(result.get("scores"), "scores", origin)
    score = reward if score is None or reward is None else score
    if score is not None and not 0.0 <= score <= 1.0:
        raise RewardError(
            f"{origin}: 'scores' must be in [0, 1] because budgets follow them, got {score}; return the shaped "
            "value as 'rewards' and the correctness as 'scores'"
        )
    logs = {name: _number(value, name, origin) for name, value in (result.get("extra_logs") or {}).items()}
    return Scored(reward, score, {name: value for name, value in logs.items() if value is not None})


def _number(value: object, name: str, origin: str) -> float | None:
    """A float from a number, a one-element list or a one-element tensor."""
    if value is None:
        return None
    if hasattr(value, "flatten"):
        value = value.flatten().tolist()
    if isinstance(value, list | tuple):
        if len(value) != 1:
            raise RewardError(f"{origin}: {name!r} must have one value per query, got {len(value)} for 1 query")
        value = value[0]
        if value is None:
            return None
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise RewardError(f"{origin}: {name!r} must be a number, got {value!r}") from error
    if number != number or number in (float("inf"), float("-inf")):
        raise RewardError(f"{origin}: {name!r} must be finite, got {number}")
    return number
