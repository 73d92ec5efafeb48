"""TA707: a collective of objects unpickles data from the other ranks, and so runs their code."""

from collections.abc import Iterator

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name

# Functions that only send unpickle nothing.
_UNPICKLE = (
    "all_gather_object",
    "broadcast_object_list",
    "gather_object",
    "recv_object_list",
    "scatter_object_list",
)
KEYWORDS = ("distributed", _UNPICKLE)


def check(module: FileFacts) -> Iterator[Suspicion]:
    for call in module.calls_to(*(f"torch.distributed.{name}" for name in _UNPICKLE)):
        yield Suspicion(
            call, f"`{called_name(call)}` runs code that other ranks may send in pickles: send tensors"
        )
