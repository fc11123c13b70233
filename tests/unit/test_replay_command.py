"""The command line of a replay: options, grids, tables, pictures and refusals."""

import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from matplotlib.axes import Axes

from coba_openrlhf import replay as library
from coba_openrlhf.allocation import AllocationConfig
from coba_openrlhf.config.allocation import option_names
from coba_openrlhf.replay import __main__ as command
from coba_openrlhf.replay import results
from coba_openrlhf.replay.figures import mean_budgets, plot_grid
from coba_openrlhf.replay.replayed import COLUMNS, Replayed
from coba_openrlhf.replay.table import LAYOUT, LIMITS, render_table
from tests.replay_runs import call_replay, write_run

# Small batches let one prompt have much of a step, and few outcomes mislead estimates: both are told, rightly.
pytestmark = pytest.mark.filterwarnings("ignore:budget_max lets one prompt", "ignore:pass-rate estimates predicted")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture
def replayed(tmp_path, capsys):
    """Runs the command line; gives its text, the summary by rule, and the rows of replay.csv."""
    return lambda run, *argv: call_replay(run, tmp_path / "out", capsys, *argv)


def refusal(capsys, run, *argv):
    """The one line that a refused command line prints."""
    assert command.main([str(run), *argv]) == 2
    error = capsys.readouterr().err
    assert error.startswith("no replay: ") and error.count("\n") == 1, error
    return error


# Grids and the command line.


def test_grid_is_a_product_with_a_picture(run, replayed, tmp_path):
    _, rules, _ = replayed(run, "--grid", "coba.tau=3,5,7", "--grid", "coba.kappa=7,11")
    labels = [f"coba tau={tau} kappa={kappa}" for tau in (3, 5, 7) for kappa in (7, 11)]
    assert list(rules) == ["as run", "uniform", *labels]
    # The run's own settings are one of the points.
    assert rules["coba tau=5 kappa=11"]["signal"] == pytest.approx(rules["as run"]["signal"])
    assert {file.name for file in (tmp_path / "out").iterdir()} == {
        "replay.csv", "summary.json", "signal.png", "budgets.png", "grid.png",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("grids", "pictures"),
    [
        (["coba.strategy=coba,knapsack"], 1),
        (["coba.pass_rate.source=window,posterior", "coba.tau=3,5"], 1),
        (["coba.tau=3,5", "coba.kappa=7,11", "coba.gamma=5,10"], 0),
    ],
)
def test_grids_of_words_and_of_three_options(run, replayed, tmp_path, grids, pictures):
    replayed(run, *(word for grid in grids for word in ("--grid", grid)))
    assert len(list((tmp_path / "out").glob("grid*.png"))) == pictures


def test_options_belong_to_the_strategy_before_them(run, replayed):
    _, rules, _ = replayed(
        run, "--coba.budget.max", "16", "--strategy", "knapsack", "--strategy", "coba", "--grid", "coba.tau=3,7",
        "--strategy", "mixed", "--coba.pass_rate.source=posterior",
    )  # fmt: skip
    assert list(rules)[2:] == [
        "knapsack budget.max=16",
        "coba budget.max=16 tau=3",
        "coba budget.max=16 tau=7",
        "mixed budget.max=16 pass_rate.source=posterior",
    ]


def test_the_same_rule_twice_is_one_row(run, replayed):
    _, rules, _ = replayed(run, "--strategy", "uniform", "--strategy", "mixed", "--coba.strategy", "mixed")
    assert list(rules) == ["as run", "uniform", "mixed"]


def test_every_option_of_the_library_can_be_given(run):
    """Generic: a new field of ``AllocationConfig`` needs nothing here."""
    for name, option in option_names().items():
        if name in ("success_rule", "success_threshold", "pass_rate_source"):
            continue
        value = getattr(AllocationConfig(), name)
        line = command.read_command_line([str(run), f"--{option}", "null" if value is None else str(value)])
        (family,) = library.make_families(AllocationConfig(), line.requests)
        assert family.rules[0].config == AllocationConfig(), option


def test_the_run_folder_is_the_default_place(tmp_path, capsys):
    run = write_run(tmp_path / "run", num_steps=1)
    assert command.main([str(run)]) == 0
    assert (run / "replay" / "summary.json").is_file()
    text = capsys.readouterr().out
    assert "are NOT known" in text and "Steps 1 to 1" in text


