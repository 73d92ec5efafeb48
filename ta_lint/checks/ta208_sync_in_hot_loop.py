"""TA208: `.item()` and the like in every step of a training loop make the CPU wait for the accelerator."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion, TrainingLoop
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.words import words
from ta_lint.syntax.tree import FUNCTIONS, Node, dotted

# If nothing names a device, all code runs on the CPU and nothing waits.
_DEVICES = ("cuda", "device", "to", "Accelerator", "Fabric")
KEYWORDS = (
    ("item", "tolist", "cpu", "float", "print"),
    _DEVICES,
)
AROUND = (
    "*backward",
    "step",
)

_READS = frozenset({"item", "tolist", "cpu"})
_PRINTS = frozenset({"builtins.print", "builtins.float"})


def check(module: FileFacts) -> Iterator[Suspicion]:
    if not module.training_loops or words(module.tree).isdisjoint(_DEVICES):
        return
    seen: set[Node] = set()
    for loop in module.training_loops:
        losses = _losses(loop, module)
        for call in module.tree.own(loop.region, cst.Call):
            if call in seen or not _is_every_step(call, loop, module):
                continue
            seen.add(call)
            name = _waits_for(call, losses, module)
            if name is not None:
                yield Suspicion(
                    call,
                    f"`{module.code(call)}` stalls the device in every step: read it every few steps",
                )


def _losses(loop: TrainingLoop, module: FileFacts) -> set[str]:
    """The variables that the loop calls `backward` on."""
    names = set()
    for call in loop.backwards:
        if isinstance(call.func, cst.Attribute):
            names.add(dotted(call.func.value))
        names.update(dotted(arg.value) for arg in call.args)
    return {name for name in names if name is not None and name != "self"}


def _waits_for(call: cst.Call, losses: set[str], module: FileFacts) -> str | None:
    """The tensor whose value a call copies to the CPU."""
    if isinstance(call.func, cst.Attribute) and call.func.attr.value in _READS and not call.args:
        value: Node = call.func.value
        if method_of := _detached(value):
            value = method_of
        name = dotted(value)
        return name if name in losses else None
    if module.qualified(call.func) in _PRINTS:
        return next((dotted(arg.value) for arg in call.args if dotted(arg.value) in losses), None)
    return None


def _detached(node: Node) -> Node | None:
    """`loss` for `loss.detach()`."""
    while (
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Attribute)
        and called_name(node) in ("detach", "mean", "sum")
    ):
        node = node.func.value
    return node if isinstance(node, (cst.Name, cst.Attribute)) else None


def _is_every_step(call: cst.Call, loop: TrainingLoop, module: FileFacts) -> bool:
    """Whether a call runs in every pass of a loop, not under a condition or in a nested loop."""
    for above in module.tree.ancestors(call):
        if above is loop.region:
            return True
        if isinstance(above, (cst.If, cst.IfExp, cst.ExceptHandler, cst.For, cst.While, *FUNCTIONS)):
            return False
    return False
