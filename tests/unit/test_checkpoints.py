"""Which checkpoint a resumed run continues from."""

import os

import pytest

from coba_openrlhf.checkpoints import COMPLETION_MARKER, select_checkpoint
from coba_openrlhf.config import ConfigError


def make_checkpoint(path, tag, *, age, complete=True, world_size=2):
    """A checkpoint as DeepSpeed and OpenRLHF lay it out, ``age`` seconds old."""
    folder = path / "_actor" / tag
    folder.mkdir(parents=True)
    for rank in range(world_size):
        (folder / f"bf16_zero_pp_rank_{rank}_mp_rank_00_optim_states.pt").touch()
        (folder / f"zero_pp_rank_{rank}_mp_rank_00_model_states.pt").touch()
    if complete:
        (folder / COMPLETION_MARKER).write_text("{}")
        os.utime(folder / COMPLETION_MARKER, (1e9 - age, 1e9 - age))


def latest(path):
    return (path / "_actor" / "latest").read_text()


def test_the_newest_complete_one_is_taken_and_named_for_deepspeed(tmp_path):
    make_checkpoint(tmp_path, "global_step20", age=30)
    make_checkpoint(tmp_path, "global_step40", age=20)
    make_checkpoint(tmp_path, "global_step60", age=0, complete=False)
    (tmp_path / "_actor" / "latest").write_text("global_step60")
    assert select_checkpoint(tmp_path, 2) == latest(tmp_path) == "global_step40"


def test_a_rotated_away_latest_does_not_matter(tmp_path):
    make_checkpoint(tmp_path, "global_step20", age=30)
    (tmp_path / "_actor" / "latest").write_text("global_step40")
    assert select_checkpoint(tmp_path, 2) == latest(tmp_path) == "global_step20"


def test_another_number_of_ranks_is_refused(tmp_path):
    make_checkpoint(tmp_path, "global_step4", age=0)
    with pytest.raises(ConfigError, match=r"global_step4 was written by 2 policy ranks, now there are 3"):
        select_checkpoint(tmp_path, 3)


def test_no_checkpoint(tmp_path):
    assert select_checkpoint(tmp_path, 2) is None
    make_checkpoint(tmp_path, "global_step4", age=0, complete=False)
    assert select_checkpoint(tmp_path, 2) is None
