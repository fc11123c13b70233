"""Downloads by the real ``huggingface_hub`` and ``datasets``, from a server on this machine."""

import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coba_openrlhf.data.prepare.output import fingerprint
from coba_openrlhf.data.prepare.specs import DAPO_HEAD, DAPO_TAIL, SPECS
from tests.fake_hub import FakeHub, Repository

ROOT = Path(__file__).parents[2]
MINERVA = SPECS["minerva"].hub


@pytest.fixture
def hub():
    server = FakeHub()
    yield server
    server.close()


@pytest.fixture
def prepare(tmp_path, hub):
    """Runs the command in an empty folder with an empty cache; the output is ``tmp_path / "data"``."""

    def run(*names, **variables):
        (tmp_path / "work").mkdir(exist_ok=True)
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGING"))}
        environment |= {
            "HF_HOME": str(tmp_path / "hf"),
            "HF_ENDPOINT": hub.url,
            "NO_PROXY": "127.0.0.1,localhost",
        } | variables
        done = subprocess.run(
            [sys.executable, "-m", "coba_openrlhf.data.prepare", *names, "--out", str(tmp_path / "data")],
            cwd=tmp_path / "work",
            env=environment | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert "Traceback" not in done.stderr
        return done

    return run


def jsonl(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def parquet(*rows):
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows)), buffer)
    return buffer.getvalue()


def card(configs, **more):
    """A README whose metadata name the files of every configuration and split: {"main": {"test": "main/test-*"}}."""
    entries = [
        {"config_name": name, "data_files": [{"split": split, "path": path} for split, path in splits.items()]}
        for name, splits in configs.items()
    ]
    lines = [f"{key}: {json.dumps(value)}" for key, value in {**more, "configs": entries}.items()]
    return "\n".join(["---", *lines, "---", "# A data set", ""]).encode()


# Rows of our own in the columns, files and folders of the published sets.
DAPO = [
    {
        "data_source": "math_dapo",
        "prompt": [{"content": f"{DAPO_HEAD}What is $1+{i}$?{DAPO_TAIL}", "role": "user"}],
        "ability": "MATH",
        "reward_model": {"ground_truth": str(1 + i), "style": "rule-lighteval/MATH_v2"},
        "extra_info": {"index": f"0000-{i}"},
    }
    for i in (1, 2, 1, 2)
]
DEEPSCALER = [
    {"problem": "What is $1-\\frac{1}{3}$?", "answer": "\\frac{2}{3}", "solution": "Subtract. $\\boxed{\\frac{2}{3}}$"},
    {"problem": "Prove it.", "answer": "", "solution": "Obvious."},
]
GSM8K = [{"question": "Half of 2,468?", "answer": "<<2468/2=1234>>\n#### 1,234"}]
OLYMPIAD = [
    {"id": 7, "question": "Which $x$?", "context": None, "final_answer": ["$2$", "$-2$"], "subfield": "Algebra"}
    | {"answer_type": "Numerical", "unit": None, "is_multiple_answer": True, "error": None, "modality": "Text-only"}
]
MINERVA_ROWS = [{"question": "How far is it?", "answer": "4.5e33"}, {"question": "And back?", "answer": "-1"}]


def repositories():
    olympiad = "OlympiadBench/OE_TO_maths_en_COMP/OE_TO_maths_en_COMP.parquet"
    return {
        "BytedTsinghua-SIA/DAPO-Math-17k": Repository(
            {"README.md": b"---\nlicense: apache-2.0\n---\n", "data/dapo-math-17k.parquet": parquet(*DAPO)},
            {"license": "apache-2.0"},
        ),
        "agentica-org/DeepScaleR-Preview-Dataset": Repository(
            {"README.md": b"---\nlicense: mit\n---\n", "deepscaler.json": json.dumps(DEEPSCALER, indent=2).encode()},
            {"license": "mit"},
        ),
        "openai/gsm8k": Repository(
            {
                "README.md": card({n: {s: f"{n}/{s}-*" for s in ("train", "test")} for n in ("main", "socratic")}),
                "main/test-00000-of-00001.parquet": parquet(*GSM8K),
                "main/train-00000-of-00001.parquet": parquet({"question": "1+1?", "answer": "#### 2"}),
                "socratic/test-00000-of-00001.parquet": parquet({"question": "Why?", "answer": "#### 3"}),
                "socratic/train-00000-of-00001.parquet": parquet({"question": "How?", "answer": "#### 4"}),
            },
            {"license": ["mit"]},
            "2" * 40,
        ),
        "Hothan/OlympiadBench": Repository(
            {
                "README.md": card({"OE_MM": {"train": "other.parquet"}, "OE_TO_maths_en_COMP": {"train": olympiad}}),
                "other.parquet": parquet({"question": "no"}),
                olympiad: parquet(*OLYMPIAD),
            },
            {"license": "apache-2.0"},
        ),
        MINERVA: Repository({".gitattributes": b"x", "test.jsonl": jsonl(*MINERVA_ROWS)}),
    }


LOCAL = {"dapo-math-17k": DAPO, "deepscaler": DEEPSCALER, "minerva": MINERVA_ROWS, "gsm8k": GSM8K}
LOCAL["olympiadbench"] = OLYMPIAD