def test_help_names_the_options(capsys):
    with pytest.raises(SystemExit) as end:
        command.main(["--help"])
    assert end.value.code == 0
    text = capsys.readouterr().out
    assert "--coba.pass_rate.prior_strength" in text and "success_rule" not in text


# Tables and pictures.


def test_a_grid_is_drawn_in_the_order_of_its_numbers(run, tmp_path):
    log = library.read_log(run)
    options = library.read_options(run)
    request = library.Request({}, {"coba.tau": ["10", "3", "5"]})
    (family,) = library.make_families(options.config, [request])
    of_label = {rule.label: library.replay(rule, log) for rule in family.rules}
    of_label["as run"] = library.replay_log(log, None)
    drawn = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Axes, "plot", lambda self, x, y, *_, **__: drawn.append((list(x), list(y))))
        plot_grid(family, of_label, tmp_path / "grid.png")
    expected = [of_label[f"coba tau={tau}"].means()["signal"] for tau in (3, 5, 10)]
    assert drawn[0] == ([3, 5, 10], expected)


def test_table_is_aligned_and_marks_the_best(run, replayed):
    text, rules, _ = replayed(run, "--strategy", "knapsack", "--strategy", "mixed")
    lines = text.splitlines()[2:7]
    assert lines[0].split()[:3] == ["rule", "signal", "extrapol."]
    best = max(rules, key=lambda label: rules[label]["signal"])
    for line in lines[1:]:
        cell = line[: lines[0].index("signal") + len("signal") + 1].split()[-1]
        assert cell.endswith("*") == line.startswith(best)
    ends = {line.index("%") for line in lines[1:]}
    assert len(ends) == 1


def test_what_is_not_known_is_a_dash():
    nothing = {name: np.array([np.nan]) for name in COLUMNS}
    rule = Replayed("empty", {}, [], [], [], {**nothing, "signal": np.array([0.5])}, [])
    assert render_table([rule, rule]).splitlines()[1].split() == ["empty", "50.0%"] + ["-"] * 11


def test_mean_budgets_per_bin():
    middle, budget = mean_budgets(np.array([0.0, 0.05, 1.0, 0.55]), np.array([2, 4, 8, 6]))
    np.testing.assert_allclose(middle, [0.05, 0.55, 0.95])
    np.testing.assert_allclose(budget, [3, 6, 8])


# Refusals: status 2 and one line.


def test_no_run_folder(tmp_path, capsys):
    assert "has no folder allocations.parquet" in refusal(capsys, tmp_path / "nowhere")


def test_no_step_yet(tmp_path, capsys):
    (tmp_path / "allocations.parquet").mkdir()
    assert "no finished training step yet" in refusal(capsys, tmp_path)


def test_no_config(tmp_path, capsys):
    run = write_run(tmp_path / "run", num_steps=1)
    (run / "config.yaml").unlink()
    assert "no config.yaml" in refusal(capsys, run)


@pytest.mark.parametrize("content", ["coba: [", "coba: {tau: x}", "coba: {tau: -1}", "- 1", "coba: {strategy: nope}"])
def test_a_damaged_config(tmp_path, capsys, content):
    run = write_run(tmp_path / "run", num_steps=1)
    (run / "config.yaml").write_text(content)
    assert command.main([str(run)]) == 2
    assert capsys.readouterr().err.startswith(f"no replay: {run / 'config.yaml'}")


@pytest.mark.parametrize("damage", [b"", b"nothing", None])
def test_a_damaged_file_is_named(tmp_path, capsys, damage):
    run = write_run(tmp_path / "run", num_steps=3)
    file = run / "allocations.parquet" / "step-00000002.parquet"
    file.write_bytes(file.read_bytes()[:-100] if damage is None else damage)
    assert "step-00000002.parquet is damaged" in refusal(capsys, run)


