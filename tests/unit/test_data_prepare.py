"""Public data sets in one shape."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coba_openrlhf.data.prepare import sources
from coba_openrlhf.data.prepare.__main__ import main
from coba_openrlhf.data.prepare.error import PrepareError
from coba_openrlhf.data.prepare.normalise import answer_text, normalise
from coba_openrlhf.data.prepare.output import fingerprint
from coba_openrlhf.data.prepare.specs import BOXED, DAPO_HEAD, DAPO_TAIL, SPECS
from coba_openrlhf.preflight.data_sets import read_checked_rows
from tests.rollouts import base_config

SHARED = Path(__file__).parents[3] / "shared" / "data"
# Name -> rows of the file, first and last answer.
IN_SHARED = {
    "aime24": (30, "204", None),
    "aime25": (30, "70", None),
    "amc23": (40, "27", None),
    "math500": (500, "\\left( 3, \\frac{\\pi}{2} \\right)", None),
    "olympiadbench": (675, "2", None),
    "gsm8k": (1319, "18", None),
    "gsm8k-train": (7473, "72", None),
    "mawps-addsub": (395, "43", None),
    "mawps-multiarith": (600, "39", None),
    "mawps-singleop": (562, "14", None),
}


@pytest.mark.parametrize("name", IN_SHARED)
def test_files_at_hand(name, tmp_path, capsys):
    if not (SHARED / f"{SPECS[name].file}.jsonl").is_file():
        pytest.skip(f"no {SPECS[name].file}.jsonl in ../shared/data, the development folder beside this repository")
    assert main([name, "--from", str(SHARED), "--out", str(tmp_path)]) == 0
    rows = pq.read_table(tmp_path / f"{name}.parquet").to_pylist()
    note = json.loads((tmp_path / f"{name}.source.json").read_text(encoding="utf-8"))
    num_rows, first_answer, _ = IN_SHARED[name]
    assert len(rows) == note["num_rows"] == num_rows and note["dropped"] == {}
    assert rows[0]["label"] == first_answer
    assert list(rows[0])[:4] == ["prompt", "label", "datasource", "id"] and rows[0]["datasource"] == name
    assert note["fingerprint"] == fingerprint(rows) and note["revision"] is None
    assert all(row["prompt"] and row["label"] and "boxed{}" not in row["prompt"] for row in rows)
    assert len({row["id"] for row in rows}) == num_rows
    # As training and evaluation read it.
    config = base_config({"data.input_key": "prompt", "data.label_key": "label"})
    assert len(read_checked_rows("data.prompt_dataset", str(tmp_path / f"{name}.parquet"), config)) == num_rows


def one(name, row):
    return normalise(name, SPECS[name], [row], "file").rows[0]


def test_dapo_loses_its_instruction_and_its_repetitions():
    row = {
        "prompt": [{"role": "user", "content": f"{DAPO_HEAD}What is 1+1?{DAPO_TAIL}"}],
        "reward_model": {"ground_truth": "2", "style": "rule"},
        "extra_info": {"index": "abc"},
    }
    other = {**row, "reward_model": {"ground_truth": "3"}}
    result = normalise("dapo-math-17k", SPECS["dapo-math-17k"], [row, row, other], "file")
    assert result.rows[0] == {"prompt": "What is 1+1?", "label": "2", "datasource": "dapo-math-17k", "id": "abc"}
    assert len(result.rows) == 2 and result.dropped == {"repeated": 1}


def test_repeated_rows_of_other_sets_stay():
    row = {"problem": "1+1", "answer": 2.0}
    assert len(normalise("amc23", SPECS["amc23"], [row, row], "file").rows) == 2


def test_gsm8k_takes_the_answer_after_the_mark():
    row = one("gsm8k", {"question": "Q é 🙂\u2028", "answer": "1,000 + 234\n#### 1,234"})
    assert row["label"] == "1234" and row["prompt"] == "Q é 🙂" and row["source_answer"].endswith("#### 1,234")


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ("np.arcsin(10/13)", "\\arcsin(10/13)"),
        ("-1./3", "-1/3"),
        ("-3./2", "-3/2"),
        ("4.5e33", "4.5e33"),
        ("0.5", "0.5"),
        ("\\frac{dx}{dt}=kx-a", "\\frac{dx}{dt}=kx-a"),
    ],
)
def test_minervas_python_becomes_latex(answer, label):
    assert one("minerva", {"question": "Q", "answer": answer})["label"] == label


def test_aime25_loses_its_instruction():
    assert one("aime25", {"problem": f"1+1{BOXED}", "answer": "2"})["prompt"] == "1+1"


def test_olympiadbench_lists_and_context():
    row = {"id": 7, "question": "Q", "context": "C", "final_answer": ["$2$", "3"], "unit": None, "subfield": "Algebra"}
    prepared = one("olympiadbench", row)
    assert (prepared["prompt"], prepared["label"], prepared["id"]) == ("C\nQ", "2, 3", "7")
    assert (prepared["unit"], prepared["subfield"], prepared["error"]) == ("", "Algebra", "")


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (27.0, "27"),
        (0.1, "0.1"),
        (43, "43"),
        (-5.0, "-5"),
        (" x ", "x"),
        ("$x$", "x"),
        ("$a$, $b$", "$a$, $b$"),
        ("$", "$"),
        (["$3$"], "3"),
        ([1.0, 2.5], "1, 2.5"),
        (None, ""),
        (True, "True"),
    ],
)
def test_answers_as_text(cell, text):
    assert answer_text(cell) == text


@pytest.mark.parametrize("cell", [{"a": 1}, float("nan"), float("inf"), [{"a": 1}]])
def test_answers_that_are_none(cell):
    with pytest.raises(ValueError, match="the answer must be"):
        answer_text(cell)


def test_unusable_rows_are_counted_and_columns_named():
    rows = [{"problem": "1+1", "answer": "2"}, {"problem": " ", "answer": "2"}, {"problem": "1+2", "answer": None}]
    assert normalise("amc23", SPECS["amc23"], rows, "file").dropped == {"no problem": 1, "no answer": 1}
    with pytest.raises(PrepareError, match=r"f.jsonl, row 0: no column 'answer' for amc23; it has problem, solution"):
        normalise("amc23", SPECS["amc23"], [{"problem": "1+1", "solution": "2"}], "f.jsonl")
    with pytest.raises(PrepareError, match=r"f.jsonl, row 0: the problem must be text, got int: 3"):
        normalise("amc23", SPECS["amc23"], [{"problem": 3, "answer": "2"}], "f.jsonl")
    with pytest.raises(PrepareError, match=r"f\.jsonl has no usable row"):
        normalise("amc23", SPECS["amc23"], [], "f.jsonl")


def test_all_means_what_can_be_had(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr("coba_openrlhf.data.prepare.__main__._prepare", lambda name, out, folder: asked.append(name))
    assert main(["all"]) == 0 and asked == [name for name, spec in SPECS.items() if spec.hub]
    asked.clear()
    assert main(["minerva", "all", "--from", str(tmp_path)]) == 0 and sorted(asked) == sorted(SPECS)


def test_a_csv_with_a_cell_that_is_too_large(tmp_path, capsys):
    (tmp_path / "minerva.csv").write_text(f"question,answer\n{'1' * 200_000},2\n")
    assert main(["minerva", "--from", str(tmp_path), "--out", str(tmp_path)]) == 2
    assert "minerva.csv cannot be read: field larger than field limit" in capsys.readouterr().err


@pytest.mark.parametrize("ending", [".jsonl", ".json", ".csv", ".parquet"])
def test_local_files(tmp_path, ending, capsys):
    rows = [{"question": "1\u20281?", "answer": "2"}, {"question": 'say "é", 2', "answer": "3"}]
    file = tmp_path / f"minerva{ending}"
    if ending == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), file)
    elif ending == ".csv":
        file.write_text('question,answer\n1\u20281?,2\n"say ""é"", 2",3\n', encoding="utf-8")
    elif ending == ".json":
        file.write_text(json.dumps(rows), encoding="utf-8")
    else:
        file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    assert main(["minerva", "--from", str(tmp_path), "--out", str(tmp_path / "out")]) == 0
    prepared = pq.read_table(tmp_path / "out" / "minerva.parquet").to_pylist()
    assert [(row["prompt"], row["label"]) for row in prepared] == [(row["question"], row["answer"]) for row in rows]
    assert "minerva.parquet  2 rows" in capsys.readouterr().out


def test_refusals(tmp_path, capsys):
    for words, message in (
        ([], "name at least one of dapo-math-17k, "),
        (["aime99"], "'aime99' is not known; there are dapo-math-17k, "),
        (["minerva", "--from", str(tmp_path)], "has no file for minerva: looked for minerva with .jsonl"),
        (["mawps-addsub"], "mawps-addsub is known from local files only: Without the hub, place the file mawps_addsub"),
    ):
        assert main([*words, "--out", str(tmp_path)]) == 2
        assert message in capsys.readouterr().err
    (tmp_path / "minerva.jsonl").write_bytes(b"\xff")
    assert main(["minerva", "--from", str(tmp_path), "--out", str(tmp_path)]) == 2
    assert "minerva.jsonl cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("ending", "text", "message"),
    [
        (
            ".jsonl",
            '{"question": "1", "answer": "2"}\n\n{"question": "\\ud800", "answer": "2"}\n',
            r"line 3: '\ud800' is half",
        ),
        (
            ".json",
            '[{"question": "1", "answer": "2"}, {"question": "2", "a": ["\\udfff"]}]',
            r"row 1: '\udfff' is half",
        ),
        (".jsonl", '{"question": "1", "answer": "2"}\n{"question": \n', "line 2: Expecting value (column 13)"),
        (".jsonl", '{"question": "1", "answer": "2"}\n[1]\n', "line 2: a row must be an object, got [1]"),
        (".json", '{"question": "1", "answer": "2"}', "it must hold a list of rows"),
        (".json", "[1]", "row 0: a row must be an object, got 1"),
    ],
)
def test_damaged_json_is_refused_with_file_and_place(tmp_path, capsys, ending, text, message):
    file = tmp_path / f"minerva{ending}"
    file.write_text(text)
    assert main(["minerva", "--from", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    assert f"no data set: {file} cannot be read: {message}" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_whole_surrogate_pairs_are_one_character(tmp_path):
    (tmp_path / "minerva.jsonl").write_text('{"question": "\\ud83d\\ude42?", "answer": "2"}\n')
    assert main(["minerva", "--from", str(tmp_path), "--out", str(tmp_path)]) == 0
    assert pq.read_table(tmp_path / "minerva.parquet")["prompt"].to_pylist() == ["🙂?"]


def test_a_damaged_table_is_refused(tmp_path, capsys):
    (tmp_path / "minerva.parquet").write_bytes(b"PAR1 not really")
    assert main(["minerva", "--from", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    assert "minerva.parquet cannot be read: " in capsys.readouterr().err


def test_tables_are_read_in_pieces(tmp_path, monkeypatch):
    """As many rows as fit are Python objects at a time; repeated ones go whatever piece they are in."""
    monkeypatch.setattr(sources, "BATCH_ROWS", 2)
    row = {"prompt": [{"content": "1+1?", "role": "user"}], "reward_model": {"ground_truth": "2"}}
    pq.write_table(pa.Table.from_pylist([row] * 5), tmp_path / "dapo-math-17k.parquet")
    assert main(["dapo-math-17k", "--from", str(tmp_path), "--out", str(tmp_path / "out")]) == 0
    assert pq.read_table(tmp_path / "out" / "dapo-math-17k.parquet").num_rows == 1


def test_without_network_it_says_which_file_to_place_where(tmp_path, monkeypatch, capsys):
    import huggingface_hub

    def no_network(*_, **__):
        raise ConnectionError("no route to host")

    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", no_network)
    assert main(["math500", "--out", str(tmp_path)]) == 2
    message = capsys.readouterr().err
    assert (
        "math500 cannot be downloaded from the Hugging Face hub (HuggingFaceH4/MATH-500): no route to host." in message
    )
    assert "place the file math500.jsonl" in message and "--from FOLDER" in message
    assert not list(tmp_path.iterdir())


def test_the_list_names_all(capsys):
    assert main(["--list"]) == 0
    text = capsys.readouterr().out
    assert all(f"\n{name} " in text for name in SPECS) and "BytedTsinghua-SIA/DAPO-Math-17k" in text
    assert sources.HUB_SECONDS > 0
