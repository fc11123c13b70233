"""What a scorer returns, and how it fails."""

from dataclasses import dataclass


class RewardError(RuntimeError):
    """A reward function or server failed; the run stops instead of training on missing scores."""


@dataclass(frozen=True)
class Scored:
    """Reward and score of one response.

    Attributes:
        reward: What the advantage is computed from; None when the response could not be scored.
        score: Correctness in [0, 1], what pass rates are computed from; None with ``reward``.
        extra_logs: Further numbers to log.
        is_error: There is no score because the built-in verifier failed.
        reason: Why the score is what it is; empty where nothing says so.
    """

    reward: float | None
    score: float | None
    extra_logs: dict[str, float]
    is_error: bool = False
    reason: str = ""


def scored_from(result: object, origin: str) -> Scored:
    """Read OpenRLHF's reward dictionary ``{"rewards", "scores", "extra_logs"}`` of one response.

    Raises:
        RewardError: It is something else, or a number is missing or out of range.
    """
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


def scored_from_list(result: object, origin: str) -> Scored:
    """Read the list of scores that the simple form of a reward function returns for one response.

    Raises:
        RewardError: It is something else, or a score is out of [0, 1].
    """
    if not isinstance(result, list | tuple) and not hasattr(result, "flatten"):
        raise RewardError(
            f"{origin}: reward_func(responses, prompts, labels) must return a list of scores, got "
            f"{type(result).__name__}: {result!r:.200}"
        )
    score = _number(result, "scores", origin)
    if score is not None and not 0.0 <= score <= 1.0:
        raise RewardError(f"{origin}: scores must be in [0, 1] because budgets follow them, got {score}")
    return Scored(score, score, {})


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
