"""``python -m coba_openrlhf.compare``.

Exit status: 0, or 2 for folders that cannot be compared.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from .curves import common_keys, compare_curves, read_curves
from .error import CompareError
from .evaluations import compare_evaluations
from .groups import read_groups
from .results import render, write_tables

EPILOG = """\
A GROUP is a folder, a quoted glob or NAME=FOLDER,FOLDER,...: runs or evaluations that differ in their seed only, in the
same order of seeds in every group. The others are compared with the first one.

  runs/uniform runs/coba
  'uniform=runs/uniform-seed*' 'coba=runs/coba-seed*'
  before=runs/evaluate-base after=runs/coba/evaluate
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m coba_openrlhf.compare",
        description="Paired differences of runs at equal steps, rollouts and tokens, or of evaluations.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("groups", nargs="+", metavar="GROUP", help="folders that are compared")
    parser.add_argument("--out", type=Path, default=Path("compare"), help="folder of the results (default: compare)")
    options = parser.parse_args(argv)
    try:
        return _run(options.groups, options.out)
    except CompareError as error:
        reason = str(error)
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}" if error.filename else str(error)
    print(f"no comparison: {reason}", file=sys.stderr)
    return 2


def _run(words: Sequence[str], out: Path) -> int:
    kind, groups = read_groups(words)
    curves = read_curves(groups) if kind == "run" else {}
    rows, notes = compare_curves(curves) if kind == "run" else compare_evaluations(groups)
    out.mkdir(parents=True, exist_ok=True)
    write_tables(out, groups, rows, notes)
    # matplotlib takes a second to load: not for a refusal.
    from .figures import plot_curves, plot_differences

    files = plot_curves(curves, common_keys(curves), out) if kind == "run" else plot_differences(rows, out)
    print(render(rows, notes))
    print(f"\nwritten to {out}: compare.csv, compare.json, {', '.join(files)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
