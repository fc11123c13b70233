"""What differs where there is CUDA; skipped everywhere else."""

import sys

import pytest
import torch

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")]


def test_device_is_cuda(monkeypatch):
    from coba_openrlhf.device import DEVICE_VARIABLE, device_kind, is_cpu

    monkeypatch.delenv(DEVICE_VARIABLE, raising=False)
    assert device_kind() == "cuda"
    assert not is_cpu()


def test_real_flash_attn_is_used():
    pytest.importorskip("flash_attn")
    import coba_openrlhf.device.ready  # noqa: F401  isort: skip
    from openrlhf.models import ring_attn_utils

    assert ring_attn_utils.unpad_input.__module__.startswith("flash_attn")
    assert sys.modules["flash_attn"].__file__


def test_cuda_calls_stay_the_real_ones():
    from coba_openrlhf.device import cuda_standin
    from coba_openrlhf.device.ready import prepare_training_process

    real = torch.cuda.current_device
    prepare_training_process()
    assert torch.cuda.current_device is real
    assert torch.cuda.current_device() == 0
    with pytest.raises(RuntimeError, match="CUDA is available"):
        cuda_standin.install()


@pytest.mark.parametrize("estimator", ["group_norm", "rloo", "dr_grpo"])
def test_advantages_agree_with_the_cpu(estimator):
    """Constant groups are exactly 0 on the device too."""
    from coba_openrlhf.trainer.group_advantages import compute_group_advantages

    generator = torch.Generator().manual_seed(0)
    reward_R = torch.cat([torch.rand(57, generator=generator), torch.full((7,), 0.2)])
    group_id_R = torch.tensor([0] * 16 + [1] * 2 + [2] * 38 + [3] + [4] * 7)
    scored_R = torch.ones(64, dtype=torch.bool)
    on_cpu, _ = compute_group_advantages(reward_R, group_id_R, scored_R, estimator)
    on_cuda, _ = compute_group_advantages(reward_R.cuda(), group_id_R.cuda(), scored_R.cuda(), estimator)
    assert torch.allclose(on_cuda.cpu(), on_cpu, rtol=1e-5, atol=1e-6)
    assert not on_cuda[-8:].any()
