"""Records the collectives of `torch.distributed`, sends and receives included, with everything that ranks must agree on."""

import inspect
from collections.abc import Mapping
from functools import cache
from typing import Any

import torch.distributed as dist
from torch import Tensor
from torch.distributed import distributed_c10d

from ta_lint.core.protocol import Action
from ta_runtime.probes.listener import Listener
from ta_runtime.probes.patching import Call, End
from ta_runtime.trace.call_recorder import CallRecorder, Said
from ta_runtime.trace.signatures import canonical

_SAID = ("src", "dst", "group_src", "group_dst", "async_op", "tag", "output_split_sizes", "input_split_sizes")

_destroyed: list[Any] = []


class Distributed(Listener):
    """Records them, except those that torch calls from C++ for a gradient."""

    def __init__(self, recorder: CallRecorder) -> None:
        self._recorder = recorder

    def collective(self, call: Call) -> End | None:
        return self._recorder.record(call, _begin, given=self._given)

    def message(self, call: Call) -> End | None:
        return self._recorder.record(call, _begin, given=self._given)

    def leave_group(self, call: Call) -> None:
        """Keep process groups until the process ends: freeing one may deadlock with a thread that waits for Python."""
        _destroyed.extend(distributed_c10d._world.pg_map)

    def _given(self, call: Call) -> tuple[str, str]:
        bound = _signature(call.function).bind(*call.args, **call.kwargs).arguments
        values = [value for name, value in bound.items() if name not in ("group", "op")]
        inputs, _ = self._recorder.course.signatures.given((), tuple(map(_tensors, values)), None)
        return inputs, _arguments(bound)


_signature = cache(inspect.signature)


def _begin(call: Call) -> Said:
    parameters = list(_signature(call.function).parameters)
    group = (
        call.given(parameters.index("group"), "group") if "group" in parameters else call.kwargs.get("group")
    )
    return Action.COLLECTIVE, f"torch.distributed.{call.function.__name__}", _group(group)


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
