"""TA425: `model.requires_grad = False` sets a plain attribute and freezes nothing."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Kind, Suspicion
from ta_lint.syntax.edits import ProposedFix, replace
from ta_lint.syntax.tree import Node, dotted

KEYWORDS = ("requires_grad",)

# Iterators over modules, and the position of the module in their items.
_ITERATORS = {"children": None, "modules": None, "named_children": 1, "named_modules": 1}


def check(module: FileFacts) -> Iterator[Suspicion]:
    for statement in module.tree.all(cst.Assign):
        targets = [target.target for target in statement.targets]
        for target in targets:
            if (
                isinstance(target, cst.Attribute)
                and target.attr.value == "requires_grad"
                and _is_module(target.value, module)
                and not _is_read(target, module)
            ):
                message = _message(module.code(target.value))
                code = f"{module.verbatim(target.value)}.requires_grad_({module.verbatim(statement.value)})"
                fix = (
                    ProposedFix("call `requires_grad_`", (replace(statement, code),))
                    if len(targets) == 1
                    else None
                )
                yield Suspicion(statement, message, fix=fix)

    for call in module.tree.all(cst.Call):
        receiver = _set_by_name(call, module)
        if receiver is not None and _is_module(receiver, module):
            message = _message(module.code(receiver))
            yield Suspicion(call, message)


def _message(model: str) -> str:
    return f"this sets a plain attribute, and the parameters of `{model}` stay as they are: use `requires_grad_()`"


def _set_by_name(call: cst.Call, module: FileFacts) -> Node | None:
    """`x` in `setattr(x, "requires_grad", False)`."""
    if module.qualified(call.func) != "builtins.setattr" or len(call.args) != 3:
        return None
    return call.args[0].value if module.string(call.args[1].value) == "requires_grad" else None


def _is_module(node: Node, module: FileFacts) -> bool:
    return module.kind(node) is Kind.MODULE or (
        module.kind(node) is None and (_comes_from_modules(node, module) or _is_called(node, module))
    )


def _comes_from_modules(node: Node, module: FileFacts) -> bool:
    """Whether a name is an item of `model.children()` or the like."""
    bindings = module.names.bindings(node) if isinstance(node, cst.Name) else []
    return bool(bindings) and all(
        isinstance(loop := binding.node, (cst.For, cst.CompFor)) and _takes_modules(loop, node, module)
        for binding in bindings
    )


def _takes_modules(loop: cst.For | cst.CompFor, name: Node, module: FileFacts) -> bool:
    call = loop.iter
    target: Node = loop.target
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute) or call.args:
        return False
    if call.func.attr.value not in _ITERATORS:
        return False
    place = _ITERATORS[call.func.attr.value]
    if place is not None and isinstance(target, cst.Tuple) and len(target.elements) == 2:
        target = target.elements[place].value
    return dotted(target) == dotted(name)


def _is_called(node: Node, module: FileFacts) -> bool:
    """Whether the class calls an attribute of `self` like a layer, which a tensor does not allow."""
    klass = module.tree.enclosing(node, cst.ClassDef)
    if (
        klass is None
        or not isinstance(node, cst.Attribute)
        or not module.classes.derives(klass, "torch.nn.Module")
    ):
        return False
    path = dotted(node)
    return path is not None and any(dotted(call.func) == path for call in module.tree.within(klass, cst.Call))


def _is_read(target: cst.Attribute, module: FileFacts) -> bool:
    """Whether the attribute is a custom flag: something in this file, or in that of the class, reads it, or a
    property defines it.
    """
    klass = module.kinds.class_of(target.value)
    roots = {module.tree.root, *([module.tree.root_of(klass)] if klass is not None else [])}
    if any(
        function.name.value == "requires_grad"
        for root in roots
        for function in module.tree.within(root, cst.FunctionDef)
    ):
        return True
    return any(
        other.attr.value == "requires_grad"
        and not isinstance(module.tree.parent[other], cst.AssignTarget)
        and (dotted(other.value) in ("self", dotted(target.value)))
        for root in roots
        for other in module.tree.within(root, cst.Attribute)
    )
