"""From a configuration to the object that scores a response."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from .outcome import Outcome
from .reward_file import RewardFileScorer
from .reward_server import RewardServerScorer
from .scored import RewardError, Scored
from .verifier_pool import VerifierPool

__all__ = ["RewardError", "Scored", "Scorer", "ScorerSpec", "VerifierScorer", "make_scorer"]

logger = logging.getLogger(__name__)
# Different errors of verifiers that are written to the log; all are counted.
LOGGED_ERRORS = 20


@dataclass(frozen=True)
class ScorerSpec:
    """What scores responses.

    Attributes:
        verifier: Built-in verifier of data sources that ``verifier_of`` does not name.
        timeout: Time limit of one check in seconds.
        remote_urls: One Python file with ``reward_func``, or reward server URLs; then there are no verifiers.
        verifier_of: Data source -> built-in verifier.
        memory_mb: Memory limit of one check in MiB.
        max_workers: Checks at a time.
        tolerance: Most that numbers may differ and still be equal (verifier numeric), relative or absolute.
    """

    verifier: str
    timeout: float
    remote_urls: tuple[str, ...] = ()
    verifier_of: Mapping[str, str] = field(default_factory=dict)
    memory_mb: int = 1024
    max_workers: int = 2
    tolerance: float = 1e-6


class Scorer(Protocol):
    """Scores one response."""

    async def score(
        self, *, query: str, prompt: str, response: str, label: object, datasource: str = "default"
    ) -> Scored:
        """Score ``response`` (``query`` is prompt and response as decoded, special tokens included)."""
        ...

    def close(self) -> None:
        """End what the scorer has started."""
        ...


class VerifierScorer:
    """Scores by built-in verifiers, one per data source.

    An outcome without a score is a rollout without a score. A verifier that fails does not end the run: its errors are
    counted, and the first of each kind is logged.
    """

    def __init__(self, spec: ScorerSpec) -> None:
        self._spec = spec
        self._pool = VerifierPool(
            [spec.verifier, *spec.verifier_of.values()],
            spec.timeout,
            spec.memory_mb,
            spec.max_workers,
            spec.tolerance,
        )
        self._pool.start()
        self._errors: set[str] = set()

    async def score(
        self, *, query: str, prompt: str, response: str, label: object, datasource: str = "default"
    ) -> Scored:
        """See ``Scorer``."""
        verifier = self._spec.verifier_of.get(datasource, self._spec.verifier)
        outcome = await self._pool.score(verifier, response, label)
        if outcome.is_error:
            self._log(verifier, label, outcome)
        return Scored(outcome.score, outcome.score, {}, outcome.is_error, outcome.reason)

    def _log(self, verifier: str, label: object, outcome: Outcome) -> None:
        if outcome.reason not in self._errors and len(self._errors) < LOGGED_ERRORS:
            self._errors.add(outcome.reason)
            logger.warning(
                "verifier %s failed on a response for the reference answer %.100r: %s", verifier, label, outcome.reason
            )

    def close(self) -> None:
        """See ``Scorer``."""
        self._pool.close()


def make_scorer(spec: ScorerSpec) -> Scorer:
    """The scorer that ``spec`` describes."""
    if not spec.remote_urls:
        return VerifierScorer(spec)
    if spec.remote_urls[0].endswith(".py"):
        return RewardFileScorer(spec.remote_urls[0])
    return RewardServerScorer(spec.remote_urls)
