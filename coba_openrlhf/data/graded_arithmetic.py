"""Graded arithmetic: short exact-match problems whose difficulty is set by a level letter.

A prompt is `<level letter> <a><op><b>=`, for example `c 573+214=`, and its label is the
plain result, `787`. Operands have three digits, and they are chosen so that neither their sum
carries nor their difference borrows: every digit of the answer depends on one digit pair only,
which a very small model learns within seconds, and both answers always have three digits.

All levels ask the same kind of question. What differs is how reliable the warm-up corpus is:
at level k it follows the operation in the prompt with probability `RIGHT_SHARE[k]`, and
otherwise answers with the other operation (`c 573+214=` -> `359`). A model trained on it
reproduces these shares when sampled at temperature 1, so its pass rate is graded by level, and
reinforcement learning has something to teach at every level: do what the sign says.

This module needs numpy only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

DATASOURCE = "graded_arithmetic"
LEVEL_LETTERS = "abcdefgh"
RIGHT_SHARE = (0.95, 0.8, 0.6, 0.4, 0.2, 0.1, 0.05, 0.02)
CHARACTERS = "0123456789+-= " + LEVEL_LETTERS

# (x, y) digit pairs with 0 <= x - y and x + y <= 9: no borrow and no carry.
_DIGIT_PAIRS = [(x, y) for x in range(10) for y in range(x + 1) if x + y <= 9]
# The leading pair also has 0 < y < x: operands and answers keep three digits, and the two
# operations always disagree in the first digit.
_LEADING_PAIRS = [(x, y) for x, y in _DIGIT_PAIRS if 0 < y < x]


class Question(NamedTuple):
    """`a op b` with op "+" or "-"."""

    a: int
    op: str
    b: int

    def prompt(self, level: int) -> str:
        return f"{LEVEL_LETTERS[level]} {self.a}{self.op}{self.b}="

    def right_answer(self) -> str:
        return str(self.a + self.b if self.op == "+" else self.a - self.b)

    def wrong_answer(self) -> str:
        """The result of the other operation, which the warm-up corpus teaches by mistake."""
        return str(self.a - self.b if self.op == "+" else self.a + self.b)


class Split(NamedTuple):
    """Train and eval rows, and the questions that the warm-up may see (all but those of eval)."""

    train_rows: list[dict]
    eval_rows: list[dict]
    warmup_questions: list[Question]


def all_questions() -> list[Question]:
    """Every question there is, in a fixed order."""
    operands = [
        (100 * x2 + 10 * x1 + x0, 100 * y2 + 10 * y1 + y0)
        for x2, y2 in _LEADING_PAIRS
        for x1, y1 in _DIGIT_PAIRS
        for x0, y0 in _DIGIT_PAIRS
    ]
    return [Question(a, op, b) for a, b in operands for op in "+-"]


def make_row(question: Question, level: int) -> dict:
    """One line of train.jsonl or eval.jsonl."""
    return {
        "input": question.prompt(level),
        "label": question.right_answer(),
        "datasource": DATASOURCE,
        "level": level,
    }


def split_questions(num_train: int, num_eval: int, rng: np.random.Generator) -> Split:
    """Draws disjoint train and eval problems with the levels in equal shares.

    No eval question (operands and operation) occurs in train or in the warm-up questions,
    at any level.

    Args:
        num_train: number of training problems, at least 1.
        num_eval: number of held-out problems, at least 1.
        rng: source of randomness; the same state gives the same split.

    Raises:
        ValueError: if a count is below 1, or both together exceed the number of questions.
    """
    questions = all_questions()
    if num_train < 1 or num_eval < 1 or num_train + num_eval > len(questions):
        raise ValueError(
            "num_train and num_eval must be >= 1 and num_train + num_eval <= "
            f"{len(questions)}, got {num_train} and {num_eval}"
        )
    shuffled = [questions[i] for i in rng.permutation(len(questions))]
    held_out, rest = shuffled[:num_eval], shuffled[num_eval:]
    num_levels = len(LEVEL_LETTERS)
    return Split(
        train_rows=[make_row(question, i % num_levels) for i, question in enumerate(rest[:num_train])],
        eval_rows=[make_row(question, i % num_levels) for i, question in enumerate(held_out)],
        warmup_questions=rest,
    )
