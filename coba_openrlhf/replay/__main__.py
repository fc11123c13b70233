"""``python -m coba_openrlhf.replay``."""

import os
import sys
from collections.abc import Sequence

from coba_openrlhf.config import ConfigError

from .command_line import read_command_line
from .error import ReplayError
from .log import Log, read_log
from .notes import log_notes, rule_notes
from .replayed import Replayed, replay, replay_log
from .reproduction import Reproduction, compare, explain
from .results import write_results
from .rule import STRATEGY, Rule, RunOptions, make_families, make_rule, read_options
from .table import LEGEND, LIMITS, render_table


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns 0, 2 for what cannot be replayed, 130 after Ctrl-C."""
    try:
        return _run(argv)
    except (ReplayError, ConfigError) as error:
        return _refuse(str(error))
    except OSError as error:
        return _refuse(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except KeyboardInterrupt:
        print("interrupted: nothing was written", file=sys.stderr)
        return 130


def _refuse(reason: str) -> int:
    print(f"no replay: {' '.join(reason.split())}", file=sys.stderr)
    return 2


def _run(argv: Sequence[str] | None) -> int:
    command = read_command_line(argv)
    log = read_log(command.run)
    options = read_options(command.run)
    families = make_families(options.config, command.requests)
    uniform = make_rule(options.config, {STRATEGY: "uniform"})
    # By name: the same rule twice is one row.
    rules = {rule.label: rule for rule in [uniform, *(rule for family in families for rule in family.rules)]}
    own, reproduction, notes = _replay_own(log, options)
    replayed = [replay_log(log, own), *_replay_all(list(rules.values()), log)]
    notes = [*notes, *log_notes(log, options), *rule_notes(replayed, families)]
    files = write_results(command.out, log, replayed, families, reproduction, notes)
    text = _render(replayed, log, notes)
    try:
        print(f"{text}\n\nwritten to {command.out}: {', '.join(files)}", flush=True)
    except BrokenPipeError:  # a reader like ``head`` has seen enough, and the files are there
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _replay_own(log: Log, options: RunOptions) -> tuple[Replayed | None, Reproduction | None, list[str]]:
    """The run's own settings; nothing where they cannot be used any more, because other rules still can."""
    try:
        own = replay(make_rule(options.config, {}), log)
    except ReplayError as error:
        return None, None, [f"The logged rule cannot be checked: {error}"]
    reproduction = compare(log, own)
    return own, reproduction, explain(reproduction, log, options)


def _replay_all(rules: Sequence[Rule], log: Log) -> list[Replayed]:
    """Every rule, with its number and name on a terminal meanwhile."""
    is_terminal = sys.stderr.isatty()
    replayed = []
    for number, rule in enumerate(rules, start=1):
        if is_terminal:
            print(f"\r\033[Krule {number} of {len(rules)}: {rule.label}", end="", file=sys.stderr, flush=True)
        replayed.append(replay(rule, log))
    if is_terminal:
        print("\r\033[K", end="", file=sys.stderr, flush=True)
    return replayed


def _render(replayed: Sequence[Replayed], log: Log, notes: Sequence[str]) -> str:
    steps = log.steps
    heading = f"Steps {steps[0].step} to {steps[-1].step}: means over {len(steps)} steps, * = best"
    return "\n".join([heading, "", render_table(replayed), "", LEGEND, "", LIMITS, "", *notes])


if __name__ == "__main__":
    sys.exit(main())
