"""The CPU layer: OpenRLHF importable and usable without CUDA, and safe over gloo."""

import socket
import subprocess
import sys

import coba_openrlhf.device.ready  # noqa: F401  isort: skip
import pytest
import torch
import torch.multiprocessing as mp

from coba_openrlhf.device import DEVICE_VARIABLE, cpu_environment, device_kind, is_cpu
from tests.gloo_ranks import broadcast_rank, sent_tensors
from tests.rollouts import base_args


def run_python(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[-2]


def test_flash_attn_standin_leaves_no_trace():
    """OpenRLHF's models import, and nobody can mistake the stand-ins for flash-attn."""
    shown = run_python(
        "import sys, importlib.util; import coba_openrlhf.device.ready; from openrlhf.models import Actor; "
        "from transformers.utils import is_flash_attn_2_available; "
        "print([m for m in sys.modules if m.startswith('flash_attn')], importlib.util.find_spec('flash_attn'), "
        "is_flash_attn_2_available(), Actor.__name__)"
    )
    assert shown == "[] None False Actor"


def test_standin_is_not_installed_twice():
    from coba_openrlhf.device import flash_attn_standin

    module = sys.modules[flash_attn_standin.MODULE]
    flash_attn_standin.install()
    assert sys.modules[flash_attn_standin.MODULE] is module
    from openrlhf.models import ring_attn_utils

    assert ring_attn_utils is module


def test_packing_helpers_round_trip():
    """What the stand-ins do for ``ds.packing_samples``: padding out, padding in."""
    from openrlhf.models import ring_attn_utils

    torch.manual_seed(0)
    mask = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1], [0, 1, 1, 0, 0]])
    hidden = torch.randn(3, 5, 4)
    packed, indices, cu_seqlens, longest, *_ = ring_attn_utils.unpad_input(hidden, mask)
    assert torch.equal(packed, hidden[mask.bool()])
    assert cu_seqlens.tolist() == [0, 3, 8, 10]
    assert int(longest) == 5
    assert torch.equal(ring_attn_utils.pad_input(packed, indices, 3, 5), hidden * mask[..., None])
    flat = ring_attn_utils.rearrange(hidden, "b s ... -> (b s) ...")
    assert torch.equal(ring_attn_utils.index_first_axis(flat, indices), packed)


def test_unpad_and_pad_of_upstream_round_trip():
    from openrlhf.models.ring_attn_utils import gather_and_pad_tensor, unpad_and_slice_tensor

    sequences = torch.tensor([[5, 6, 7, 0], [8, 9, 0, 0]])
    mask = (sequences > 0).long()
    packed, positions, _, pad_len, indices = unpad_and_slice_tensor(sequences, mask, None)
    assert packed.tolist() == [[5, 6, 7, 8, 9]]
    assert positions.tolist() == [[0, 1, 2, 0, 1]]
    values = packed.float().view(1, -1)
    assert torch.equal(gather_and_pad_tensor(values, None, pad_len, indices, 2, 4), sequences.float())


def test_ring_attention_is_refused():
    from openrlhf.models import ring_attn_utils

    with pytest.raises(RuntimeError, match=r"ds\.ring_attn_size > 1.*needs CUDA"):
        ring_attn_utils.all_gather(torch.zeros(1), None)


def test_cuda_standins_in_a_fresh_process():
    shown = run_python(
        "import torch; from torch import cuda; from coba_openrlhf.device import cuda_standin; cuda_standin.install(); "
        "cuda.set_device(0); cuda.synchronize(); cuda.empty_cache(); d = cuda.current_device(); "
        "print(torch.zeros(1, device=d).device, torch.device(f'cuda:{d}'), cuda.current_stream(), cuda.is_available())"
    )
    assert shown == "cpu cuda:0 None False"


def test_cuda_standins_refuse_where_cuda_is(monkeypatch):
    from coba_openrlhf.device import cuda_standin

    before = torch.cuda.current_device
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with pytest.raises(RuntimeError, match="must not be installed where CUDA is available"):
        cuda_standin.install()
    assert torch.cuda.current_device is before


