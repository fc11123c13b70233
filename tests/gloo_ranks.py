"""The two processes of the broadcast test; a module of its own, so that they import little."""

import torch

from coba_openrlhf.device.gloo_broadcast import GlooBroadcast

SHAPES = [(3, 5), (), (1000,)]


def sent_tensors():
    generator = torch.Generator().manual_seed(0)
    tensors = [torch.randn(shape, generator=generator).to(torch.bfloat16) for shape in SHAPES]
    tensors[2][:4] = torch.tensor([float("nan"), float("inf"), -0.0, 1e-40])
    return [*tensors, torch.randn(8, 6, generator=generator).t()]


def broadcast_rank(rank, port, results):
    """Put the bytes that this rank ends up with into ``results``."""
    group = GlooBroadcast("127.0.0.1", port, rank, 2)
    received = []
    for tensor in sent_tensors():
        buffer = tensor if rank == 0 else torch.full_like(tensor, 7.0)
        group.broadcast(buffer, src=0, stream=None)
        received.append(buffer)
    results.put((rank, [t.contiguous().view(torch.uint8).tolist() if t.dim() else t.item() for t in received]))
