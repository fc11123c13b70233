"""Speed and safety of answer checking: ``python -m benchmarks.verifiers [--write]``, about two minutes.

Prints Markdown; ``--write`` also puts it into ``benchmarks/results.md``. Ends with an error if a goal is missed.
"""

import platform
import resource
import statistics
import time
from importlib.metadata import version

from benchmarks.goals import Goals, run_benchmark
from benchmarks.timing import cpu_name
from coba_openrlhf.rewards import VerifierPool

EASY_PER_SECOND = 2_000
TIMEOUT, MEMORY_MB = 2.0, 1024
NUM_NEIGHBOURS = 200

Pairs = list[tuple[str, str]]


def workloads() -> dict[str, tuple[Pairs, bool]]:
    """Kind of answers -> pairs of response and reference answer, and whether they are easy."""
    text = "We add and then divide. " * 40
    return {
        "the same number": ([(f"{text}\\boxed{{{i}}}", str(i)) for i in range(8000)], True),
        "another number": ([(f"{text}\\boxed{{{i}}}", str(i + 1)) for i in range(8000)], True),
        "thousands separators": ([(f"{text}\\boxed{{{1000 + i:,}}}", str(1000 + i)) for i in range(8000)], True),
        "the same LaTeX, spelt otherwise": (
            [(f"{text}\\boxed{{\\dfrac{{{i}}}{{7}}}}", f"\\frac{{{i}}}{{7}}") for i in range(8000)],
            True,
        ),
        "another fraction (math-verify)": (
            [(f"{text}\\boxed{{\\frac{{{i}}}{{7}}}}", f"\\frac{{{i + 1}}}{{7}}") for i in range(400)],
            False,
        ),
        "an equal expression (math-verify)": (
            [(f"{text}\\boxed{{(x+{i})^2}}", f"x^2+{2 * i}x+{i * i}") for i in range(400)],
            False,
        ),
        "without a box (math-verify)": ([(f"{text}The answer is {i}.", str(i)) for i in range(400)], False),
    }


HOSTILE = {
    "tower of exponents `9^{9^{9^{9}}}`": "\\boxed{9^{9^{9^{9}}}}",
    "repeated factorial `9999999!!!`": "\\boxed{9999999!!!}",
    "binomial of 10^9": "\\boxed{\\binom{10^9}{5\\cdot 10^8}}",
    "power of a sum `(x+y+z+w)^{500}`": "\\boxed{(x+y+z+w)^{500}-(x+y)^{400}}",
    "sum to 10^12": "\\boxed{\\sum_{k=1}^{10^{12}} \\frac{1}{k^2+\\sin k}}",
    "2 MB of LaTeX in a box": "\\boxed{" + "x+" * 1_000_000 + "1}",
    "5 MB without a box": "$x$ and " * 600_000,
    "1,000 nested roots": "\\boxed{" + "\\sqrt{" * 1000 + "2" + "}" * 1000 + "}",
    "4,000 nested brackets": "\\boxed{" + "(" * 4000 + "1" + ")" * 4000 + "}",
    "50,000 open boxes": "\\boxed{" * 50_000,
    "number of 9,000 digits": "\\boxed{1+" + "9" * 9000 + "}",
    "row of 2,000 entries": "\\boxed{\\begin{pmatrix}" + "1&" * 2000 + "1\\end{pmatrix}}",
}


def processor_seconds() -> float:
    """Of this process and of those that it has waited for."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def speed_rows(goals: Goals) -> list[str]:
    """Answers per second of processor time, the checking process's start and end left out."""
    rows = []
    for name, (pairs, is_easy) in workloads().items():
        rates = []
        for _ in range(3):
            idle = processor_seconds()
            with_nothing = _spent([pairs[0]], idle)
            rates.append(len(pairs) / max(_spent(pairs, processor_seconds()) - with_nothing, 1e-9))
        rate = statistics.median(rates)
        reached = rate >= EASY_PER_SECOND
        goal = goals.cell(name, reached, f"at least {EASY_PER_SECOND:,}") if is_easy else ""
        rows.append(f"| {name} | {len(pairs):,} | {rate:,.0f} | {goal} |")
    return rows


def _spent(pairs: Pairs, before: float) -> float:
    """Processor seconds for all pairs with one checking process, from start to end."""
    pool = VerifierPool(["math"], TIMEOUT, MEMORY_MB, max_workers=1)
    try:
        for future in [pool.submit("math", *pair) for pair in pairs]:
            assert future.result().score is not None
    finally:
        pool.close()
    return processor_seconds() - before


def hostile_rows(goals: Goals) -> list[str]:
    """Every hostile answer among ordinary ones that need math-verify."""
    rows = []
    pool = VerifierPool(["math"], TIMEOUT, MEMORY_MB, max_workers=2)
    ordinary = [(f"\\boxed{{x+{i}}}", f"{i}+x" if i % 2 else "x") for i in range(1, NUM_NEIGHBOURS + 1)]
    expected = [float(i % 2) for i in range(1, NUM_NEIGHBOURS + 1)]
    try:
        _neighbours(pool, ordinary)
        alone = statistics.median(_neighbours(pool, ordinary)[0] for _ in range(5))
        for name, response in HOSTILE.items():
            started = time.perf_counter()
            hostile = pool.submit("math", response, "x^2+12")
            ended: list[float] = []
            hostile.add_done_callback(lambda _, ended=ended, at=started: ended.append(time.perf_counter() - at))
            submitted = time.perf_counter() - started
            seconds, scores = _neighbours(pool, ordinary)
            outcome = hostile.result()
            while not ended:
                time.sleep(0.001)
            same = scores == expected
            reached = same and ended[0] < TIMEOUT + 1.0
            goal = goals.cell(name, reached, f"same scores, at most {TIMEOUT + 1:g} s")
            rows.append(
                f"| {name} | {outcome.kind}: {outcome.reason[:40].replace('|', '')} | {ended[0]:.2f} "
                f"| {1e3 * submitted:.1f} | {seconds:.2f} | {goal} |"
            )
    finally:
        pool.close()
    return [
        f"### Hostile answers, each with {NUM_NEIGHBOURS} ordinary ones behind it",
        "",
        f"Time limit {TIMEOUT:g} s, memory limit {MEMORY_MB:,} MiB, two checking processes. The ordinary answers alone "
        f"take {alone:.2f} s.",
        "",
        "| answer | outcome | seconds until its outcome | ms that the caller was held up "
        "| seconds of the ordinary ones | must be |",
        "|---|---|---:|---:|---:|---|",
        *rows,
    ]


def _neighbours(pool: VerifierPool, pairs: Pairs) -> tuple[float, list[float | None]]:
    started = time.perf_counter()
    futures = [pool.submit("math", *pair) for pair in pairs]
    scores = [future.result().score for future in futures]
    return time.perf_counter() - started, scores


def report(goals: Goals) -> str:
    """Run everything and describe it in Markdown."""
    lines = [
        f"{cpu_name()}; Python {platform.python_version()}, math-verify {version('math-verify')}, sympy "
        f"{version('sympy')}.",
        "",
        "### Answers per second of one core",
        "",
        "Responses of about 1,000 characters, `coba.verifier: math`, one checking process; processor time of caller",
        "and checking process together, medians of three runs.",
        "",
        "| answers | number | per second of processor time | must be |",
        "|---|---:|---:|---|",
        *speed_rows(goals),
        "",
        *hostile_rows(goals),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    run_benchmark("Answer checking", report, "benchmarks.verifiers")
