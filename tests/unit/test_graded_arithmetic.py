"""Laws of the graded arithmetic problems; no training."""

import re
from collections import Counter

import numpy as np
import pytest

from coba_openrlhf.data.graded_arithmetic import (
    CHARACTERS,
    LEVEL_LETTERS,
    RIGHT_SHARE,
    all_questions,
    split_questions,
)

ROW_PATTERN = re.compile(r"([a-h]) (\d{3})([+-])(\d{3})=")


def split(seed=0, num_train=512, num_eval=256):
    return split_questions(num_train, num_eval, np.random.default_rng(seed))


def operation_of(row):
    return row["input"][2:]


def test_labels_are_right():
    rows = split().train_rows + split().eval_rows
    assert len(rows) == 512 + 256
    for row in rows:
        letter, a, op, b = ROW_PATTERN.fullmatch(row["input"]).groups()
        result = int(a) + int(b) if op == "+" else int(a) - int(b)
        assert row["label"] == str(result)
        assert row["level"] == LEVEL_LETTERS.index(letter)
        assert row["datasource"] == "graded_arithmetic"


def test_every_question_has_two_distinct_three_digit_answers():
    questions = all_questions()
    assert len(set(questions)) == len(questions)
    for a, _, b in questions:
        # Digit by digit: neither a carry nor a borrow, whichever operation is taken.
        for x, y in zip(str(a), str(b), strict=True):
            assert int(x) >= int(y) and int(x) + int(y) <= 9
        assert 100 <= a - b < a + b <= 999
    for question in questions[::97]:
        answers = {str(question.a + question.b), str(question.a - question.b)}
        assert {question.right_answer(), question.wrong_answer()} == answers


def test_eval_is_held_out():
    parts = split()
    held_out = {operation_of(row) for row in parts.eval_rows}
    assert len(held_out) == len(parts.eval_rows)
    assert held_out.isdisjoint(operation_of(row) for row in parts.train_rows)
    assert held_out.isdisjoint(question.prompt(0)[2:] for question in parts.warmup_questions)


def test_seed_decides_the_split():
    assert split(seed=3) == split(seed=3)
    assert split(seed=3).train_rows != split(seed=4).train_rows


def test_levels_are_evenly_spread():
    for rows in split()[:2]:
        counts = Counter(row["level"] for row in rows)
        assert counts == {level: len(rows) // len(LEVEL_LETTERS) for level in range(len(LEVEL_LETTERS))}
    assert len(RIGHT_SHARE) == len(LEVEL_LETTERS)
    assert list(RIGHT_SHARE) == sorted(RIGHT_SHARE, reverse=True)
    assert RIGHT_SHARE[0] >= 0.9 and RIGHT_SHARE[-1] <= 0.05


@pytest.mark.parametrize(("num_train", "num_eval"), [(0, 8), (8, 0), (8, len(all_questions()))])
def test_bad_counts_are_refused(num_train, num_eval):
    with pytest.raises(ValueError, match=f"got {num_train} and {num_eval}"):
        split(num_train=num_train, num_eval=num_eval)


def test_tokenizer_has_one_token_per_character(tmp_path):
    transformers = pytest.importorskip("transformers")
    from coba_openrlhf.prepare.quickstart import build_tokenizer

    tokenizer = build_tokenizer()
    # AutoTokenizer chooses the class by the model type in config.json, hence the round trip.
    (tmp_path / "config.json").write_text('{"model_type": "qwen2"}')
    tokenizer.save_pretrained(tmp_path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)

    ids = tokenizer(CHARACTERS + tokenizer.eos_token)["input_ids"]
    assert len(set(ids)) == len(CHARACTERS) + 1
    assert ids[-1] == tokenizer.eos_token_id
    assert tokenizer.pad_token_id not in (*ids, None)
    assert tokenizer.decode(ids, skip_special_tokens=True) == CHARACTERS
    row = split().eval_rows[0]
    assert len(tokenizer(row["input"])["input_ids"]) == len(row["input"])
    assert set("".join(row["input"] + row["label"] for row in split().train_rows)) <= set(CHARACTERS)