def test_every_layout_comes_through(prepare, hub, tmp_path):
    """Published as parquet, JSON or JSONL, with and without a card, a configuration and a split of its name."""
    hub.repositories = repositories()
    done = prepare(*LOCAL)
    assert done.returncode == 0, done.stderr
    notes = {name: json.loads((tmp_path / "data" / f"{name}.source.json").read_text()) for name in LOCAL}
    assert "dapo-math-17k.parquet  2 rows, 2 left out (repeated)" in done.stdout
    assert notes["deepscaler"]["dropped"] == {"no answer": 1}
    assert {name: note["licence"] for name, note in notes.items()} == {
        "dapo-math-17k": "apache-2.0",
        "deepscaler": "mit",
        "minerva": "not stated on the hub",
        "gsm8k": "mit",
        "olympiadbench": "apache-2.0",
    }
    assert notes["gsm8k"]["revision"] == "2" * 40 and notes["dapo-math-17k"]["revision"] == "1" * 40
    assert (notes["gsm8k"]["configuration"], notes["gsm8k"]["split"]) == ("main", "test")
    assert notes["olympiadbench"]["configuration"] == "OE_TO_maths_en_COMP"
    # The same rows as from files in a folder.
    for name, rows in LOCAL.items():
        (tmp_path / f"{SPECS[name].file}.jsonl").write_bytes(jsonl(*rows))
        prepared = pq.read_table(tmp_path / "data" / f"{name}.parquet").to_pylist()
        assert notes[name]["fingerprint"] == fingerprint(prepared)
    assert prepare(*LOCAL, "--from", str(tmp_path)).returncode == 0
    for name, note in notes.items():
        again = json.loads((tmp_path / "data" / f"{name}.source.json").read_text())
        assert (again["fingerprint"], again["sha256"]) == (note["fingerprint"], note["sha256"]) and not again[
            "revision"
        ]


def test_a_folder_of_that_name_is_not_taken_for_the_hub(prepare, hub, tmp_path):
    hub.repositories = repositories()
    folder = tmp_path / "work" / MINERVA
    folder.mkdir(parents=True)
    (folder / "test.jsonl").write_bytes(jsonl({"question": "Mine?", "answer": "1"}))
    assert prepare("minerva").returncode == 0
    assert pq.read_table(tmp_path / "data" / "minerva.parquet")["prompt"].to_pylist() == ["How far is it?", "And back?"]


def test_an_older_revision_of_the_cache_is_not_passed_off_as_the_newest(prepare, hub, tmp_path):
    hub.repositories = repositories()
    assert prepare("minerva").returncode == 0
    before = (tmp_path / "data" / "minerva.source.json").read_bytes()
    hub.repositories[MINERVA].commit = "3" * 40
    hub.repositories[MINERVA].file_refusal = (403, "")
    done = prepare("minerva")
    assert (
        done.returncode == 2 and f"revision {'3' * 40} cannot be loaded, only {'1' * 40} is in the cache" in done.stderr
    )
    assert (tmp_path / "data" / "minerva.source.json").read_bytes() == before


PLACE = "Without the hub, place the file minerva.jsonl (or .json, .parquet, .csv; columns problem or question (problem)"


@pytest.mark.parametrize(
    ("repository", "reason"),
    [
        (None, "it has no such data set, or shows it to some accounts only (then: hf auth login). "),
        (Repository(refusal=(404, "RepoNotFound")), "it has no such data set, or shows it to some accounts only"),
        (Repository(refusal=(503, "")), "503"),
        (Repository({"README.md": b""}, file_refusal=(403, "GatedRepo")), "is a gated dataset on the Hub"),
        (Repository({"README.md": b"---\n---\n"}), "doesn't contain any data files"),
        (Repository({"minervamath.py": b""}), "Dataset scripts are no longer supported"),
        (Repository({"train.jsonl": jsonl(*MINERVA_ROWS)}), "Unknown split "),
        (Repository({"test.parquet": b"PAR1, not really"}), "Parquet magic bytes not found"),
    ],
    ids=["401", "404", "503", "gated", "empty", "script", "split", "damaged"],
)
def test_what_the_hub_does_not_have(prepare, hub, tmp_path, repository, reason):
    if repository:
        hub.repositories[MINERVA] = repository
    done = prepare("minerva")
    assert done.returncode == 2
    message = done.stderr[done.stderr.index("no data set: ") :]
    assert message.startswith(f"no data set: minerva cannot be downloaded from the Hugging Face hub ({MINERVA}): ")
    assert reason in message and PLACE in message and message.count("\n") == 1
    assert not (tmp_path / "data").exists()


def test_no_hub_at_all(prepare, hub):
    """Nothing listens; the hub is forbidden; it accepts questions and never answers. All end soon."""
    hub.repositories[MINERVA] = Repository(is_silent=True)
    for variables, reason in (
        ({"HF_ENDPOINT": "http://127.0.0.1:9"}, "Connection refused"),
        ({"HF_HUB_OFFLINE": "1"}, "offline mode is enabled"),
        ({}, "timed out"),
    ):
        started = time.monotonic()
        done = prepare("minerva", **variables)
        assert time.monotonic() - started < 20
        assert done.returncode == 2 and reason in done.stderr and PLACE in done.stderr
