"""Built-in verifiers, and the pool that survives hostile answers."""

import asyncio
import math
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coba_openrlhf.rewards import verifier_pool
from coba_openrlhf.rewards.verifier_pool import VerifierPool
from coba_openrlhf.rewards.verifiers import (
    VERIFIERS,
    check_label,
    last_boxed,
    verify_exact,
    verify_math,
    verify_numeric,
)

# Takes minutes to evaluate, which the verifiers themselves do not limit.
HOSTILE = r"\boxed{" + "!".join(["9999999"] + [""] * 3) + "}"


@pytest.mark.parametrize(
    ("response", "label", "right"), [(" 12\n", "12", 1), ("12.0", "12", 0), ("x12", "12", 0), ("", "12", 0)]
)
def test_exact(response, label, right):
    assert verify_exact(response, label) == right


@pytest.mark.parametrize(
    ("response", "label", "right"),
    [
        ("12", "12.0", 1),
        ("3 + 4 = 7", "7", 1),
        ("7, not 8", "7", 0),
        ("it costs 1,234.50 dollars", "1234.5", 1),
        ("-0.5", "-.5", 1),
        ("1e3", "1000", 1),
        ("0.33333333", "0.3333333333", 1),
        ("about 12.1", "12", 0),
        ("no idea", "12", 0),
        ("", "0", 0),
        ("line5", "5", 1),
        ("e5", "5", 1),
        ("1e999", "5", 0),
        ("9" * 5000, "5", 0),
        ("12.", "12", 1),
        ("1.2.3", "0.3", 1),
    ],
)
def test_numeric(response, label, right):
    assert verify_numeric(response, label) == right


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.text(alphabet="0123456789.,-+eE 五٣x", max_size=12))
def test_numeric_raises_nothing(response):
    assert verify_numeric(response, "5") in (0.0, 1.0)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.floats(-1e9, 1e9, allow_nan=False), st.floats(-1e9, 1e9, allow_nan=False))
def test_numeric_follows_the_last_number(first, last):
    assert verify_numeric(f"{first!r} then {last!r}.", repr(last)) == 1.0


@pytest.mark.parametrize(
    ("response", "label", "right"),
    [
        ("12", "12.0", 1),
        ("The answer is 12.", "12.0", 1),
        (r"\boxed{12}", "12.0", 1),
        (r"First \boxed{7}, no: \boxed{12}", "12", 1),
        (r"First \boxed{12}, no: \boxed{7}", "12", 0),
        (r"\boxed{\frac{3}{8}}", r"\dfrac{3}{8}", 1),
        (r"\boxed{0.375}", r"\dfrac{3}{8}", 1),
        (r"\boxed{9}", "5 and 9", 0),
        (r"\boxed{x<7}", r"(-\infty,7)", 1),
        (r"\boxed{x<8}", r"(-\infty,7)", 0),
        (r"\boxed{(1, 2)}", "(1,2)", 1),
        (r"\boxed{}", "12", 0),
        (r"\boxed{12", "12", 0),
        ("", "12", 0),
    ],
)
def test_math(response, label, right):
    assert verify_math(response, label) == right


@pytest.mark.parametrize(
    "response",
    ["{" * 3000, r"\boxed{" * 500, r"\boxed{" + "(" * 500 + "}", "\x00\ud800", r"\boxed{\frac{1}{0}}", "^_" * 500],
)
def test_math_raises_nothing(response):
    assert verify_math(response, "12") == 0.0


def test_last_boxed_balances_braces():
    assert last_boxed(r"\boxed{1} and \boxed{\frac{1}{2}} end}") == r"\frac{1}{2}"
    assert last_boxed(r"\boxed{1") is None
    assert last_boxed("none") is None


@pytest.mark.parametrize(
    ("verifier", "label", "message"),
    [
        ("exact", "  ", "the reference answer is empty"),
        ("math", "", "the reference answer is empty"),
        ("numeric", "inf", "must be a finite number for coba.verifier: numeric, got 'inf'"),
        ("numeric", "twelve", "must be a finite number for coba.verifier: numeric, got 'twelve'"),
    ],
)
def test_labels_that_nothing_could_match(verifier, label, message):
    with pytest.raises(ValueError, match=message):
        check_label(verifier, label)


@pytest.mark.parametrize(("verifier", "label"), [("exact", "anything"), ("math", r"\frac12"), ("numeric", "1,200.5")])
def test_good_labels_pass(verifier, label):
    check_label(verifier, label)


def test_every_verifier_scores_its_own_label():
    assert {name: verify("12", "12") for name, verify in VERIFIERS.items()} == dict.fromkeys(VERIFIERS, 1.0)


@pytest.fixture(scope="module")
def math_pool():
    pool = VerifierPool("math", timeout=3.0)
    yield pool
    pool.close()


def test_hostile_answer_times_out_and_the_pool_works_on(math_pool):
    async def batch():
        return await asyncio.gather(
            math_pool.score(r"\boxed{12}", "12.0"),
            math_pool.score(HOSTILE, "12"),
            math_pool.score(r"\boxed{13}", "12"),
            math_pool.score(r"\boxed{12}", "12"),
        )

    started = time.perf_counter()
    assert asyncio.run(batch()) == [1.0, None, 0.0, 1.0]
    assert time.perf_counter() - started < 30


def test_pool_works_from_another_thread(math_pool):
    with ThreadPoolExecutor(1) as threads:
        score = threads.submit(lambda: asyncio.run(math_pool.score("12", "12.0"))).result(timeout=60)
    assert score == 1.0


def test_waiting_for_the_pool_does_not_block_the_loop(math_pool):
    """Generation goes on in the engine's event loop while an answer is checked."""

    async def both():
        check = asyncio.create_task(math_pool.score(HOSTILE, "12"))
        ticks = 0
        while not check.done():
            await asyncio.sleep(0.01)
            ticks += 1
        return await check, ticks

    score, ticks = asyncio.run(both())
    assert score is None
    assert ticks > 20


def checker_is_loaded():
    return "math_verify" in sys.modules


def test_loading_the_checker_is_not_part_of_the_first_check():
    pool = VerifierPool("math", timeout=1.0)
    try:
        assert pool._pool.schedule(checker_is_loaded).result(timeout=60)
    finally:
        pool.close()


def test_verifier_errors_reach_the_caller():
    pool = VerifierPool("numeric", timeout=30.0)
    try:
        with pytest.raises(ValueError, match="could not convert"):
            asyncio.run(pool.score("12", "twelve"))
        assert asyncio.run(pool.score("12", "12")) == 1.0
        assert math.isfinite(asyncio.run(pool.score("nan", "12")))
    finally:
        pool.close()


def _die(verifier, response, label):
    os._exit(1)


def test_a_check_that_takes_its_worker_down_is_unscored(monkeypatch):
    pool = VerifierPool("exact", timeout=20)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(verifier_pool, "_check", _die)
            assert asyncio.run(pool.score("3", "3")) is None
        assert asyncio.run(pool.score("3", "3")) == 1.0
    finally:
        pool.close()
