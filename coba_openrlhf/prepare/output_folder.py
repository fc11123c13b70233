"""Output folders that say whether they are complete.

The manifest is written last and in one step, and lists every file with its size: a killed run
leaves no manifest, and a folder with one can be reused.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

MANIFEST_NAME = "manifest.json"


class OutputFolderError(FileExistsError):
    """The output folder holds something that must not be overwritten."""


def open_output_folder(folder: Path, settings: dict, *, force: bool) -> bool:
    """Makes `folder` ready to be written to.

    Args:
        folder: the output folder; created if missing.
        settings: what the result depends on (JSON values).
        force: overwrite instead of refusing or reusing. Other files in the folder stay.

    Returns:
        True if the folder already holds the complete result of the same settings, so that
        nothing is left to do.

    Raises:
        OutputFolderError: if the folder holds anything else and `force` is False, or cannot be
            made or read.
    """
    try:
        return _open(folder, settings, force=force)
    except OutputFolderError:
        raise
    except OSError as error:
        raise OutputFolderError(f"--out must be a folder that can be written to, got {folder}: {error}") from error


def _open(folder: Path, settings: dict, *, force: bool) -> bool:
    if folder.exists() and not folder.is_dir():
        raise OutputFolderError(f"--out must be a folder, but {folder} is a file")
    manifest_path = folder / MANIFEST_NAME
    if force:
        manifest_path.unlink(missing_ok=True)
    elif folder.exists() and any(folder.iterdir()):
        if not manifest_path.is_file():
            raise OutputFolderError(
                f"{folder} is not empty and holds no complete earlier result (no {MANIFEST_NAME}); "
                "choose another --out, or overwrite with --force"
            )
        manifest = _read_manifest(manifest_path)
        if manifest.get("settings") != settings:
            raise OutputFolderError(
                f"{folder} was made with other settings: {manifest.get('settings')}, now {settings}; "
                "choose another --out, or overwrite with --force"
            )
        damaged = [name for name, size in manifest["files"].items() if _size(folder / name) != size]
        if damaged:
            raise OutputFolderError(
                f"{folder} has missing or changed files: {', '.join(damaged)}; make them again with --force"
            )
        return True
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputFolderError(f"--out must be a folder that can be written to, got {folder}")
    return False


def complete_output_folder(folder: Path, settings: dict, results: dict) -> None:
    """Writes the manifest, which marks the folder as complete. Call it last."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    files = {path.relative_to(folder).as_posix(): path.stat().st_size for path in paths}
    unfinished = folder / (MANIFEST_NAME + ".part")
    unfinished.write_text(json.dumps({"settings": settings, "results": results, "files": files}, indent=2) + "\n")
    os.replace(unfinished, folder / MANIFEST_NAME)


def _read_manifest(path: Path) -> dict:
    try:
        manifest = json.loads(path.read_text())
    except ValueError as error:
        raise OutputFolderError(f"{path} is damaged: {error}; make everything again with --force") from error
    if not isinstance(manifest, dict) or not isinstance(manifest.get("files"), dict):
        raise OutputFolderError(f"{path} is damaged: it lists no files; make everything again with --force")
    return manifest


def _size(path: Path) -> int | None:
    return path.stat().st_size if path.is_file() else None
