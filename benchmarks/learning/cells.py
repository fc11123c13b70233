"""The unit of work: one rule in one regime at one learning rate, all seeds; each kept in a file of its own."""

import hashlib
import json
import multiprocessing
import os
import re
import sys
import threading
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch

from .base_models import load_or_warm_up
from .rules import Rule
from .training import Regime, train

# Part of every cell's name: raise it when the same settings would give other results.
VERSION = 1


@dataclass(frozen=True)
class Cell:
    """What one process trains at a time.

    Attributes:
        regime: Task, sizes and steps.
        rule: How rollouts are spent.
        learning_rate: Of Adam.
        seeds: Trained side by side.
    """

    regime: Regime
    rule: Rule
    learning_rate: float
    seeds: tuple[int, ...]

    @property
    def name(self) -> str:
        """File name: readable, and different for every difference in the settings."""
        settings = json.dumps([VERSION, asdict(self)], sort_keys=True)
        digest = hashlib.sha256(settings.encode()).hexdigest()[:10]
        readable = f"{self.regime.name}-n{self.regime.group_size}-{self.rule.name}"
        return f"{re.sub(r'[^a-zA-Z0-9_ ,.-]', '_', readable)}-{digest}.parquet"


def run_cells(cells: Sequence[Cell], folder: Path, workers: int) -> None:
    """Train the cells that ``folder`` does not have yet, ``workers`` at a time, and report progress to stderr.

    Args:
        cells: What is needed; repeated ones are trained once.
        folder: ``cells/`` holds the results, ``bases/`` the base models. A killed run is continued by calling again.
        workers: Processes, one thread each.
    """
    (folder / "cells").mkdir(parents=True, exist_ok=True)
    needed = {cell.name: cell for cell in cells}
    missing = [cell for name, cell in needed.items() if not (folder / "cells" / name).exists()]
    bases: dict[tuple[str, int | None], set[int]] = {}
    for cell in missing:
        bases.setdefault((cell.regime.task, cell.regime.warm_up_steps), set()).update(cell.seeds)
    print(f"{len(missing)} of {len(needed)} cells to train", file=sys.stderr)
    if not missing:
        return
    started = time.monotonic()
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _start_worker) as pool:
        # Base models first: two cells of one task must not make the same model at the same time.
        made = [pool.submit(make_bases, *base, sorted(seeds), folder) for base, seeds in bases.items()]
        for future in made:
            future.result()
        waiting = {pool.submit(train_cell, cell, folder): cell for cell in missing}
        for done, future in enumerate(as_completed(waiting), 1):
            accuracy = future.result()
            elapsed = time.monotonic() - started
            left = elapsed / done * (len(missing) - done)
            print(
                f"[{done}/{len(missing)}, {left / 60:.0f} min left] {waiting[future].name[:-19]} "
                f"lr {waiting[future].learning_rate:g}: {accuracy:.3f}",
                file=sys.stderr,
            )


def _start_worker() -> None:
    torch.set_num_threads(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # An allocator warns of concentrated steps; here that is a column of the table.
    warnings.filterwarnings("ignore", message="budget_max lets one prompt")


def _end_with_parent() -> None:
    """The pool's workers would outlive a parent that was killed, and keep the cores busy."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def make_bases(task: str, steps: int | None, seeds: list[int], folder: Path) -> None:
    """Base models of a task, in a worker."""
    load_or_warm_up(task, seeds, folder / "bases", steps)


def train_cell(cell: Cell, folder: Path) -> float:
    """Train, write the rows, and return the mean final accuracy."""
    rows = train(cell.regime, cell.rule, cell.learning_rate, list(cell.seeds), folder / "bases")
    path = folder / "cells" / cell.name
    partial = path.with_suffix(f".{os.getpid()}")
    table = pa.Table.from_pylist(rows).replace_schema_metadata({"cell": json.dumps(asdict(cell))})
    pq.write_table(table, partial)
    partial.rename(path)
    final = [row["accuracy"] for row in rows if row["step"] == cell.regime.steps]
    return sum(final) / len(final)


def read_cell(cell: Cell, folder: Path) -> list[dict[str, Any]]:
    """Rows of a trained cell, by step and seed."""
    return pq.read_table(folder / "cells" / cell.name).to_pylist()
