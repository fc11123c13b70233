"""Held-out evaluation during training."""

import numpy as np

from coba_openrlhf.data.prompt_dataset import IdentifiedPromptDataset
from coba_openrlhf.data.prompt_stream import PromptBatch, batch_of
from coba_openrlhf.evaluation.metrics import avg_at_k, pass_at_k

from .rollout_batch import RolloutBatch
from .samples_generator import BudgetedSamplesGenerator


class Evaluator:
    """Generates ``k`` responses to every held-out problem; never touches the allocator.

    Args:
        dataset: Held-out problems.
        generator: The generator that training uses.
        num_samples: Responses per problem, ``k``.
        seed: The random numbers of a response follow from it, the problem and the index: the same model answers
            the same in every evaluation, up to rounding.
    """

    def __init__(
        self, dataset: IdentifiedPromptDataset, generator: BudgetedSamplesGenerator, num_samples: int, seed: int
    ) -> None:
        self._dataset = dataset
        self._batch = batch_of(dataset, list(range(len(dataset))))
        self._generator = generator
        self._num_samples = num_samples
        self._seed = seed

    @property
    def num_rollouts(self) -> int:
        """Responses of one evaluation."""
        return len(self._batch) * self._num_samples

    def evaluate(self, **generate_kwargs) -> dict[str, float]:
        """Metrics per data source, under the names OpenRLHF gives them.

        ``eval_<source>_pass1`` is avg@k, ``eval_<source>_pass<k>`` the unbiased pass@k.
        """
        return self._metrics(self._respond(self._batch, generate_kwargs))

    def respond(self, rows: list[int], **generate_kwargs) -> RolloutBatch:
        """Responses to the problems at ``rows``, scored."""
        return self._respond(batch_of(self._dataset, rows), generate_kwargs)

    def _respond(self, batch: PromptBatch, generate_kwargs: dict[str, object]) -> RolloutBatch:
        budget_P = np.full(len(batch), self._num_samples, np.int64)
        return self._generator.generate(batch, budget_P, seed=self._seed, **generate_kwargs)

    def _metrics(self, rollouts: RolloutBatch) -> dict[str, float]:
        k = self._num_samples
        score_PK = rollouts.score_R.reshape(-1, k)
        sources = np.array(self._batch.datasources)
        metrics: dict[str, float] = {}
        for source in dict.fromkeys(self._batch.datasources):
            score_NK = score_PK[sources == source]
            metrics[f"eval_{source}_pass1"] = avg_at_k(score_NK)
            if k > 1:
                metrics[f"eval_{source}_pass{k}"] = pass_at_k(score_NK, k)
        metrics["eval_truncated_rate"] = float(rollouts.truncated_R.mean())
        metrics["eval_unscored_rate"] = float(1.0 - rollouts.scored_R.mean())
        metrics["eval_response_length_mean"] = float(rollouts.response_length_R.mean())
        return metrics


def eval_top_p(args) -> float:
    """``coba.eval.top_p``; ``rollout.top_p`` where that is null."""
    return args.rollout.top_p if args.coba.eval.top_p is None else args.coba.eval.top_p
