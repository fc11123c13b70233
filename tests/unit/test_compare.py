"""Comparisons of runs and of evaluations, on small folders made here."""

import csv
import json
import math

import numpy as np
import pytest

from coba_openrlhf.compare.__main__ import main
from coba_openrlhf.compare.curves import compare_curves, read_curve, read_curves
from coba_openrlhf.compare.evaluations import compare_evaluations
from coba_openrlhf.compare.figures import points
from coba_openrlhf.compare.groups import read_groups
from coba_openrlhf.evaluation.response_files import ResponseFiles
from coba_openrlhf.evaluation.settings_file import claim
from tests.unit.test_responses import responses


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_run(folder, points, *, source="sums", rollouts_per_step=100, tokens_per_step=1000, tail=""):
    """A run with evaluations ``{step: avg@k}``."""
    folder.mkdir()
    rows = []
    for step, score in points.items():
        ledger = {"ledger/rollouts": step * rollouts_per_step, "ledger/generated_tokens": step * tokens_per_step}
        rows.append({"step": step, "timing/step_total": 1.0, **ledger})
        rows.append({"step": step, f"eval_{source}_pass1": score, f"eval_{source}_pass4": min(2 * score, 1), **ledger})
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + tail)


def write_evaluation(folder, scores_of_row, *, source="sums", **settings):
    claim(folder, {"k": len(next(iter(scores_of_row.values()))), "temperature": 1.0, **settings})
    for row, scores in scores_of_row.items():
        ResponseFiles(folder).write(responses(source, row, scores))


def refusal(capsys, *words):
    assert main([*map(str, words), "--out", "out"]) == 2
    return capsys.readouterr().err


def test_evaluations_are_paired_over_problems(here):
    write_evaluation(here / "a", {0: [0.0, 0.0], 1: [1.0, 0.0], 2: [1.0, 1.0]})
    write_evaluation(here / "b", {2: [1.0, 1.0], 1: [1.0, 1.0], 0: [None, 1.0]})
    rows, notes = compare_evaluations(read_groups(["a", "b"])[1])
    assert notes == [] and [row.metric for row in rows] == ["avg@2", "pass@2"]
    avg, best = rows
    assert (avg.base_value, avg.other_value) == (pytest.approx(0.5), pytest.approx(5 / 6))
    assert avg.difference.value == pytest.approx(1 / 3) and (avg.over, avg.count) == ("problems", 3)
    # Paired: every problem's difference is 0.5, 0.5 or 0, so the interval lies between 0 and 0.5.
    assert 0 <= avg.difference.low < avg.difference.high <= 0.5
    assert best.difference.value == pytest.approx(1 / 3)


def test_pairing_makes_the_interval_narrower_than_two_intervals(here):
    """Problems differ a lot, models by a little: only the paired difference shows it."""
    rng = np.random.default_rng(0)
    base = {row: [float(rng.random() < row / 60)] * 2 for row in range(60)}
    better = {row: [scores[0], 1.0 if row % 4 == 0 else scores[1]] for row, scores in base.items()}
    write_evaluation(here / "a", base)
    write_evaluation(here / "b", better)
    (avg, _), _ = compare_evaluations(read_groups(["a", "b"])[1])
    assert avg.difference.low > 0 and avg.difference.high - avg.difference.low < 0.15


def test_several_seeds_give_both_intervals(here):
    for seed in range(3):
        write_evaluation(here / f"a{seed}", {row: [0.0, float(row < seed)] for row in range(4)})
        write_evaluation(here / f"b{seed}", {row: [1.0, float(row < seed)] for row in range(4)})
    rows, _ = compare_evaluations(read_groups(["a=a*", "b=b0,b1,b2"])[1])
    over_problems, over_seeds = rows[:2]
    assert (over_problems.over, over_problems.count, over_seeds.over, over_seeds.count) == ("problems", 4, "seeds", 3)
    assert over_problems.difference.value == over_seeds.difference.value == pytest.approx(0.5)
    assert over_seeds.difference.low == pytest.approx(0.5)


