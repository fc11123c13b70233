"""Weight sync without NCCL: rank 0 of the policy broadcasts to the engines over gloo."""

import torch
from torch.distributed import BroadcastOptions
from vllm.distributed.utils import stateless_init_torch_distributed_process_group


class GlooBroadcast:
    """Stands where OpenRLHF keeps its PyNccl communicator; same ``broadcast`` call."""

    def __init__(self, master_address: str, master_port: int, rank: int, world_size: int) -> None:
        self._group = stateless_init_torch_distributed_process_group(
            master_address, master_port, rank, world_size, backend="gloo"
        )

    def broadcast(self, tensor: torch.Tensor, src: int, stream: object = None) -> None:
        """Fill ``tensor`` on every rank with rank ``src``'s values; returns when they are there."""
        options = BroadcastOptions()
        options.rootRank = src
        options.rootTensor = 0
        # gloo has no bfloat16: the same bytes travel as uint8.
        data = tensor.detach().contiguous()
        self._group.broadcast([data.view(-1).view(torch.uint8)], options).wait()
        if data.data_ptr() != tensor.data_ptr():
            tensor.copy_(data)