@pytest.mark.parametrize("available", [True, False])
@pytest.mark.parametrize("chosen", ["cpu", "cuda", None])
def test_device_kind(monkeypatch, available, chosen):
    """The driver's choice first: an actor without GPUs on a GPU cluster sees none."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: available)
    monkeypatch.delenv(DEVICE_VARIABLE, raising=False)
    if chosen:
        monkeypatch.setenv(DEVICE_VARIABLE, chosen)
    expected = chosen or ("cuda" if available else "cpu")
    assert device_kind() == expected
    assert is_cpu() is (expected == "cpu")


def test_unknown_device_is_refused(monkeypatch):
    monkeypatch.setenv(DEVICE_VARIABLE, "tpu")
    with pytest.raises(ValueError, match="COBA_DEVICE must be cpu or cuda, got 'tpu'"):
        device_kind()


def test_cpu_environment_divides_the_cores(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    assert [cpu_environment(n)["OMP_NUM_THREADS"] for n in (1, 2, 3, 8, 9)] == ["8", "4", "2", "1", "1"]


def test_cpu_environment_keeps_what_the_user_set(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "4")
    environment = cpu_environment(2)
    assert environment["OMP_NUM_THREADS"] == "3"
    assert environment["VLLM_CPU_KVCACHE_SPACE"] == "4"
    assert environment[DEVICE_VARIABLE] == "cpu"
    assert environment["DS_ACCELERATOR"] == "cpu"
    assert all(isinstance(value, str) for value in environment.values())


ADAM = {"type": "AdamW", "params": {"lr": 1e-6}}


def strategy_of(cls, stage):
    args = base_args({"ds.zero_stage": stage, "train.batch_size": 8})
    return cls(zero_stage=stage, train_batch_size=8, micro_train_batch_size=2, args=args)


@pytest.mark.parametrize("stage", [0, 2, 3])
def test_deepspeed_gathers_one_after_the_other(stage):
    from openrlhf.utils.deepspeed import DeepspeedStrategy

    from coba_openrlhf.device.deepspeed_strategy import CpuDeepspeedStrategy

    ours, upstream = strategy_of(CpuDeepspeedStrategy, stage), strategy_of(DeepspeedStrategy, stage)
    for got, base in (
        (ours.get_ds_train_config(dict(ADAM, params=dict(ADAM["params"]))), upstream.get_ds_train_config(ADAM)),
        (ours.get_ds_train_config(max_norm=0.5), upstream.get_ds_train_config(max_norm=0.5)),
        (ours.get_ds_eval_config(offload=False), upstream.get_ds_eval_config(offload=False)),
    ):
        assert got["zero_optimization"]["stage3_allgather_sequential"] is True
        assert got["zero_optimization"]["stage3_param_persistence_threshold"] == 0
        # Everything else is upstream's.
        assert {**got, "zero_optimization": 0, "optimizer": 0} == {**base, "zero_optimization": 0, "optimizer": 0}
        kept = set(base["zero_optimization"]) - {"stage3_param_persistence_threshold"}
        assert all(got["zero_optimization"][k] == base["zero_optimization"][k] for k in kept)


def test_adamw_needs_no_compiler():
    from coba_openrlhf.device.deepspeed_strategy import CpuDeepspeedStrategy

    config = strategy_of(CpuDeepspeedStrategy, 3).get_ds_train_config(dict(ADAM, params=dict(ADAM["params"])))
    assert config["optimizer"] == {"type": "AdamW", "params": {"lr": 1e-6, "torch_adam": True}}


def test_deepspeed_knows_the_sequential_gather():
    """The key is DeepSpeed's own; a renamed one would be ignored silently."""
    from deepspeed.runtime.zero.config import DeepSpeedZeroConfig

    assert DeepSpeedZeroConfig(stage3_allgather_sequential=True).allgather_sequential is True


def test_gloo_broadcast_transfers_bits_exactly():
    with socket.socket() as probe:
        probe.bind(("", 0))
        port = probe.getsockname()[1]
    context = mp.get_context("spawn")
    results = context.Queue()
    ranks = [context.Process(target=broadcast_rank, args=(rank, port, results)) for rank in range(2)]
    for process in ranks:
        process.start()
    received = dict(results.get(timeout=90) for _ in ranks)
    for process in ranks:
        process.join(timeout=30)
        assert process.exitcode == 0
    assert received[1] == received[0]
    assert received[0][1] == sent_tensors()[1].item()


def test_parameter_guard_finds_a_single_wrong_number(tmp_path):
    from coba_openrlhf.device.parameter_guard import compare_with_checkpoint
    from coba_openrlhf.prepare.quickstart import build_model, build_tokenizer

    model = build_model(build_tokenizer()).to(torch.bfloat16)
    model.save_pretrained(tmp_path)
    assert compare_with_checkpoint(model, str(tmp_path), zero_stage=0) > 0
    with torch.no_grad():
        model.model.layers[1].mlp.up_proj.weight[3, 5] += 1.0
    with pytest.raises(RuntimeError, match=r"differ from .*layers\.1\.mlp\.up_proj\.weight"):
        compare_with_checkpoint(model, str(tmp_path), zero_stage=0)
