"""Evaluations against each other, paired over problems, and over seeds where there are several."""

# Legend: N = problems, S = evaluations of a group (seeds), K = responses per problem.

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from coba_openrlhf.evaluation.intervals import bootstrap_mean, t_mean
from coba_openrlhf.evaluation.metrics import avg_per_problem, pass_ks, pass_per_problem
from coba_openrlhf.evaluation.response_files import ResponseFiles
from coba_openrlhf.evaluation.settings_file import FILE
from coba_openrlhf.evaluation.summary import SourceScores, scores_by_source

from .error import CompareError
from .groups import Group
from .row import Row

# These say how the model was asked: with other values it is not the model alone that differs.
PROTOCOL = (
    *("k", "temperature", "top_p", "max_new_tokens", "max_len", "apply_chat_template", "input_template"),
    *("system_prompt", "verifier", "verifier_of", "reward", "agent"),
)
NAN = float("nan")


@dataclass(frozen=True)
class Evaluation:
    """One evaluation: its settings and the scores of its data sources."""

    folder: Path
    settings: dict[str, object]
    scores: dict[str, SourceScores]


def read_evaluation(folder: Path) -> Evaluation:
    """Read the responses of an evaluation.

    Raises:
        CompareError: Damaged, or without responses.
    """
    try:
        settings = json.loads((folder / FILE).read_text(encoding="utf-8"))
        return Evaluation(folder, settings, scores_by_source(ResponseFiles(folder).read()))
    except (OSError, ValueError) as error:
        raise CompareError(f"{folder}: {error}") from error


def compare_evaluations(groups: list[Group]) -> tuple[list[Row], list[str]]:
    """All groups against the first one.

    Returns:
        Rows by benchmark, metric and group; and notes on what is not the same.

    Raises:
        CompareError: Other numbers of responses, no common benchmark, or a benchmark without a common problem.
    """
    read = {group.name: [read_evaluation(folder) for folder in group.folders] for group in groups}
    every = [evaluation for evaluations in read.values() for evaluation in evaluations]
    notes = _protocol_notes(every)
    common = [name for name in every[0].scores if all(name in e.scores for e in every)]
    if not common:
        listed = "; ".join(f"{e.folder} has {', '.join(e.scores)}" for e in every)
        raise CompareError(f"no benchmark is in all evaluations: {listed}")
    base, *others = groups
    rows = []
    for source in common:
        ids, left_out = _common_problems(source, every)
        if left_out:
            notes.append(
                f"{source}: {left_out} problems are not in all evaluations and are left out; {len(ids)} count."
            )
        k = every[0].scores[source].score_NK.shape[1]
        for metric in ["avg@" + str(k), *(f"pass@{j}" for j in pass_ks(k) if j > 1)]:
            base_SN = _values(source, metric, read[base.name], ids)
            for other in others:
                other_SN = _values(source, metric, read[other.name], ids)
                rows += _rows(source, metric, base.name, other.name, base_SN, other_SN)
    return rows, notes


def _rows(
    source: str, metric: str, base: str, other: str, base_SN: NDArray[np.float64], other_SN: NDArray[np.float64]
) -> list[Row]:
    difference_SN = other_SN - base_SN
    fixed = (source, metric, "", NAN, base, other, float(base_SN.mean()), float(other_SN.mean()))
    rows = [Row(*fixed, bootstrap_mean(difference_SN.mean(axis=0)), "problems", difference_SN.shape[1])]
    if len(difference_SN) > 1:
        rows.append(Row(*fixed, t_mean(difference_SN.mean(axis=1)), "seeds", len(difference_SN)))
    return rows


def _values(source: str, metric: str, evaluations: list[Evaluation], ids: list[str]) -> NDArray[np.float64]:
    """The metric of every evaluation and problem, ``[S, N]``."""
    rows = []
    for evaluation in evaluations:
        scores = evaluation.scores[source]
        place = {name: i for i, name in enumerate(scores.problem_ids)}
        score_NK = scores.score_NK[[place[name] for name in ids]]
        kind, _, k = metric.partition("@")
        rows.append(avg_per_problem(score_NK) if kind == "avg" else pass_per_problem(score_NK, int(k)))
    return np.stack(rows)


def _common_problems(source: str, every: list[Evaluation]) -> tuple[list[str], int]:
    sets = [set(e.scores[source].problem_ids) for e in every]
    common = set.intersection(*sets)
    if not common:
        raise CompareError(f"{source}: the evaluations have no problem in common (texts or answers differ)")
    sizes = {e.scores[source].score_NK.shape[1] for e in every}
    if len(sizes) > 1:
        listed = ", ".join(f"{e.folder} has {e.scores[source].score_NK.shape[1]}" for e in every)
        raise CompareError(f"{source}: the evaluations have different numbers of responses per problem: {listed}")
    return [name for name in every[0].scores[source].problem_ids if name in common], len(set.union(*sets) - common)


def _protocol_notes(every: list[Evaluation]) -> list[str]:
    notes = []
    for name in PROTOCOL:
        values = {json.dumps(e.settings.get(name)): e.folder for e in every}
        if len(values) > 1:
            listed = ", ".join(f"{value} in {folder}" for value, folder in values.items())
            notes.append(f"WARNING: {name} is not the same: {listed}.")
    return notes