@pytest.mark.parametrize(
    ("column", "values", "rule"),
    [
        ("budget", [0] * 12, "budget >= 1"),
        ("successes", [999.0] * 12, "successes <= scored"),
        ("successes", [float("nan")] * 12, "successes <= scored"),
        ("pass_rate", [1.5] * 12, "pass_rate <= 1"),
        ("step", list(range(12)), "one step per file"),
        ("step", [0] * 12, "step >= 1"),
        ("seen", [None] * 12, "'seen' without gaps"),
        ("mixed", [True] * 12, "mixed only with 0 < successes < scored"),
        ("wave_successes", [0.5] * 12, "wave_successes <= wave_scored"),
        ("prompt_id", ["same"] * 12, "every prompt_id once"),
        ("tokens", [None] * 12, "'tokens' without gaps"),
        ("scored", ["x"] * 12, "'scored' must hold numbers"),
        ("wave_scored", [999] * 12, "wave_scored <= scored"),
    ],
)
def test_impossible_logs(tmp_path, capsys, column, values, rule):
    run = write_run(tmp_path / "run", num_steps=1)
    file = run / "allocations.parquet" / "step-00000001.parquet"
    table = pq.read_table(file)
    pq.write_table(table.set_column(table.column_names.index(column), column, pa.array(values)), file)
    assert rule in refusal(capsys, run)


def test_two_files_of_one_step(tmp_path, capsys):
    run = write_run(tmp_path / "run", num_steps=2)
    folder = run / "allocations.parquet"
    (folder / "step-00000009.parquet").write_bytes((folder / "step-00000002.parquet").read_bytes())
    assert "must have one file per step, got two of step 2" in refusal(capsys, run)


def test_waves_must_fit_into_their_steps(tmp_path, capsys):
    """More successes after the wave than rollouts."""
    run = write_run(tmp_path / "run", AllocationConfig(budget_max=32, pass_rate_source="probe"), num_steps=1)
    file = run / "allocations.parquet" / "step-00000001.parquet"
    table = pq.read_table(file)
    for column, value in (("successes", "scored"), ("mixed", None)):
        values = table[value] if value else pa.array([False] * 12)
        table = table.set_column(table.column_names.index(column), column, values)
    table = table.set_column(table.column_names.index("wave_successes"), "wave_successes", pa.array([0.0] * 12))
    pq.write_table(table, file)
    assert "successes - wave_successes <= scored - wave_scored" in refusal(capsys, run)


def test_a_file_without_a_row(tmp_path, capsys):
    run = write_run(tmp_path / "run", num_steps=1)
    file = run / "allocations.parquet" / "step-00000001.parquet"
    pq.write_table(pq.read_table(file).slice(0, 0), file)
    assert "at least one row" in refusal(capsys, run)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--coba.verifier", "math"], "--coba.verifier does not affect allocation"),
        (["--rollout.batch_size=3"], "--rollout.batch_size does not affect allocation"),
        (["--coba.tua", "7"], "unknown option --coba.tua; did you mean --coba.tau?"),
        (["--coba.pass_rate.success_threshold", "0.5"], "counts of successes, not scores"),
        (["--grid", "coba.pass_rate.success_rule=score"], "counts of successes, not scores"),
        (["--grid", "coba.verifier=math,exact"], "does not affect allocation"),
        (["--grid", "coba.tau"], "OPTION=VALUE,VALUE"),
        (["--grid", "coba.tau=3,"], "OPTION=VALUE,VALUE"),
        (["--grid", "coba.tau=3", "--grid", "coba.tau=5"], "got coba.tau twice"),
        (["--grid", "coba.tau=3", "--coba.tau", "5"], "a value and a --grid of it"),
        (["--coba.tau", "x"], "coba.tau"),
        (["--coba.tau", "-1"], "coba.tau must be a number in [1e-09, 1e+09], got -1.0"),
        (["--coba.tau", "null"], "coba.tau"),
        (["--coba.kappa", "1"], "coba.kappa = 1.0"),
        (["--strategy", "nope"], "coba.strategy must be one of uniform, coba"),
        (["--strategy", "no.py:Rule"], "coba.strategy must name an existing file"),
        (["--coba.pass_rate.source", "probe"], "needs the log of a run with first waves, got one with source window"),
        (["--coba.budget.min", "9"], "coba budget.min=9: step 1: "),
        (["--coba.budget.max", "7"], "coba budget.max=7: step 1: "),
        (["another_run"], "one run at a time, got also 'another_run'"),
    ],
)
def test_refused_command_lines(run, capsys, argv, message):
    assert message in refusal(capsys, run, *argv)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "the following arguments are required: RUN"),
        (["RUN", "--grid", "coba.tau=3:7"], "coba.tau must be a number, got '3:7'"),
        (["RUN", "--coba.tau"], "--coba.tau: expected one argument"),
        (["RUN", "--strategy"], "expected one argument"),
        (["RUN", "--coba.solver", "fast"], "coba.solver"),
    ],
)
def test_incomplete_command_lines(run, capsys, argv, message):
    assert command.main([str(run) if word == "RUN" else word for word in argv]) == 2
    error = capsys.readouterr().err
    assert error.startswith("no replay: ") and error.count("\n") == 1 and message in error


