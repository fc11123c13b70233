"""The configuration's door: names, types, precedence, spellings."""

import subprocess
import sys

import pytest
import yaml

from coba_openrlhf.config import ConfigError, RunConfig, flatten, load_config, to_yaml


def yaml_file(path, text):
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.fixture
def base(tmp_path):
    return yaml_file(tmp_path / "base.yaml", "coba:\n  tau: 6\n  kappa: 12\nactor:\n  adam:\n    lr: 5e-7\n")


def test_defaults_then_files_then_options(base, tmp_path):
    later = yaml_file(tmp_path / "later.yaml", "coba:\n  kappa: 13\n  lambd: 7\n")
    config, _ = load_config(["--config", base, "--config", later, "--coba.lambd", "6"])
    assert (config.coba.gamma, config.coba.tau, config.coba.kappa, config.coba.lambd) == (10.0, 6.0, 13.0, 6.0)
    config, _ = load_config(["--config", later, "--config", base])
    assert config.coba.kappa == 12.0


@pytest.mark.parametrize("spelling", [["--config", "{}"], ["--config={}"]], ids=["space", "equals"])
def test_options_win_wherever_the_file_stands(base, spelling):
    config, _ = load_config(["--coba.tau", "9", *(part.format(base) for part in spelling), "--coba.kappa=14"])
    assert (config.coba.tau, config.coba.kappa, config.actor.adam.lr) == (9.0, 14.0, 5e-7)


def test_exponents_without_a_point_are_floats(base):
    """YAML itself reads ``5e-7`` as text."""
    config, _ = load_config(["--config", base, "--actor.adam.eps", "1e-9"])
    assert isinstance(yaml.safe_load("5e-7"), str)
    assert config.actor.adam.lr == 5e-7
    assert config.actor.adam.eps == 1e-9


def test_upstream_spellings():
    line = (
        "--ds.packing_samples --actor.eps_clip_low_high 0.1 0.3 --reward.clip_range -5 5 --actor.adam.betas 0.8 0.9 "
        "--algo.advantage.is_correction_threshold 3 --ds.lora.target_modules q_proj v_proj "
        "--eval.steps -1 --vllm.enforce_eager=true --dry_run"
    )
    config, dry_run = load_config(line.split())
    assert config.ds.packing_samples is True
    assert config.vllm.enforce_eager is True
    assert config.actor.eps_clip_low_high == (0.1, 0.3)
    assert config.reward.clip_range == (-5.0, 5.0)
    assert config.actor.adam.betas == (0.8, 0.9)
    assert config.algo.advantage.is_correction_threshold == [3.0]
    assert config.ds.lora.target_modules == ["q_proj", "v_proj"]
    assert config.eval.steps == -1
    assert dry_run is True
    assert load_config(["--ds.packing_samples", "false"])[0].ds.packing_samples is False


@pytest.mark.parametrize(
    ("option", "nearest"),
    [("coba.taw", "coba.tau"), ("batch_size", "train.batch_size"), ("optimizer.betas", "actor.adam.betas")],
)
def test_unknown_option_names_the_nearest(option, nearest):
    with pytest.raises(ConfigError, match=f"unknown option --{option}") as error:
        load_config([f"--{option}", "3"])
    assert repr(nearest) in str(error.value)


def test_unknown_key_in_a_file(tmp_path):
    file = yaml_file(tmp_path / "typo.yaml", "rollout:\n  bath_size: 4\n")
    with pytest.raises(ConfigError) as error:
        load_config(["--config", file])
    assert file in str(error.value)
    assert "'rollout.bath_size'" in str(error.value)
    assert "'rollout.batch_size'" in str(error.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("rollout.batch_size", "many"),
        ("rollout.batch_size", "1.5"),
        ("ds.packing_samples", "maybe"),
        ("coba.tau", "high"),
        ("coba.tau_mode", "variable"),
        ("coba.solver", "bisection"),
        ("actor.eps_clip_low_high", "[1, 2, 3]"),
        ("coba.budget.min", "null"),
    ],
)
def test_wrong_type_names_key_and_value(key, value):
    with pytest.raises(ConfigError) as error:
        load_config([f"--{key}", value])
    assert key in str(error.value)


@pytest.mark.parametrize(
    "argv",
    [["--coba.tau", "3:7"], ["--coba.tau=3:7"], ["--coba.budget.min", "1:30"], ["--actor.adam.betas", "0:1", "0.9"]],
)
def test_numbers_are_no_times(argv):
    with pytest.raises(ConfigError, match=r"must be a number, got '.*:"):
        load_config(argv)


@pytest.mark.parametrize(
    "text", ["coba:\n  tau: 3:7\n", "coba:\n  run_dir: 12:30\n", "actor: {adam: {betas: [1:01, 0.9]}}\n"]
)
def test_numbers_are_no_times_in_a_file(tmp_path, text):
    with pytest.raises(ConfigError, match="minutes and seconds"):
        load_config(["--config", yaml_file(tmp_path / "time.yaml", text)])


