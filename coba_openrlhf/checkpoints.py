"""Which checkpoint a resumed run continues from.

DeepSpeed loads the folder that the text file ``latest`` names. A run that was killed while saving can leave that
folder half written or already rotated away, so the newest complete one is chosen here and ``latest`` made to name it.
"""

from pathlib import Path

from coba_openrlhf.config import ConfigError

# Written by OpenRLHF after all ranks have saved.
COMPLETION_MARKER = "metric.json"


def select_checkpoint(path: Path, world_size: int) -> str | None:
    """Name of the newest complete checkpoint below ``path``; ``latest`` names it afterwards.

    Args:
        path: ``ckpt.path`` of the run.
        world_size: Policy ranks; ZeRO states can be read only by as many ranks as wrote them.

    Returns:
        The folder's name, None if there is no complete checkpoint.

    Raises:
        ConfigError: The checkpoint was written by another number of ranks.
    """
    folder = path / "_actor"
    markers = sorted(folder.glob(f"*/{COMPLETION_MARKER}"), key=lambda marker: marker.stat().st_mtime)
    if not markers:
        return None
    newest = markers[-1].parent
    written = len(list(newest.glob("*zero_pp_rank_*_optim_states.pt")))
    if written != world_size:
        raise ConfigError(
            f"ckpt.load_enable: {newest} was written by {written} policy ranks, now there are {world_size} "
            f"(actor.num_nodes * actor.num_gpus_per_node); resume with {written}"
        )
    (folder / "latest").write_text(newest.name, encoding="utf-8")
    return newest.name