def test_infeasible_budgets_say_the_arithmetic(run, capsys):
    error = refusal(capsys, run, "--coba.budget.min", "9")
    assert "12" in error and "108" in error and "96" in error


def test_first_waves_cannot_change_their_length(tmp_path, capsys):
    run = write_run(tmp_path / "run", AllocationConfig(budget_max=32, pass_rate_source="probe"), num_steps=2)
    error = refusal(capsys, run, "--coba.pass_rate.probe_rollouts", "3")
    assert "probe_rollouts must be 2 as in the run" in error


def test_an_output_folder_that_cannot_be(run, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert str(tmp_path / "file") in refusal(capsys, run, "--out", str(tmp_path / "file"))


def test_pictures_of_an_earlier_replay_go(run, replayed, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.png").write_text("")
    replayed(run, "--grid", "coba.tau=3,7")
    assert (out / "grid.png").is_file()
    replayed(run)
    names = {file.name for file in out.iterdir()}
    assert names == {"mine.png", "budgets.png", "replay.csv", "signal.png", "summary.json"}


@pytest.mark.parametrize("error", [OSError("No space left on device"), KeyboardInterrupt()])
def test_nothing_is_half_written(run, replayed, tmp_path, monkeypatch, capsys, error):
    replayed(run)
    out = tmp_path / "out"
    before = {file.name: file.read_bytes() for file in out.iterdir()}

    def fail(*_):
        raise error

    monkeypatch.setattr(results, "plot_budgets", fail)
    assert command.main([str(run), "--out", str(out), "--strategy", "mixed"]) in (2, 130)
    assert {file.name: file.read_bytes() for file in out.iterdir()} == before


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"files": 3}', '{"files": ["../run/config.yaml", 3]}'])
def test_a_foreign_summary_in_the_output_folder(run, replayed, tmp_path, content):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "summary.json").write_text(content)
    replayed(run)
    assert (run / "config.yaml").is_file()


def test_interrupted(run, tmp_path, monkeypatch, capsys):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "replay", interrupt)
    assert command.main([str(run), "--out", str(tmp_path / "out")]) == 130
    assert "interrupted" in capsys.readouterr().err and not (tmp_path / "out").exists()


def test_loads_nothing_of_the_training_stack(run, tmp_path):
    code = (
        "import sys; from coba_openrlhf.replay.__main__ import main; "
        f"assert main([{str(run)!r}, '--out', {str(tmp_path / 'out')!r}]) == 0; "
        "print([m for m in ('torch', 'ray', 'vllm', 'deepspeed', 'openrlhf', 'transformers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_module_runs_as_a_command(run, tmp_path):
    argv = [sys.executable, "-m", "coba_openrlhf.replay", str(run), "--out", str(tmp_path), "--strategy", "mixed"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert "reproduced in 12 of 12 steps" in done.stdout and not done.stderr


def test_a_reader_that_has_seen_enough(run, tmp_path):
    argv = [sys.executable, "-m", "coba_openrlhf.replay", str(run), "--out", str(tmp_path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        error = process.stderr.read()
    assert process.returncode == 0 and not error and (tmp_path / "summary.json").is_file()


def test_every_column_is_documented():
    text = (Path(__file__).parents[2] / "docs" / "replay.md").read_text(encoding="utf-8")
    table = text.split("| `replay.csv`", 1)[1].split("\n\n")[0]
    documented = [name for line in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", line.split("|")[1])]
    assert documented == ["rule", "step", *COLUMNS]
    for _, column, _, _ in LAYOUT:
        assert column in documented
    assert " ".join(LIMITS.split()) in " ".join(text.split())


def test_rules_are_values():
    rule = library.Rule("a", AllocationConfig())
    assert rule == library.Rule("a", AllocationConfig())
    with pytest.raises(dataclasses.FrozenInstanceError):
        rule.label = "b"
