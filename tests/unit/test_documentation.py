"""What the documentation lists is what there is."""

import re
from pathlib import Path

import pytest

from coba_openrlhf.allocation import STRATEGY_NAMES, AllocationConfig
from coba_openrlhf.config import flatten
from coba_openrlhf.config.allocation import option_names
from coba_openrlhf.config.coba_options import VERIFIER_NAMES, CobaOptions
from coba_openrlhf.rewards import KINDS, close_pools

DOCS = Path(__file__).parents[2] / "docs"


def rows_of(file, heading):
    """Cells of the table below a heading."""
    text = (DOCS / file).read_text(encoding="utf-8").split(f"{heading}\n", 1)[1]
    table = re.search(r"(?:^\|.*\n)+", text, re.MULTILINE)[0]
    return [[cell.strip() for cell in line.split(" | ")] for line in table.splitlines()[2:]]


def test_every_option_stands_with_its_default():
    documented = {row[0].strip("|` "): row[1] for row in rows_of("configuration.md", "## Options under `coba`")}
    defaults = {
        name: "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in flatten(CobaOptions()).items()
    }
    assert documented == defaults


def test_every_field_of_the_library_is_an_option_with_the_same_default():
    options = flatten(CobaOptions(), "coba.")
    for field, option in option_names().items():
        if field != "seed":
            assert options[option] == getattr(AllocationConfig(), field), field


def test_every_verifier_and_outcome_is_explained():
    assert {row[0].strip("|` ") for row in rows_of("rewards.md", "## Verifiers")} == set(VERIFIER_NAMES)
    assert [row[0].strip("| ") for row in rows_of("rewards.md", "## Outcomes")] == list(KINDS)
    metrics = (DOCS / "metrics.md").read_text(encoding="utf-8")
    assert all(f"`verifier/{kind}_rate`" in metrics for kind in KINDS)


def test_score_answers_prints_what_the_page_says(capsys):
    text = (DOCS / "rewards.md").read_text(encoding="utf-8")
    block = next(b for b in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "import score_answers" in b)
    exec(compile(block, "rewards.md", "exec"), {"__name__": "example"})
    close_pools()
    assert f"# {capsys.readouterr().out}" in block


@pytest.mark.parametrize("name", STRATEGY_NAMES)
def test_every_rule_is_explained(name):
    assert name in [row[0].strip("|` ") for row in rows_of("allocation.md", "## Rules")]


def test_python_examples_print_what_they_say(capsys):
    """Every comment that is the whole line is output."""
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "allocation.md").read_text(encoding="utf-8"), re.DOTALL)
    expected = [line[2:] for line in "".join(blocks).splitlines() if line.startswith("# [")]
    with pytest.warns(UserWarning, match="of a step"):
        for block in blocks:
            exec(compile(block, "allocation.md", "exec"), {"__name__": "example"})
    assert len(blocks) == 2
    assert capsys.readouterr().out.splitlines() == expected
