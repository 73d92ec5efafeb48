"""Functions of tensors: what reads, moves, fills, multiplies, looks up, averages or normalises them, and elementary functions."""

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor

from ta_runtime.probes.patching import Watch, attribute
from ta_runtime.probes.undo import Undo, nothing

_READS = ("item", "tolist", "cpu", "numpy", "__bool__", "__float__", "__int__")
_AVERAGING = ("mul_", "__imul__", "add_", "__iadd__", "lerp_")
_ELEMENTARY = ("log", "exp", "sqrt", "acos", "arccos", "asin", "arcsin", "pow")


def _distributed(watch: Watch) -> Callable[[], None]:
    if not dist.is_available():
        return nothing
    from torch.distributed.tensor import DTensor

    undo = Undo()
    for name in ("item", "__float__", "__int__"):
        undo.patch(DTensor, name, watch)
    return undo


PLACES = {
    "copy": (attribute(Tensor, "to"), attribute(Tensor, "cuda")),
    "read": tuple(attribute(Tensor, name) for name in _READS),
    "read_distributed": (_distributed,),
    "elementary": tuple(
        attribute(owner, name)
        for owner, names in ((Tensor, (*_ELEMENTARY, "__pow__")), (torch, _ELEMENTARY))
        for name in names
    ),
    "multiply": tuple(
        attribute(owner, name) for owner, name in ((Tensor, "__mul__"), (Tensor, "mul"), (torch, "mul"))
    ),
    "draw_integers": (attribute(torch, "randint"),),
    "look_up": (
        attribute(Tensor, "__getitem__"),
        attribute(Tensor, "gather"),
        attribute(Tensor, "index_select"),
    ),
    "normalise": tuple(
        attribute(owner, name) for owner in (Tensor, torch) for name in ("softmax", "log_softmax")
    ),
    "average": (
        *(attribute(Tensor, name) for name in _AVERAGING),
        attribute(torch, "_foreach_lerp_"),
    ),
    "draw": (attribute(Tensor, "normal_"), attribute(Tensor, "uniform_")),
}
