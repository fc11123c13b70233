"""The folders a run writes to, and the one it continues."""

import os
import tempfile
from pathlib import Path

from coba_openrlhf.config import ConfigError, RunConfig
from coba_openrlhf.config.namespace import to_openrlhf_args


def check_folders(config: RunConfig, run_dir: Path) -> None:
    """Every folder of the run can be made and written to; nothing is left behind.

    Raises:
        ConfigError: A folder cannot be used, or the run to resume does not exist.
    """
    if config.ckpt.load_enable:
        _check_resumed(config, run_dir)
    args = to_openrlhf_args(config, run_dir)
    for key, folder in (
        ("coba.run_dir", str(run_dir)),
        ("ckpt.path", args.ckpt.path),
        ("ckpt.output_dir", args.ckpt.output_dir),
        ("logger.tensorboard_dir", args.logger.tensorboard_dir),
    ):
        _check_can_be_written(key, Path(folder))


def _check_resumed(config: RunConfig, run_dir: Path) -> None:
    """A mistyped folder would otherwise begin a new run from the first step."""
    key, folder = ("ckpt.path", Path(config.ckpt.path)) if config.ckpt.path else ("coba.run_dir", run_dir)
    if not os.path.isdir(folder):
        raise ConfigError(
            f"ckpt.load_enable: {key} must be the folder of the run to resume, got {folder}, which is no folder "
            f"(current folder: {Path.cwd()}); leave out ckpt.load_enable to begin a new run"
        )


def _check_can_be_written(key: str, folder: Path) -> None:
    """Make the folder for trial, inside a temporary one where its nearest existing parent is.

    Making it in its own place and removing it again would get in the way of another run that starts now.
    """
    existing = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
    try:
        with tempfile.TemporaryDirectory(prefix=".trial-", dir=existing) as trial:
            (Path(trial) / folder.relative_to(existing)).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{key}: cannot write to {folder}: {error.strerror} (below {existing})") from error


def check_run_dir(run_dir: Path, *, resume: bool, checkpoint: str | None) -> None:
    """Nothing that an earlier run wrote is overwritten.

    Args:
        run_dir: Folder of the run.
        resume: Whether ``ckpt.load_enable`` is on.
        checkpoint: The checkpoint that was found, None if there is none.

    Raises:
        ConfigError: The folder holds a run that is not continued; the message says what to do.
    """
    metrics = run_dir / "metrics.jsonl"
    if not metrics.exists() or not metrics.stat().st_size or checkpoint is not None:
        return
    if resume:
        raise ConfigError(
            f"ckpt.load_enable: {run_dir} holds a run but no complete checkpoint was found (ckpt.path; was "
            "ckpt.save_steps set?); starting over would erase its logs, so choose another coba.run_dir"
        )
    raise ConfigError(
        f"coba.run_dir: {run_dir} already holds a run; resume it with --ckpt.load_enable or choose another folder"
    )


def write_config(run_dir: Path, text: str) -> None:
    """Write the resolved configuration into the run folder."""
    run_dir.mkdir(parents=True, exist_ok=True)
    (run_dir / "config.yaml").write_text(text, encoding="utf-8")
