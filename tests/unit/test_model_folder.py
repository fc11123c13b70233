"""A model folder with a part missing."""

import json

import pytest

from coba_openrlhf.config import ConfigError
from coba_openrlhf.preflight.model_folder import check_model_folder


@pytest.fixture
def model(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "tokenizer.json").touch()
    (tmp_path / "model-00001-of-00002.safetensors").touch()
    (tmp_path / "model-00002-of-00002.safetensors").touch()
    shards = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": shards}))
    return tmp_path


def message_of(folder):
    with pytest.raises(ConfigError) as error:
        check_model_folder(str(folder))
    return str(error.value)


def test_complete_folder_and_hub_ids_pass(model):
    check_model_folder(str(model))
    check_model_folder("gpt2")
    check_model_folder("org/model")


def test_folder_without_configuration(model):
    (model / "config.json").unlink()
    assert message_of(model).startswith(f"actor.model_name_or_path: no config.json in {model} ")


def test_folder_named_like_a_hub_id(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").mkdir()
    assert "no config.json in model " in message_of("model")


@pytest.mark.parametrize("text", ["{", "[]", "\x00"])
def test_damaged_configuration(model, text):
    (model / "config.json").write_text(text)
    assert f"actor.model_name_or_path: {model / 'config.json'} " in message_of(model)


def test_folder_without_tokenizer(model):
    (model / "tokenizer.json").unlink()
    assert f"no tokenizer in {model}; looked for tokenizer*, " in message_of(model)


def test_folder_without_weights(model):
    for file in model.glob("*.safetensors"):
        file.unlink()
    assert f"no weights in {model}; looked for *.safetensors, *.bin" in message_of(model)


def test_folder_without_one_of_its_shards(model):
    (model / "model-00002-of-00002.safetensors").unlink()
    assert "index.json names model-00002-of-00002.safetensors, which" in message_of(model)
