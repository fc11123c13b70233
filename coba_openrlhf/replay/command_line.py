"""The command line of a replay."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from coba_openrlhf.config.allocation import option_names

from .error import ReplayError
from .rule import FIXED, STRATEGY, Request, check_option

EPILOG = """\
Options after a --strategy belong to it, those before the first --strategy to all of them:

  RUN --strategy knapsack --strategy coba --coba.tau 7     knapsack, and coba with tau 7
  RUN --coba.budget.max 32 --strategy knapsack --strategy coba
  RUN --grid coba.tau=3,5,7 --grid coba.kappa=7,11         six rules, with the run's own strategy

What the options mean: docs/configuration.md.
"""


@dataclass(frozen=True)
class CommandLine:
    """What was asked for.

    Attributes:
        run: Folder of the run.
        out: Folder of the results.
        requests: Rules besides those that are always there.
    """

    run: Path
    out: Path
    requests: list[Request]


class _Parser(argparse.ArgumentParser):
    """Refuses in one line, where argparse would print all options first."""

    def error(self, message: str) -> NoReturn:
        raise ReplayError(f"{message}; see --help")


class _InOrder(argparse.Action):
    """Keeps ``(option, value)`` in the order of the command line, which says what belongs to which strategy."""

    def __call__(self, parser, namespace, values, option_string=None) -> None:
        namespace.words.append((self.dest, values))


def read_command_line(argv: Sequence[str] | None) -> CommandLine:
    """Parse the arguments.

    Raises:
        ReplayError: No run or several, an option that does not exist, has no value or has no effect on budgets.
        SystemExit: After ``--help``.
    """
    parser = _make_parser()
    options, rest = parser.parse_known_args(argv)
    for word in rest:
        if word.startswith("-"):
            check_option(word.lstrip("-").partition("=")[0])
    if rest:
        raise ReplayError(f"one run at a time, got also {rest[0]!r}")
    return CommandLine(options.run, options.out or options.run / "replay", _requests(options.words))


def _make_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m coba_openrlhf.replay",
        usage="%(prog)s RUN [--out OUT] [--strategy NAME] [--OPTION VALUE] [--grid OPTION=V1,V2]",
        description="What other budget rules would have done in a run.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(words=[])
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of the run (coba.run_dir)")
    parser.add_argument("--out", type=Path, help="folder of the results; default: RUN/replay")
    parser.add_argument(
        "--strategy", f"--{STRATEGY}", dest=STRATEGY, action=_InOrder, metavar="NAME", help="a rule to replay"
    )
    parser.add_argument(
        "--grid", action=_InOrder, metavar="OPTION=V1,V2", help="all values of an option; several: all combinations"
    )
    group = parser.add_argument_group("options of the rules, of the type and with the rules that they have in a run")
    for option in option_names().values():
        if option not in (STRATEGY, *FIXED):
            group.add_argument(f"--{option}", dest=option, action=_InOrder, metavar="VALUE")
    return parser


def _requests(words: list[tuple[str, str]]) -> list[Request]:
    """One request per ``--strategy``; one for the run's own strategy if there is none but there are options."""
    shared = Request({}, {})
    requests: list[Request] = []
    current = shared
    for option, value in words:
        if option == STRATEGY:
            current = Request({**shared.options, STRATEGY: value}, dict(shared.grid))
            requests.append(current)
        elif option == "grid":
            key, values = _grid(value)
            if key in current.grid and not (current is not shared and key in shared.grid):
                raise ReplayError(f"--grid must name an option once, got {key} twice")
            current.grid[key] = values
        else:
            current.options[option] = value
    return requests or ([shared] if shared.options or shared.grid else [])


def _grid(text: str) -> tuple[str, list[str]]:
    key, _, values = text.partition("=")
    key = key.removeprefix("--")
    names = list(dict.fromkeys(value.strip() for value in values.split(",")))
    if not key or "" in names:
        raise ReplayError(f"--grid must be OPTION=VALUE,VALUE, got {text!r}")
    check_option(key)
    return key, names
