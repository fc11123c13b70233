"""Import OpenRLHF without flash-attn.

``openrlhf/models/ring_attn_utils.py`` imports four tensor helpers and one collective from flash-attn at its
top, and flash-attn cannot be built without CUDA. That one module is executed while stand-ins lie in
``sys.modules``; they are removed at once, so that transformers and vLLM never see a flash-attn that is none.
"""

import importlib.util
import sys
from types import ModuleType

MODULE = "openrlhf.models.ring_attn_utils"


def install() -> None:
    """Make ``import openrlhf.models`` work where flash-attn is missing; does nothing where it is present."""
    if MODULE in sys.modules or importlib.util.find_spec("flash_attn") is not None:
        return
    standins = _standins()
    sys.modules.update(standins)
    try:
        # Executed by its file: importing the package would run openrlhf.models.__init__ first, which imports
        # every model with the stand-ins still visible.
        package = importlib.util.find_spec("openrlhf")
        assert package is not None and package.submodule_search_locations
        file = f"{package.submodule_search_locations[0]}/models/ring_attn_utils.py"
        spec = importlib.util.spec_from_file_location(MODULE, file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[MODULE] = module
        spec.loader.exec_module(module)
    finally:
        for name in standins:
            del sys.modules[name]


def _standins() -> dict[str, ModuleType]:
    import einops
    from transformers.modeling_flash_attention_utils import _pad_input, _unpad_input

    padding = ModuleType("flash_attn.bert_padding")
    padding.index_first_axis = lambda tensor, indices: tensor[indices]  # type: ignore[attr-defined]
    padding.pad_input = _pad_input  # type: ignore[attr-defined]
    padding.unpad_input = _unpad_input  # type: ignore[attr-defined]
    padding.rearrange = einops.rearrange  # type: ignore[attr-defined]

    distributed = ModuleType("flash_attn.utils.distributed")
    distributed.all_gather = _no_ring_attention  # type: ignore[attr-defined]
    return {
        "flash_attn": ModuleType("flash_attn"),
        "flash_attn.bert_padding": padding,
        "flash_attn.utils": ModuleType("flash_attn.utils"),
        "flash_attn.utils.distributed": distributed,
    }


def _no_ring_attention(*_args: object, **_kwargs: object) -> None:
    raise RuntimeError("ring attention (ds.ring_attn_size > 1) needs flash-attn, which needs CUDA")
