"""``--out`` of the prepare commands."""

import json

import pytest

from coba_openrlhf.prepare import quickstart, smollm2
from coba_openrlhf.prepare.output_folder import OutputFolderError, open_output_folder


def test_new_and_empty_folders_are_opened(tmp_path):
    assert open_output_folder(tmp_path / "a" / "b", {}, force=False) is False
    assert open_output_folder(tmp_path / "a" / "b", {}, force=False) is False


@pytest.mark.parametrize("name", ["file", "file/below", "x" * 300])
@pytest.mark.parametrize("options", [[], ["--force"]], ids=["", "force"])
@pytest.mark.parametrize("command", [quickstart, smollm2])
def test_path_that_is_no_folder_is_status_two(tmp_path, capsys, monkeypatch, command, options, name):
    monkeypatch.setattr(smollm2, "find_gguf", lambda: tmp_path / "model.gguf")
    monkeypatch.setattr(smollm2.importlib.metadata, "version", lambda _: "1")
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit) as stop:
        command.main(["--out", str(tmp_path / name), *options])
    assert stop.value.code == 2
    assert "--out must be a folder" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["{", "[]", '{"settings": {}}'])
def test_damaged_manifest(tmp_path, text):
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(OutputFolderError, match=r"manifest\.json is damaged: .*--force"):
        open_output_folder(tmp_path, {}, force=False)
    assert open_output_folder(tmp_path, {}, force=True) is False


def test_complete_folder_is_reused(tmp_path):
    (tmp_path / "manifest.json").write_text(json.dumps({"settings": {"seed": 1}, "files": {}}))
    assert open_output_folder(tmp_path, {"seed": 1}, force=False) is True
    with pytest.raises(OutputFolderError, match="made with other settings"):
        open_output_folder(tmp_path, {"seed": 2}, force=False)
