"""Which folders are compared: groups of runs, or of evaluations, that differ only in their seed."""

import glob
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from coba_openrlhf.evaluation import response_files, settings_file

from .error import CompareError

Kind = Literal["run", "evaluation"]


@dataclass(frozen=True)
class Group:
    """Folders under one name; the first group is what the others are compared with."""

    name: str
    folders: list[Path]


def read_groups(words: Sequence[str]) -> tuple[Kind, list[Group]]:
    """Read ``FOLDER``, ``'GLOB'`` and ``NAME=FOLDER,GLOB``.

    Raises:
        CompareError: Fewer than two groups, a folder that does not exist or is of no known kind, runs mixed with
            evaluations, a folder that stands twice, or groups of different sizes.
    """
    groups = [_group(word) for word in words]
    if len(groups) < 2:
        raise CompareError("a comparison needs two groups at least, got " + (words[0] if words else "none"))
    names = [group.name for group in groups]
    for name in names:
        if names.count(name) > 1:
            raise CompareError(f"two groups are called {name!r}; name them: NAME={name},...")
    kinds = {folder: kind_of(folder) for group in groups for folder in group.folders}
    if len(kinds) < sum(len(group.folders) for group in groups):
        every = [folder for group in groups for folder in group.folders]
        twice = next(folder for folder in every if every.count(folder) > 1)
        raise CompareError(f"{twice} stands in the comparison twice")
    if len(set(kinds.values())) > 1:
        of_kind = {kind: next(str(folder) for folder in kinds if kinds[folder] == kind) for kind in set(kinds.values())}
        raise CompareError(
            f"runs and evaluations cannot be compared with each other: {of_kind['run']} is a run, "
            f"{of_kind['evaluation']} an evaluation"
        )
    sizes = {group.name: len(group.folders) for group in groups}
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{name} has {size}" for name, size in sizes.items())
        raise CompareError(f"groups must have equally many folders, the i-th of each being of one seed: {listed}")
    return kinds[groups[0].folders[0]], groups


def kind_of(folder: Path) -> Kind:
    """What a folder holds.

    Raises:
        CompareError: Neither a run nor an evaluation.
    """
    if (folder / settings_file.FILE).is_file() and (folder / response_files.FOLDER).is_dir():
        return "evaluation"
    if (folder / "metrics.jsonl").is_file():
        return "run"
    if not folder.exists():
        raise CompareError(f"no such folder: {folder} (current folder: {Path.cwd()})")
    raise CompareError(
        f"{folder} is neither the folder of a run (metrics.jsonl) nor of an evaluation ({settings_file.FILE} and "
        f"{response_files.FOLDER})"
    )


def _group(word: str) -> Group:
    name, mark, members = word.partition("=")
    if not mark or Path(word).exists():
        name, members = Path(word).name if not glob.has_magic(word) else word, word
    if not name or not members:
        raise CompareError(f"a group is FOLDER, 'GLOB' or NAME=FOLDER,FOLDER, got {word!r}")
    folders: list[Path] = []
    for member in members.split(","):
        found = sorted(glob.glob(member)) if glob.has_magic(member) else [member]
        found = [path for path in found if Path(path).is_dir()] if glob.has_magic(member) else found
        if not found:
            raise CompareError(f"no folder fits {member!r} (current folder: {Path.cwd()})")
        folders += [Path(path) for path in found]
    return Group(name, folders)
