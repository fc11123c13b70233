"""Rewards of OpenRLHF's reward servers."""

from .scored import RewardError, Scored, scored_from


class RewardServerScorer:
    """Scores by OpenRLHF's reward-server protocol."""

    def __init__(self, urls: tuple[str, ...]) -> None:
        import coba_openrlhf.device.ready  # noqa: F401  isort: skip
        from openrlhf.utils.agent import SingleTurnAgentExecutor

        self._urls = urls
        self._client = SingleTurnAgentExecutor(list(urls))

    async def score(
        self, *, query: str, prompt: str, response: str, label: object, datasource: str = "default"
    ) -> Scored:
        """See ``Scorer``; upstream's client retries five times."""
        try:
            results = await self._client._fetch_rewards_via_http([query], [prompt], [label])
        except Exception as error:
            raise RewardError(f"reward server {', '.join(self._urls)} failed: {error}") from error
        return scored_from(results[0], ", ".join(self._urls))

    def close(self) -> None:
        """See ``Scorer``; nothing was started."""
