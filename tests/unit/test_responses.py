"""Seeds, files and summaries of responses."""

import math

import numpy as np
import pyarrow as pa
import pytest

from coba_openrlhf.evaluation import settings_file
from coba_openrlhf.evaluation.metrics import pass_ks
from coba_openrlhf.evaluation.response_files import FOLDER, SCHEMA, ResponseFiles
from coba_openrlhf.evaluation.seeds import request_seed
from coba_openrlhf.evaluation.summary import scores_by_source, summarise


def responses(source, row, scores, lengths=None):
    k = len(scores)
    return {
        "datasource": [source] * k,
        "row": [row] * k,
        "problem_id": [f"{source}-{row}"] * k,
        "index": list(range(k)),
        "prompt": ["1+1=🙂"] * k,
        "label": ["2"] * k,
        "response": ["two\u2028"] * k,
        "score": scores,
        "reason": [None] * k,
        "num_tokens": lengths or [3] * k,
        "truncated": [False] * (k - 1) + [True],
    }


def test_seeds_depend_on_everything_and_nothing_else():
    seeds = {request_seed(s, p, i) for s in (0, 1) for p in ("a", "b") for i in range(4)}
    assert len(seeds) == 16 and all(0 <= seed < 2**62 for seed in seeds)
    assert request_seed(42, "56b83871124d7789", 3) == 4512324467396114884


def test_pass_at_powers_of_two():
    assert [pass_ks(k) for k in (1, 2, 4, 6, 16)] == [[1], [1, 2], [1, 2, 4], [1, 2, 4, 6], [1, 2, 4, 8, 16]]


def test_files_are_one_table_whatever_the_chunks(tmp_path):
    files = ResponseFiles(tmp_path)
    assert files.finished() == set()
    with pytest.raises(ValueError, match="holds no responses"):
        files.read()
    files.write(responses("b", 0, [1.0, 0.0]))
    files.write(responses("a", 1, [0.0, None]))
    files.write(responses("a", 0, [1.0, 1.0]))
    assert files.finished() == {"b-0", "a-1", "a-0"}
    table = files.read()
    assert table.schema == SCHEMA
    assert table["problem_id"].to_pylist() == ["a-0", "a-0", "a-1", "a-1", "b-0", "b-0"]
    assert table["index"].to_pylist() == [0, 1] * 3
    assert table["response"][0].as_py() == "two\u2028"


def test_a_removed_chunk_is_written_again_and_a_killed_one_leaves_nothing(tmp_path):
    files = ResponseFiles(tmp_path)
    for row in range(3):
        files.write(responses("a", row, [1.0]))
    (tmp_path / FOLDER / "chunk-000001.parquet").unlink()
    (tmp_path / FOLDER / ".abc.tmp").write_bytes(b"half a file")
    assert files.finished() == {"a-0", "a-2"}
    files.write(responses("a", 1, [1.0]))
    assert files.finished() == {"a-0", "a-1", "a-2"}
    assert sorted(f.name for f in (tmp_path / FOLDER).iterdir()) == [f"chunk-00000{i}.parquet" for i in (0, 2, 3)]


def test_damaged_file(tmp_path):
    files = ResponseFiles(tmp_path)
    files.write(responses("a", 0, [1.0]))
    (tmp_path / FOLDER / "chunk-000001.parquet").write_bytes(b"PAR1 nonsense")
    with pytest.raises(ValueError, match="damaged"):
        files.read()


def test_summary_per_source():
    table = pa.concat_tables(
        pa.table(responses(*row), SCHEMA)
        for row in [("a", 0, [1.0, 0.0, None, 0.0], [1, 2, 3, 6]), ("a", 1, [0.0] * 4), ("b", 0, [1.0] * 4)]
    )
    a, b = summarise(table)
    assert (a.source, a.num_problems, a.k) == ("a", 2, 4)
    assert a.avg.value == pytest.approx(1 / 8)
    assert {k: i.value for k, i in a.passes.items()} == pytest.approx({1: 1 / 8, 2: 1 / 4, 4: 1 / 2})
    assert (a.unscorable_rate, a.truncated_rate) == (1 / 8, 1 / 4)
    assert (a.length_mean, a.length_median, a.length_max) == (3.0, 3.0, 6)
    assert b.avg.value == 1.0 and math.isnan(b.avg.low)


def test_problems_need_equally_many_responses():
    table = pa.concat_tables(pa.table(responses("a", row, scores), SCHEMA) for row, scores in [(0, [1.0]), (1, [1, 0])])
    with pytest.raises(ValueError, match="a: every problem must have the same number of responses"):
        scores_by_source(table)
    assert np.isnan(scores_by_source(pa.table(responses("a", 0, [None]), SCHEMA))["a"].score_NK).all()


def test_responses_that_are_there_twice_are_no_further_responses(tmp_path):
    files = ResponseFiles(tmp_path)
    for _ in range(2):
        files.write(responses("a", 0, [1.0, 0.0]))
    with pytest.raises(ValueError, match="a: the responses of every problem must have the indices"):
        summarise(files.read())


def test_one_evaluation_at_a_time(tmp_path):
    refused = pytest.raises(settings_file.FolderInUseError, match="another evaluation writes to")
    with settings_file.held(tmp_path / "new"), refused, settings_file.held(tmp_path / "new"):
        pass
    with settings_file.held(tmp_path / "new"):
        assert not ResponseFiles(tmp_path / "new").finished()


def test_an_evaluation_is_continued_only_with_the_same_settings(tmp_path):
    settings = {"k": 4, "top_p": 0.9, "problems": {"a": "x"}, "system_prompt": None, "é": [1]}
    assert not settings_file.claim(tmp_path / "new", settings)
    assert settings_file.claim(tmp_path / "new", dict(settings))
    with pytest.raises(settings_file.SettingsChangedError) as error:
        settings_file.claim(tmp_path / "new", {**settings, "top_p": 1.0, "problems": {"a": "x", "b": "y"}})
    assert str(error.value) == 'top_p: 0.9 -> 1.0; problems.b: null -> "y"'
    (tmp_path / "new" / settings_file.FILE).write_text("{")
    with pytest.raises(settings_file.SettingsChangedError, match="is damaged"):
        settings_file.claim(tmp_path / "new", settings)
