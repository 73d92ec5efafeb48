"""Packed sequences: their `data` is the tensor in them, with its graph, and not a detached view."""

import libcst as cst

from ta_lint.facts.values.flow import ValueFlow
from ta_lint.facts.values.names import Names
from ta_lint.facts.values.value import Frame
from ta_lint.syntax.tree import Node

_PACKS = frozenset(
    f"torch.nn.utils.rnn.{name}" for name in ("PackedSequence", "pack_padded_sequence", "pack_sequence")
)
_DEPTH = 2  # recurrent layers between the packing and a use


def is_packed(
    node: Node, names: Names, flow: ValueFlow, frame: Frame | None = None, depth: int = _DEPTH
) -> bool:
    """Whether a value is a packed sequence: packed by torch, or what a layer makes of one."""
    origins = flow.of(node, (), frame).origins
    calls = [(origin.node, origin.frame) for origin in origins if isinstance(origin.node, cst.Call)]
    return bool(calls) and all(
        names.qualified(call.func) in _PACKS
        or (depth > 0 and bool(call.args) and is_packed(call.args[0].value, names, flow, around, depth - 1))
        for call, around in calls
    )
