"""TA304: batch norm over vectors is trained on only a few of them."""

import re
from collections.abc import Iterator
from itertools import pairwise

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.loaders import LoaderCall, LoaderLoop
from ta_lint.syntax.tree import Node, dotted

KEYWORDS = (
    "BatchNorm1d",
    "Linear",
)
AROUND = (("*backward", "step"),)

_TOO_FEW = 8  # the same limit as in the run
_RESHAPES = frozenset(
    {"view", "reshape", "rearrange", "repeat", "repeat_interleave", "expand", "stack", "cat"}
)


def check(module: FileFacts) -> Iterator[Suspicion]:
    if re.search(r"SyncBatchNorm|track_running_stats", module.source.text) or _freezes_a_part(module):
        return
    for call in module.tree.all(cst.Call):
        made = module.kinds.construction(call.func)
        if made is None or len(call.args) != 1 or call.args[0].star or not _is_over_vectors(made, module):
            continue
        if not _trains(call, module):
            continue
        size, loader = _batch(call, module)
        if size is not None and size < _TOO_FEW:
            vectors = f"{size} vectors" if size > 1 else "a single vector"
            message = f"batch norm is noisy, as `{module.code(call.func)}` gives it {vectors}: use larger batches or group norm"
            related = ((loader.call, "the loader is made here"),) if loader is not None else ()
            yield Suspicion(call, message, related=related)


def _is_over_vectors(made: cst.Call, module: FileFacts) -> bool:
    """Whether a model has a batch norm that gets one vector per sample, directly from a linear layer."""
    if module.qualified(made.func) == "torch.nn.Sequential":
        return _is_sequence_over_vectors(made, module)
    klass = module.classes.local(made.func)
    if klass is None or not module.classes.derives(klass, "torch.nn.Module"):
        return False
    calls = module.tree.within(klass, cst.Call)
    if any(called_name(call) in _RESHAPES for call in calls):
        return False  # may turn one sample into several vectors
    return any(
        _is_norm_of_linear(call, module)
        or (module.qualified(call.func) == "torch.nn.Sequential" and _is_sequence_over_vectors(call, module))
        for call in calls
    )


def _is_sequence_over_vectors(made: cst.Call, module: FileFacts) -> bool:
    names = [_layer(arg.value, module) for arg in made.args]
    return ("torch.nn.Linear", "torch.nn.BatchNorm1d") in pairwise(names)


def _is_norm_of_linear(call: cst.Call, module: FileFacts) -> bool:
    """`self.norm(self.fc(x))`."""
    if _layer(call.func, module) != "torch.nn.BatchNorm1d" or len(call.args) != 1:
        return False
    inner = module.kinds.origin(call.args[0].value)
    return isinstance(inner, cst.Call) and _layer(inner.func, module) == "torch.nn.Linear"


def _layer(node: Node, module: FileFacts) -> str | None:
    made = module.kinds.construction(node)
    return module.qualified(made.func) if made is not None else None


def _freezes_a_part(module: FileFacts) -> bool:
    """Whether only a part of a model is put in evaluation mode, such as its batch norms."""
    for call in module.tree.all(cst.Call):
        if called_name(call) == "eval" and isinstance(call.func, cst.Attribute):
            receiver = call.func.value
            made = module.kinds.construction(receiver)
            if made is None or dotted(receiver) is None:
                return True
    return False


def _trains(call: cst.Call, module: FileFacts) -> bool:
    """Whether a call is in a training loop, and the model was not put in evaluation mode before."""
    if not any(module.loops.trains(loop) for loop in module.tree.loops(call)):
        return False
    switches = [
        called_name(found)
        for found in module.tree.own(module.tree.home(call), cst.Call)
        if called_name(found) in ("eval", "train") and module.tree.before(found, call)
    ]
    return switches[-1:] != ["eval"]


def _batch(call: cst.Call, module: FileFacts) -> tuple[int | None, LoaderCall | None]:
    """The number of vectors passed to a model, and the loader that they come from."""
    given = call.args[0].value
    shape = module.shapes.shape(given)
    if shape is not None and len(shape) == 2 and shape[0] is not None:
        return shape[0], None
    found = _pass(given, module)
    if found is None or len(found.loaders) != 1:
        return None, None
    loader = found.loaders[0]
    if loader.spreads or loader.given("batch_sampler") is not None or loader.given("collate_fn") is not None:
        return None, None
    size = loader.given("batch_size")
    if size is None:
        return 1, loader
    number = module.number(size)
    return (int(number) if number is not None else None), loader


def _pass(given: Node, module: FileFacts) -> LoaderLoop | None:
    """The loop over batches that a model's input comes from, possibly moved or cast."""
    value = module.kinds.origin(given)
    while (
        isinstance(value, cst.Call)
        and called_name(value) in ("cuda", "float", "to")
        and isinstance(value.func, cst.Attribute)
    ):
        value = module.kinds.origin(value.func.value)
    return module.loaders.pass_of(value) if isinstance(value, cst.Name) else None
