"""What an evaluation says about each benchmark."""

# Legend: N = problems, K = responses per problem, R = N * K.

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from .intervals import Interval, bootstrap_mean
from .metrics import avg_per_problem, pass_ks, pass_per_problem


@dataclass(frozen=True)
class SourceScores:
    """Scores of one data source.

    Attributes:
        problem_ids: ``[N]``, each once.
        score_NK: Score of every response; NaN where it could not be scored.
    """

    problem_ids: list[str]
    score_NK: NDArray[np.float64]


@dataclass(frozen=True)
class SourceSummary:
    """Results of one data source.

    Attributes:
        source: Its name.
        num_problems: ``N``.
        k: ``K``.
        avg: avg@k, with its interval over problems.
        passes: k -> unbiased pass@k, with its interval.
        truncated_rate: Share of the responses that hit the length limit.
        unscorable_rate: Share of the responses without a score; they count as wrong.
        length_mean: Tokens of a response.
        length_median: Tokens of a response.
        length_max: Tokens of a response.
    """

    source: str
    num_problems: int
    k: int
    avg: Interval
    passes: dict[int, Interval]
    truncated_rate: float
    unscorable_rate: float
    length_mean: float
    length_median: float
    length_max: int


def scores_by_source(table: pa.Table) -> dict[str, SourceScores]:
    """Scores of every data source, from the sorted table of ``ResponseFiles.read``.

    Raises:
        ValueError: Problems of one source have different numbers of responses, or a response is there twice.
    """
    source_R = np.array(table["datasource"].to_pylist(), object)
    problem_R = np.array(table["problem_id"].to_pylist(), object)
    score_R = np.array(table["score"].to_pylist(), np.float64)
    index_R = np.array(table["index"].to_pylist(), np.int64)
    scores = {}
    for source in dict.fromkeys(source_R.tolist()):
        rows = np.flatnonzero(source_R == source)
        ids = list(dict.fromkeys(problem_R[rows].tolist()))
        if len(rows) % len(ids) or (problem_R[rows].reshape(len(ids), -1) != np.array(ids, object)[:, None]).any():
            raise ValueError(f"{source}: every problem must have the same number of responses, next to each other")
        index_NK = index_R[rows].reshape(len(ids), -1)
        if (index_NK != np.arange(index_NK.shape[1])).any():
            raise ValueError(f"{source}: the responses of every problem must have the indices 0, 1, ..., each once")
        scores[source] = SourceScores(ids, score_R[rows].reshape(len(ids), -1))
    return scores


def summarise(table: pa.Table, seed: int = 0) -> list[SourceSummary]:
    """One summary per data source.

    Args:
        table: Of ``ResponseFiles.read``.
        seed: Of the intervals' resampling.
    """
    source_R = np.array(table["datasource"].to_pylist(), object)
    length_R = np.array(table["num_tokens"].to_pylist(), np.int64)
    truncated_R = np.array(table["truncated"].to_pylist(), np.bool_)
    summaries = []
    for source, scores in scores_by_source(table).items():
        rows = source_R == source
        score_NK = scores.score_NK
        k = score_NK.shape[1]
        summaries.append(
            SourceSummary(
                source=source,
                num_problems=len(score_NK),
                k=k,
                avg=bootstrap_mean(avg_per_problem(score_NK), seed=seed),
                passes={j: bootstrap_mean(pass_per_problem(score_NK, j), seed=seed) for j in pass_ks(k)},
                truncated_rate=float(truncated_R[rows].mean()),
                unscorable_rate=float(np.isnan(score_NK).mean()),
                length_mean=float(length_R[rows].mean()),
                length_median=float(np.median(length_R[rows])),
                length_max=int(length_R[rows].max()),
            )
        )
    return summaries
