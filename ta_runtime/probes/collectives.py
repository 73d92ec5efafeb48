"""The collectives of `torch.distributed`, sends and receives included, but for those that torch calls from C++."""

import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from ta_runtime.probes.patching import PutOn, attribute, code

NAMES = (
    "all_gather", "all_gather_coalesced", "all_gather_into_tensor", "all_gather_object", "all_gather_single", "all_reduce",
    "all_reduce_coalesced", "all_to_all", "all_to_all_single", "barrier", "batch_isend_irecv", "broadcast",
    "broadcast_object_list", "gather", "gather_object", "monitored_barrier", "recv", "recv_object_list", "reduce",
    "reduce_scatter", "reduce_scatter_single", "reduce_scatter_tensor", "scatter", "scatter_object_list", "send",
    "send_object_list",
)  # fmt: skip


def _places() -> dict[str, tuple[PutOn, ...]]:
    if not dist.is_available():
        return {}
    from torch.distributed import distributed_c10d

    # `P2POp` compares these two by identity; `send` and `recv` call them
    messages = (code(distributed_c10d.isend), code(distributed_c10d.irecv))
    return {
        "collective": tuple(
            attribute(distributed_c10d, name) for name in NAMES if hasattr(distributed_c10d, name)
        ),
        "message": messages,
        "replicate": (attribute(DistributedDataParallel, "__init__"),),
        "join_group": (attribute(dist, "init_process_group"),),
        "leave_group": (attribute(distributed_c10d, "destroy_process_group"),),
    }


PLACES = _places()
