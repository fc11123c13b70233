"""Folders that cannot be made are found before anything starts."""

import pytest

from coba_openrlhf.config import ConfigError
from coba_openrlhf.preflight import check_folders
from tests.rollouts import base_config

KEYS = ["coba.run_dir", "ckpt.path", "ckpt.output_dir", "logger.tensorboard_dir"]


def check(key, folder, tmp_path, changes=None):
    run_dir = folder if key == "coba.run_dir" else tmp_path / "run"
    check_folders(base_config({key: str(folder), **(changes or {})}), run_dir)


@pytest.mark.parametrize("key", KEYS)
def test_new_and_present_folders_pass_and_nothing_is_left(tmp_path, key):
    check(key, tmp_path / "a" / "b", tmp_path)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "present").mkdir()
    check(key, tmp_path / "present", tmp_path)
    assert list((tmp_path / "present").iterdir()) == []


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("file/sub/folder", "Not a directory"),
        ("file", "Not a directory"),
        ("x" * 300, "File name too long"),
        ("/".join(["x" * 200] * 30), "File name too long"),
        ("loop/a", ""),
    ],
    ids=["below a file", "a file", "long name", "long path", "loop"],
)
def test_folder_that_cannot_be_made(tmp_path, key, name, reason):
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(ConfigError, match=rf"{key}: cannot write to .*: .*{reason}"):
        check(key, tmp_path / name, tmp_path)


@pytest.mark.parametrize("key", KEYS)
def test_place_that_takes_no_folders(tmp_path, key):
    """Root may write to any ordinary folder, but not to /proc."""
    from pathlib import Path

    with pytest.raises(ConfigError, match=f"{key}: cannot write to /proc/run: "):
        check(key, Path("/proc/run"), tmp_path)


def test_resuming_needs_the_folder(tmp_path):
    resume = {"ckpt.load_enable": True}
    with pytest.raises(ConfigError, match=f"ckpt.load_enable: coba.run_dir must be .* got {tmp_path / 'typo'}, "):
        check("coba.run_dir", tmp_path / "typo", tmp_path, resume)
    with pytest.raises(ConfigError, match=f"ckpt.load_enable: ckpt.path must be .* got {tmp_path / 'typo'}, "):
        check("ckpt.path", tmp_path / "typo", tmp_path, resume)
    (tmp_path / "run").mkdir()
    check("coba.run_dir", tmp_path / "run", tmp_path, resume)
