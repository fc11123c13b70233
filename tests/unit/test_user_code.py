"""Reward and agent files are read, never run."""

import pytest

from coba_openrlhf.config import ConfigError
from coba_openrlhf.preflight.user_code import check_user_code
from tests.rollouts import base_config

KEYS = {"reward.remote_url": "reward_func", "train.agent_func_path": "AgentExecutor"}

DEFINED = [
    "def NAME(queries, prompts, labels): ...",
    "class NAME: ...",
    "from mine import NAME",
    "from mine import score as NAME",
    "from mine import *",
    "if True:\n    NAME = print\nelse:\n    pass",
    "try:\n    from fast import NAME\nexcept ImportError:\n    from slow import NAME",
    "a, NAME = 1, print",
    "NAME: object = print",
    "(NAME := print)",
    "globals()['NA' + 'ME'] = print",
    "exec('def NAME(): ...')",
    "def make():\n    global NAME\n    NAME = print\nmake()",
    "import sys\nsys.modules[__name__].NAME = print",
    "def __getattr__(name): ...",
]
UNDEFINED = ["", "def score(): ...", "class Mine:\n    def NAME(self): ...", "def make():\n    NAME = 1", "print(NAME)"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("text", DEFINED)
@pytest.mark.parametrize("key", KEYS)
def test_every_way_to_define_the_name_passes(here, key, text):
    (here / "mine.py").write_text("raise SystemExit\n" + text.replace("NAME", KEYS[key]))
    check_user_code(base_config({key: "mine.py"}))


@pytest.mark.parametrize("text", UNDEFINED)
@pytest.mark.parametrize("key", KEYS)
def test_file_without_the_name(here, key, text):
    (here / "mine.py").write_text(text.replace("NAME", KEYS[key]))
    with pytest.raises(ConfigError, match=rf"{key}: .*mine\.py must define a \w+ {KEYS[key]}"):
        check_user_code(base_config({key: "mine.py"}))


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("content", [b"def f(:\n", b"x = 'a\n", b"x = 'caf\xe9'\n", b"x\0y"])
def test_file_that_is_not_python(here, key, content):
    (here / "mine.py").write_bytes(b"\n" + content)
    with pytest.raises(ConfigError, match=rf"{key}: .*mine\.py.* (is not valid Python|cannot be read): "):
        check_user_code(base_config({key: "mine.py"}))