def test_problems_that_are_not_common_are_left_out_and_named(here):
    write_evaluation(here / "a", {0: [1.0], 1: [0.0]})
    write_evaluation(here / "b", {1: [1.0], 2: [1.0]}, temperature=0.6)
    rows, notes = compare_evaluations(read_groups(["a", "b"])[1])
    assert rows[0].difference.value == 1.0 and math.isnan(rows[0].difference.low)
    assert notes == [
        "WARNING: temperature is not the same: 1.0 in a, 0.6 in b.",
        "sums: 2 problems are not in all evaluations and are left out; 1 count.",
    ]


def test_runs_at_equal_steps_rollouts_and_tokens(here):
    write_run(here / "a", {0: 0.0, 10: 0.4, 20: 0.6})
    write_run(here / "b", {0: 0.0, 10: 0.6}, tokens_per_step=4000, tail='{"step": 20, "eval_su')
    rows, notes = compare_curves(read_curves(read_groups(["a", "b"])[1]))
    of_axis = {row.axis: row for row in rows if row.metric == "avg@k"}
    assert {axis: row.at for axis, row in of_axis.items()} == {"step": 10, "rollouts": 1000, "tokens": 20000}
    assert of_axis["step"].difference.value == pytest.approx(0.2)
    # At 20,000 tokens a is at step 20 and b half way to step 10.
    assert (of_axis["tokens"].base_value, of_axis["tokens"].other_value) == (pytest.approx(0.6), pytest.approx(0.3))
    assert math.isnan(of_axis["step"].difference.low) and "One run per group" in notes[0]
    assert {row.metric for row in rows} == {"avg@k", "pass@4"}


def test_seeds_of_runs_are_paired(here):
    for seed, level in enumerate((0.1, 0.5, 0.8)):
        write_run(here / f"u{seed}", {0: 0.0, 10: level})
        write_run(here / f"c{seed}", {0: 0.0, 10: level + 0.05 + 0.001 * seed})
    rows, notes = compare_curves(read_curves(read_groups(["u*", "coba=c*"])[1]))
    row = rows[0]
    assert (row.base, row.other, row.over, row.count) == ("u*", "coba", "seeds", 3)
    assert 0.045 < row.difference.low < row.difference.value == pytest.approx(0.051) and "few" in notes[0]


def test_bands_go_as_far_as_the_shortest_run(here):
    write_run(here / "a0", {0: 0.0, 10: 0.4, 20: 0.6})
    write_run(here / "a1", {0: 0.2, 5: 0.3, 10: 0.6})
    x_E, value_SE = points([read_curve(here / "a0"), read_curve(here / "a1")], ("sums", "avg@k"), "step")
    assert x_E.tolist() == [0, 5, 10]
    assert value_SE == pytest.approx(np.array([[0, 0.2, 0.4], [0.2, 0.3, 0.6]]))


def test_no_value_is_taken_from_before_the_first_evaluation(here, capsys):
    """At 10,000 tokens b has not been evaluated: its value at 40,000 is not compared with a's at 10,000."""
    write_run(here / "a", {10: 0.4})
    write_run(here / "b", {10: 0.6}, tokens_per_step=4000)
    assert main(["a", "b", "--out", "out"]) == 0
    printed = capsys.readouterr().out
    assert "10 step" in printed and "1,000 rollouts" in printed and "10,000 tokens" not in printed
    assert "sums avg@k at equal tokens is left out: one run ends at 10,000, and b is evaluated from 40,000" in printed
    write_run(here / "late", {20: 0.6})
    assert "one run ends at 10, and late is evaluated from 20 on" in refusal(capsys, "a", "late")
    x_E, value_SE = points([read_curve(here / "a"), read_curve(here / "late")], ("sums", "avg@k"), "step")
    assert x_E.shape == (0,) and value_SE.shape == (2, 0)


