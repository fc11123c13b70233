"""The report of a run folder, on a small one made here."""

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coba_openrlhf import report

# Step 3 is a short batch: two prompts instead of three.
BUDGETS = {1: [4, 4, 4], 2: [2, 2, 8], 3: [6, 2]}
PASS_RATES = {1: [0.5, 0.5, 0.5], 2: [1.0, 0.0, 0.25], 3: [0.3, 1.0]}


def write_step(run, step, *, signal=0.5):
    row = {
        "step": step,
        "timing/step_total": 2.0,
        "rollout/reward_mean": 0.25 * step,
        "coba/failure_rate": 1 - 0.25 * step,
        "coba/effective_group_rate": signal,
        "coba/exposed_seconds": 1.0 if step == 1 else 0.01 * step,
        "ledger/rollouts": 12.0 * step,
        "ledger/seconds_generation": 1.5 * step,
    }
    with (run / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(row) + "\n")
    folder = run / "allocations.parquet"
    folder.mkdir(exist_ok=True)
    prompts = len(BUDGETS[step])
    columns = {
        "step": np.full(prompts, step),
        "prompt_id": [f"p{i}" for i in range(prompts)],
        "pass_rate": PASS_RATES[step],
        "budget": BUDGETS[step],
    }
    pq.write_table(pa.table(columns), folder / f"step-{step:08d}.parquet")


def write_evaluation(run, step, score):
    row = {"step": step, "eval_sums_pass1": score, "eval_sums_pass4": 1.0, "eval_truncated_rate": 0.0}
    with (run / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(row) + "\n")


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    write_evaluation(folder, 0, 0.1)
    for step in BUDGETS:
        write_step(folder, step)
    write_evaluation(folder, 3, 0.7)
    return folder


def test_summary_holds_scores_budgets_waiting_and_costs(run):
    summary = report.summarise(report.read_run(run))
    assert summary["steps"] == 3
    assert summary["held_out"] == {"sums": {"first_step": 0, "first": 0.1, "last_step": 3, "last": 0.7}}
    assert summary["budgets"] == {"sums": [8, 12], "mean_is_constant": True, "min": 2, "mean": 4.0, "max": 8}
    assert summary["exposed_share"] == pytest.approx({"median": 0.0125, "max": 0.015})
    assert summary["ledger"] == {"rollouts": 36.0, "seconds_generation": 4.5}


def test_a_step_with_another_mean_budget_is_reported(run, tmp_path):
    table = pq.read_table(run / "allocations.parquet" / "step-00000002.parquet")
    table = table.set_column(3, "budget", pa.array([2, 2, 7]))
    pq.write_table(table, run / "allocations.parquet" / "step-00000002.parquet")
    summary = report.summarise(report.read_run(run))
    assert summary["budgets"]["mean_is_constant"] is False
    assert "NOT CONSTANT" in report.render(summary, tmp_path)


def test_files_are_written_where_asked(run, tmp_path, capsys):
    assert report.main([str(run), "--out", str(tmp_path / "elsewhere")]) == 0
    printed = capsys.readouterr().out
    assert "sums: 0.100 at step 0 -> 0.700 at step 3" in printed
    assert "8 or 12 rollouts; the same mean in every step" in printed
    for name in ("learning_curve.png", "budgets.png"):
        assert (tmp_path / "elsewhere" / name).read_bytes().startswith(b"\x89PNG")
    assert json.loads((tmp_path / "elsewhere" / "summary.json").read_text())["steps"] == 3
    assert not (run / "report").exists()


def test_one_step_without_evaluation_is_enough(tmp_path, capsys):
    write_step(tmp_path, 1)
    assert report.main([str(tmp_path)]) == 0
    assert (tmp_path / "report" / "budgets.png").exists()
    assert "exposed" not in capsys.readouterr().out


def test_only_visits_with_history_are_plotted(run):
    data = report.read_run(run)
    assert report.find_revisits(data.visits).tolist() == [False] * 3 + [True] * 5


def test_first_visits_are_found_whatever_the_order_of_the_ids():
    visits = {"step": np.array([1, 2, 2]), "prompt_id": np.array(["z", "a", "z"], object)}
    assert report.find_revisits(visits).tolist() == [False, False, True]


def test_bins_hold_means_and_the_ends_belong_to_them():
    rate, budget = report.mean_per_bin(np.array([0.0, 0.05, 1.0]), np.array([2, 4, 9]))
    assert (rate[0], budget[0]) == (0.025, 3.0)
    assert (rate[-1], budget[-1]) == (1.0, 9.0)
    assert np.isnan(rate[1:-1]).all() and np.isnan(budget[1:-1]).all()


def test_a_torn_last_line_is_ignored(run):
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"step": 4, "timing/st')
    assert len(report.read_run(run).steps) == 3


def test_a_damaged_line_elsewhere_is_an_error(run):
    lines = (run / "metrics.jsonl").read_text().splitlines()
    (run / "metrics.jsonl").write_text("\n".join([lines[0], "{", *lines[2:]]))
    with pytest.raises(report.ReportError, match="line 2 is not JSON"):
        report.read_run(run)


def damage(run, step, how):
    file = run / "allocations.parquet" / f"step-{step:08d}.parquet"
    if how == "torn":
        file.write_bytes(file.read_bytes()[:-10])
    elif how == "empty":
        file.write_bytes(b"")
    else:
        pq.write_table(pq.read_table(file).drop_columns(["budget"]), file)


@pytest.mark.parametrize("how", ["torn", "empty", "without a column"])
@pytest.mark.parametrize("step", [1, 2])
def test_a_damaged_step_file_is_an_error(run, capsys, step, how):
    damage(run, step, how)
    assert report.main([str(run)]) == 2
    message = capsys.readouterr().err
    assert message.startswith("no report: ") and str(run / "allocations.parquet") in message
    assert ("'budget'" if how == "without a column" else f"step-{step:08d}.parquet") in message


@pytest.mark.parametrize("line", [b"3", b"\xff"])
def test_a_line_that_is_no_metrics_is_an_error(run, line):
    with (run / "metrics.jsonl").open("ab") as file:
        file.write(line + b"\n{}\n")
    with pytest.raises(report.ReportError, match=r"line 6 (must hold|is not JSON)"):
        report.read_run(run)


def test_a_report_folder_that_is_a_file_is_refused(run, tmp_path, capsys):
    (tmp_path / "out").touch()
    assert report.main([str(run), "--out", str(tmp_path / "out")]) == 2
    assert str(tmp_path / "out") in capsys.readouterr().err


def test_a_missing_number_leaves_a_gap(run):
    write_step(run, 3, signal=None)
    assert np.isnan(report.read_run(run).column("coba/effective_group_rate")[-1])


@pytest.mark.parametrize("content", [None, "", '{"step": 0, "eval_sums_pass1": 0.5}\n'])
def test_folders_without_a_run_or_a_step_are_refused(tmp_path, capsys, content):
    if content is not None:
        (tmp_path / "metrics.jsonl").write_text(content)
    assert report.main([str(tmp_path)]) == 2
    message = capsys.readouterr().err
    assert ("no metrics.jsonl" if content is None else "no finished training step yet") in message
    assert not (tmp_path / "report").exists()


def test_the_training_stack_is_not_loaded():
    code = "import sys, coba_openrlhf.report as r; print({'torch', 'ray', 'vllm', 'openrlhf'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "set()"
