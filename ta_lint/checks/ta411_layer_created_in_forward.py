"""TA411: `forward`, or a method that only it calls, creates a layer or parameter, so each call has a new one."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.syntax.tree import Node, attribute_of_self, dotted

KEYWORDS = ("forward",)


def check(module: FileFacts) -> Iterator[Suspicion]:
    for klass in module.classes.modules():
        for method in _of_forward(module, klass):
            calls = module.tree.within(method.body, cst.Call)
            called = {call.func.value for call in calls if isinstance(call.func, cst.Name)}
            for call in calls:
                if module.tree.home(call) is not method or not _is_used_up(module, call, called):
                    continue
                layer = module.layers.made(call)
                if layer is not None and not _is_inside_another(module, call):
                    yield Suspicion(call, _message(method.name.value, layer))


def _of_forward(module: FileFacts, klass: cst.ClassDef) -> list[cst.FunctionDef]:
    """`forward`, and the methods that it calls and nothing else does."""
    methods = module.classes.methods(klass)
    if (forward := methods.get("forward")) is None:
        return []
    found = [forward]
    for method in found:  # which grows
        for call in module.tree.within(method.body, cst.Call):
            called = methods.get(attribute_of_self(call.func) or "")
            if called is not None and called not in found:
                sites = module.calls.sites(called)
                if sites and all(module.tree.home(site) in found for site in sites):
                    found.append(called)
    return found


def _message(method: str, layer: str) -> str:
    if layer.endswith(("Dropout", "Dropout1d", "Dropout2d", "Dropout3d")):
        return f"`{method}` builds a new `{layer}` in every call, which also drops in evaluation: build it in `__init__`"
    return f"`{method}` builds a new `{layer}` in every call, so it never learns: build it in `__init__`"


def _is_inside_another(module: FileFacts, call: cst.Call) -> bool:
    """Whether a layer is only created as part of another, which is reported instead."""
    return any(
        isinstance(above, cst.Call)
        and module.tree.contains(above, call)
        and module.layers.made(above) is not None
        for above in module.tree.ancestors(call)
    )


def _is_used_up(module: FileFacts, call: cst.Call, called: set[str]) -> bool:
    """Whether a layer serves only this call of `forward`: it is called at once, or first bound to a local name."""
    above = module.tree.parent[call]
    while isinstance(above, cst.Attribute) and isinstance(outer := module.tree.parent[above], cst.Call):
        if above.attr.value not in ("to", "cuda", "type", "half", "float", "double", "train"):
            return False
        above = module.tree.parent[outer]
        call = outer
    if isinstance(above, cst.Call):
        return above.func is call
    if isinstance(above, cst.Assign) and len(above.targets) == 1:
        return _serves_locally(module, above.targets[0].target, above, called)
    return isinstance(above, (cst.BinaryOperation, cst.Arg)) and (
        module.qualified(call.func) == "torch.nn.Parameter"
    )


def _serves_locally(module: FileFacts, target: Node, assign: cst.Assign, called: set[str]) -> bool:
    """Whether the layer's name is only ever called, or `forward` sets its `self` attribute unconditionally."""
    if isinstance(target, cst.Name):
        if target.value not in called:  # what it means takes longer to find out
            return False
        uses = [use for use in module.names.mentions(target) if use is not target]
        return bool(uses) and all(_is_called(module, use) for use in uses)
    home = module.tree.home(assign)
    is_forward = isinstance(home, cst.FunctionDef) and home.name.value == "forward"
    unconditional = isinstance(home, cst.FunctionDef) and module.tree.block(assign) is home.body
    on_self = (dotted(target) or "").startswith("self.")
    return on_self and is_forward and unconditional


def _is_called(module: FileFacts, use: cst.Name) -> bool:
    above = module.tree.parent[use]
    return isinstance(above, cst.Call) and above.func is use