def test_texts_may_look_like_times(tmp_path):
    file = yaml_file(tmp_path / "text.yaml", "coba:\n  run_dir: '12:30'\n")
    assert load_config(["--config", file])[0].coba.run_dir == "12:30"


def test_wrong_type_in_a_file(tmp_path):
    file = yaml_file(tmp_path / "wrong.yaml", "rollout:\n  batch_size: many\n")
    with pytest.raises(ConfigError, match="batch_size"):
        load_config(["--config", file])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1", "not valid YAML"),
        ("- 1\n- 2\n", "must hold options as a mapping, got list"),
        ("# nothing\n", "must hold options as a mapping, got NoneType"),
        ("coba:\n  tau: 1\nactor:\n  optim: adam\ncoba:\n  eps: 0.1\n", "key 'coba' must stand once.* lines 1 and 5"),
        ("coba:\n  tau: 1\n  tau: 2\n", r"key 'coba\.tau' must stand once.* lines 2 and 3"),
        ("coba:\n  tau: 1\ncoba.tau: 2\n", r"key 'coba\.tau' must stand once.* lines 2 and 3"),
        ("coba: &c\n  budget: *c\n", r"'coba\.budget' must not contain itself"),
        ("coba:\n  run_dir: 2020-13-45\n", "not valid YAML: month"),
    ],
)
def test_unreadable_file(tmp_path, text, message):
    file = yaml_file(tmp_path / "broken.yaml", text)
    with pytest.raises(ConfigError, match=message) as error:
        load_config(["--config", file])
    assert file in str(error.value)


def test_file_that_is_not_utf8(tmp_path):
    file = tmp_path / "latin.yaml"
    file.write_bytes("coba:\n  run_dir: caf\u00e9\n".encode("latin-1"))
    with pytest.raises(ConfigError, match=r"latin\.yaml: must be UTF-8 text, got byte 0xe9 at position 20"):
        load_config(["--config", str(file)])


def test_anchors_and_merged_blocks_are_no_repetition(tmp_path):
    text = "actor:\n  adam: &a\n    lr: 5e-7\ncritic:\n  adam:\n    <<: *a\n    eps: 1e-7\n"
    assert load_config(["--config", yaml_file(tmp_path / "merged.yaml", text)])[0].critic.adam.lr == 5e-7


def test_missing_file():
    with pytest.raises(ConfigError, match=r"no such file: 'nowhere\.yaml' \(current folder: "):
        load_config(["--config", "nowhere.yaml"])


@pytest.mark.parametrize("argv", [["stray"], ["--train.batch_size"], ["--config"]])
def test_incomplete_command_lines(argv):
    with pytest.raises(ConfigError):
        load_config(argv)


def test_yaml_round_trip(base, tmp_path):
    argv = ["--config", base, "--actor.eps_clip_low_high", "0.1", "0.3", "--coba.alpha_max=4", "--eval.dataset=x,y"]
    config, _ = load_config([*argv, "--data.input_template", "Q: {}\n'A':", "--ckpt.max_mem=.inf"])
    again, _ = load_config(["--config", yaml_file(tmp_path / "resolved.yaml", to_yaml(config))])
    assert again == config
    assert to_yaml(again) == to_yaml(config)
    assert again != RunConfig()


def test_flatten_has_every_option():
    flat = flatten(RunConfig())
    assert flat["actor.adam.lr"] == 1e-6
    assert flat["coba.pass_rate.success_threshold"] == 1.0
    assert [name for name, value in flat.items() if isinstance(value, dict)] == ["coba.verifier_of"]
    assert len(flat) > 150


def test_help_exits_cleanly(capsys):
    with pytest.raises(SystemExit) as stop:
        load_config(["--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert "--coba.tau" in text
    assert "Saturation of a budget's value" in text


def test_configuration_loads_nothing_heavy():
    code = (
        "import sys; from coba_openrlhf.config import check, load_config; load_config([]); "
        "heavy = {'torch', 'ray', 'vllm', 'deepspeed', 'openrlhf', 'transformers', 'datasets'}; "
        "print(*sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_upstream_spelling_of_infinity():
    assert load_config(["--ckpt.max_mem", "inf"])[0].ckpt.max_mem == float("inf")


@pytest.mark.parametrize("text", ["coba:\n", "coba: 3\n", "coba:\n  budget:\n"])
def test_a_group_without_options_is_named(tmp_path, text):
    file = tmp_path / "config.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=r"coba(\.budget)? must hold options as a mapping"):
        load_config(["--config", str(file)])


@pytest.mark.parametrize("key", ["rollout.batch_size", "actor.adam.lr", "coba.verifier", "coba.eval.at_start"])
def test_null_in_a_file_is_refused_where_the_type_has_none(tmp_path, key):
    file = tmp_path / "config.yaml"
    *groups, name = key.split(".")
    file.write_text(
        "".join(f"{' ' * depth}{group}:\n" for depth, group in enumerate(groups)) + f"{' ' * len(groups)}{name}: null\n"
    )
    with pytest.raises(ConfigError, match=f"{key} must not be null"):
        load_config(["--config", str(file)])
