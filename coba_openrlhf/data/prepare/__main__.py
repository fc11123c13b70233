"""``python -m coba_openrlhf.data.prepare``.

Exit status: 0, or 2 for a data set that does not exist or cannot be had; those before it are there.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from .error import PrepareError
from .normalise import normalise
from .output import NOTE_ENDING, write
from .sources import open_hub, open_local
from .specs import SPECS


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m coba_openrlhf.data.prepare",
        description="Download public data sets and write them in one shape: prompt, label, datasource, id.",
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="data sets (--list), or all: without --from those on the hub"
    )
    parser.add_argument("--out", type=Path, default=Path("data"), help="folder of the results (default: data)")
    parser.add_argument("--from", type=Path, dest="folder", help="take files from this folder, not from the hub")
    parser.add_argument("--list", action="store_true", help="list the data sets and exit")
    options = parser.parse_args(argv)
    if options.list:
        print(render_list())
        return 0
    try:
        for name in _names(options.names, options.folder):
            _prepare(name, options.out, options.folder)
    except PrepareError as error:
        print(f"no data set: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"no data set: cannot write to {options.out}: {error.strerror}", file=sys.stderr)
        return 2
    return 0


def render_list() -> str:
    """All data sets, one a line."""
    rows = [("name", "use", "hub", "local file"), *((n, s.use, s.hub or "-", s.file) for n, s in SPECS.items())]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows)


def _names(names: list[str], folder: Path | None) -> list[str]:
    if not names:
        raise PrepareError(f"name at least one of {', '.join(SPECS)}")
    for name in names:
        if name not in SPECS and name != "all":
            raise PrepareError(f"{name!r} is not known; there are {', '.join(SPECS)}")
    if "all" in names:
        names = [*(name for name in names if name != "all"), *(n for n, spec in SPECS.items() if folder or spec.hub)]
    return list(dict.fromkeys(names))


def _prepare(name: str, out: Path, folder: Path | None) -> None:
    spec = SPECS[name]
    source = open_local(name, spec, folder) if folder else open_hub(name, spec)
    note = write(out, name, spec, source, normalise(name, spec, source.rows, source.origin))
    dropped = "".join(f", {count} left out ({reason})" for reason, count in note["dropped"].items())  # type: ignore[attr-defined]
    print(
        f"{out / name}.parquet  {note['num_rows']} rows{dropped}  {note['fingerprint']}  {name}{NOTE_ENDING}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
