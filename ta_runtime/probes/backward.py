"""Backward passes: `Tensor.backward` and `torch.autograd.backward` meet in one function, beside `torch.autograd.grad`."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.autograd.graph import Node

from ta_runtime.probes.patching import attribute
from ta_runtime.probes.threads import trains

PLACES = {
    "backward": (attribute(torch.autograd, "backward", trains),),
    "differentiate": (attribute(torch.autograd, "grad", trains),),
}

# not public: without it, what a backward pass runs once more is taken for a forward pass
_graph_task = getattr(torch._C, "_current_graph_task_id", lambda: -1)


def in_backward() -> bool:
    """Whether autograd runs this: a forward pass is then a recomputation."""
    return bool(_graph_task() != -1)


def on_backward(nodes: Iterable[Node], called: Callable[[], object]) -> None:
    """Call a function once, with the first backward pass that goes through one of these nodes of a graph."""
    passed: list[bool] = []

    def note(gradients: Any) -> None:
        if not passed:
            passed.append(True)
            called()

    for node in nodes:
        node.register_prehook(note)
