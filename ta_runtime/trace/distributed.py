"""Records the collectives of `torch.distributed`, sends and receives included, with everything that ranks must agree on."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch.distributed as dist
from torch import Tensor
from torch.distributed import distributed_c10d

from ta_lint.core.protocol import Action
from ta_runtime.observers.patching import Undo
from ta_runtime.trace.signatures import canonical
from ta_runtime.trace.wrapping import Args, Given, Kwargs, Said, Wrapping

NAMES = (
    "all_gather", "all_gather_coalesced", "all_gather_into_tensor", "all_gather_object", "all_gather_single", "all_reduce",
    "all_reduce_coalesced", "all_to_all", "all_to_all_single", "barrier", "batch_isend_irecv", "broadcast",
    "broadcast_object_list", "gather", "gather_object", "monitored_barrier", "recv", "recv_object_list", "reduce",
    "reduce_scatter", "reduce_scatter_single", "reduce_scatter_tensor", "scatter", "scatter_object_list", "send",
    "send_object_list",
)  # fmt: skip
_PAIRWISE = ("isend", "irecv")  # `P2POp` compares them by identity, so they are not replaced
_SAID = ("src", "dst", "group_src", "group_dst", "async_op", "tag", "output_split_sizes", "input_split_sizes")

_destroyed: list[Any] = []


class Distributed:
    """Watches them between `attach` and `detach`, except those that torch calls from C++ for a gradient."""

    def __init__(self, wrapping: Wrapping) -> None:
        self._wrapping = wrapping
        self._undo = Undo()

    def attach(self) -> None:
        if not dist.is_available():
            return
        telling = self._wrapping.telling
        undo = self._undo
        for name in NAMES:
            if (function := getattr(distributed_c10d, name, None)) is not None:
                wrapper = telling(_begin(name, function), given=self._given(function))
                undo.patch(distributed_c10d, name, wrapper)
                if hasattr(dist, name):
                    undo.patch(dist, name, wrapper)
        for name in _PAIRWISE:
            function = getattr(distributed_c10d, name)
            undo.recode(function, telling(_begin(name, function), given=self._given(function)))
        for module in (distributed_c10d, dist):
            undo.patch(module, "destroy_process_group", _kept)

    def detach(self) -> None:
        self._undo()

    def _given(self, function: Callable[..., Any]) -> Given:
        signature, signatures = inspect.signature(function), self._wrapping.course.signatures

        def given(args: Args, kwargs: Kwargs) -> tuple[str, str]:
            bound = signature.bind(*args, **kwargs).arguments
            values = [value for name, value in bound.items() if name not in ("group", "op")]
            inputs, _ = signatures.given((), tuple(map(_tensors, values)), None)
            return inputs, _arguments(bound)

        return given


def _kept(original: Callable[..., Any]) -> Callable[..., Any]:
    """Keep process groups until the process ends: freeing one may deadlock with a thread that waits for Python."""

    def destroy_process_group(*args: Any, **kwargs: Any) -> Any:
        _destroyed.extend(distributed_c10d._world.pg_map)
        return original(*args, **kwargs)

    return destroy_process_group


def _begin(name: str, function: Callable[..., Any]) -> Callable[[Args, Kwargs], Said]:
    parameters = list(inspect.signature(function).parameters)
    place = parameters.index("group") if "group" in parameters else len(parameters)

    def begin(args: Args, kwargs: Kwargs) -> Said:
        group = args[place] if len(args) > place else kwargs.get("group")
        return Action.COLLECTIVE, f"torch.distributed.{name}", _group(group)

    return begin


def _tensors(value: Any) -> Any:
    return value if isinstance(value, (Tensor, list, tuple)) else None


def _arguments(given: Mapping[str, Any]) -> str:
    said = {name: value for name in _SAID if (value := given.get(name)) is not None}
    said = {
        name: list(map(int, value)) if isinstance(value, (list, tuple)) else value
        for name, value in said.items()
    }
    if (operation := given.get("op")) is not None:
        said["op"] = str(operation).rpartition(".")[2]
    return canonical(said) if said else ""


def _group(group: Any) -> str:
    """The name of a group on all of its ranks: their numbers, or `all` for the default group."""
    if group is None or group is dist.GroupMember.WORLD:
        return "all"
    if group is dist.GroupMember.NON_GROUP_MEMBER:
        return "none"
    return ",".join(map(str, dist.get_process_group_ranks(group)))
