"""Held-out evaluation during training."""

import numpy as np

from coba_openrlhf.data.prompt_dataset import IdentifiedPromptDataset
from coba_openrlhf.data.prompt_stream import batch_of
from coba_openrlhf.evaluation.metrics import avg_at_k, pass_at_k

from .rollout_batch import RolloutBatch
from .samples_generator import BudgetedSamplesGenerator


class Evaluator:
    """Generates ``k`` responses to every held-out problem; never touches the allocator.

    Args:
        dataset: Held-out problems.
        generator: The generator that training uses.
        num_samples: Responses per problem, ``k``.
    """

    def __init__(self, dataset: IdentifiedPromptDataset, generator: BudgetedSamplesGenerator, num_samples: int) -> None:
        self._batch = batch_of(dataset, list(range(len(dataset))))
        self._generator = generator
        self._num_samples = num_samples

    @property
    def num_rollouts(self) -> int:
        """Responses of one evaluation."""
        return len(self._batch) * self._num_samples

    def evaluate(self, **generate_kwargs) -> dict[str, float]:
        """Metrics per data source, under the names OpenRLHF gives them.

        ``eval_<source>_pass1`` is avg@k, ``eval_<source>_pass<k>`` the unbiased pass@k.
        """
        budget_P = np.full(len(self._batch), self._num_samples, np.int64)
        return self._metrics(self._generator.generate(self._batch, budget_P, **generate_kwargs))

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