def test_other_templates_are_named(here):
    write_evaluation(here / "a", {0: [1.0], 1: [0.0]}, apply_chat_template=True, system_prompt=None)
    write_evaluation(here / "b", {0: [1.0], 1: [0.0]}, apply_chat_template=True, system_prompt="Think.")
    _, notes = compare_evaluations(read_groups(["a", "b"])[1])
    assert notes == ['WARNING: system_prompt is not the same: null in a, "Think." in b.']


def test_files_and_table(here, capsys):
    write_run(here / "a", {0: 0.0, 10: 0.4})
    write_run(here / "b", {0: 0.0, 10: 0.6})
    assert main(["a", "b", "--out", "out"]) == 0
    printed = capsys.readouterr().out
    assert "sums       avg@k   10 step" in printed and "+0.200      1 run each" in printed
    names = ["compare.csv", "compare.json", "curves-rollouts.png", "curves-step.png", "curves-tokens.png"]
    assert sorted(file.name for file in (here / "out").iterdir()) == names
    rows = list(csv.DictReader((here / "out" / "compare.csv").open(encoding="utf-8", newline="")))
    assert rows[0]["axis"] == "step" and float(rows[0]["difference"]) == pytest.approx(0.2) and rows[0]["low"] == ""
    tree = json.loads((here / "out" / "compare.json").read_text())
    assert tree["groups"] == {"a": ["a"], "b": ["b"]} and tree["rows"][0]["low"] is None


def test_evaluations_on_the_command_line(here, capsys):
    write_evaluation(here / "a", {row: [0.0, 0.0] for row in range(9)})
    write_evaluation(here / "b", {row: [1.0, 0.0] for row in range(9)})
    assert main(["a", "new=b", "--out", "out"]) == 0
    assert "new - a" in (out := capsys.readouterr().out) and "+0.500 [+0.500, +0.500]*  9 problems" in out
    assert (here / "out" / "differences.png").stat().st_size > 1000


def test_refusals(here, capsys):
    write_run(here / "run", {0: 0.1})
    write_run(here / "run2", {0: 0.1}, source="other")
    write_evaluation(here / "evaluation", {0: [1.0]})
    write_evaluation(here / "k2", {0: [1.0, 1.0]})
    write_evaluation(here / "other", {0: [1.0]}, source="other")
    write_evaluation(here / "far", {5: [1.0]})
    (here / "empty").mkdir()
    (here / "silent").mkdir()
    (here / "silent" / "metrics.jsonl").write_text('{"step": 1, "timing/step_total": 1.0}\n')
    (here / "broken").mkdir()
    (here / "broken" / "metrics.jsonl").write_text("nonsense\n{}\n")
    for words, message in (
        (["run"], "a comparison needs two groups at least, got run"),
        (["run", "gone"], "no such folder: gone"),
        (["run", "empty"], "empty is neither the folder of a run (metrics.jsonl) nor of an evaluation"),
        (["run", "gone*"], "no folder fits 'gone*'"),
        (["run", "x="], "a group is FOLDER, 'GLOB' or NAME=FOLDER,FOLDER, got 'x='"),
        (["run", "run"], "two groups are called 'run'"),
        (["a=run", "b=run"], "run stands in the comparison twice"),
        (["run", "evaluation"], "runs and evaluations cannot be compared with each other: run is a run, evaluation"),
        (["a=run", "b=run2,silent"], "groups must have equally many folders"),
        (["run", "run2"], "no benchmark is in all runs: run has sums; run2 has other"),
        (["run", "silent"], "silent has no held-out evaluation (eval.dataset)"),
        (["run", "broken"], "broken/metrics.jsonl, line 1 is not JSON"),
        (["evaluation", "other"], "no benchmark is in all evaluations: evaluation has sums; other has other"),
        (["evaluation", "far"], "sums: the evaluations have no problem in common"),
        (["evaluation", "k2"], "sums: the evaluations have different numbers of responses per problem"),
    ):
        assert message in refusal(capsys, *words), words
    assert not (here / "out").exists()
