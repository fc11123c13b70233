"""What responses depend on, written beside them, so that an evaluation is never continued with something else."""

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path

FILE = "settings.json"
LOCK_FILE = ".lock"


class SettingsChangedError(ValueError):
    """A folder holds an evaluation with other settings; the message names every difference."""


class FolderInUseError(ValueError):
    """Another evaluation writes to the folder."""


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep other evaluations out of ``folder``: two would generate the same responses, and both would count.

    The kernel lets go of the folder when the process ends, however it does.

    Raises:
        FolderInUseError: Another process, or this one, holds it.
        OSError: The folder cannot be made or written to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK_FILE).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise FolderInUseError(f"another evaluation writes to {folder}") from error
        except OSError:  # a file system without locks: the summary refuses responses that are there twice
            pass
        yield


def claim(folder: Path, settings: dict[str, object]) -> bool:
    """Begin an evaluation in ``folder``, or continue the one that is there.

    Args:
        folder: Folder of the evaluation; made if it does not exist.
        settings: JSON values by name.

    Returns:
        Whether there is one to continue.

    Raises:
        SettingsChangedError: With what differs, or that the file is damaged.
        OSError: The folder cannot be made or written to.
    """
    file = folder / FILE
    settings = json.loads(json.dumps(settings))
    if file.exists():
        try:
            earlier = json.loads(file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise SettingsChangedError(f"{file} is damaged: {error}") from error
        if earlier != settings:
            raise SettingsChangedError("; ".join(differences(earlier, settings)))
        return True
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f".{FILE}.tmp"
    temporary.write_text(json.dumps(settings, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(temporary, file)
    return False


def differences(earlier: dict[str, object], now: dict[str, object], prefix: str = "") -> list[str]:
    """``name: old -> new`` for every setting that differs."""
    found = []
    for name in dict.fromkeys([*earlier, *now]):
        old, new = earlier.get(name), now.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            found += differences(old, new, f"{prefix}{name}.")
        elif old != new:
            found.append(f"{prefix}{name}: {json.dumps(old)} -> {json.dumps(new)}")
    return found
