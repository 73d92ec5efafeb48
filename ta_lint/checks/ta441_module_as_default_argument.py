"""TA441: a layer with weights is a default argument, so all models that use the default share it."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.syntax.tree import Node, is_name

KEYWORDS = ("def",)
AROUND = (("nn", "Module", "torch"),)

_COPIES = frozenset({"copy.deepcopy", "copy.copy"})


def check(module: FileFacts) -> Iterator[Suspicion]:
    for function in module.tree.all(cst.FunctionDef):
        params = function.params
        for param in (*params.posonly_params, *params.params, *params.kwonly_params):
            for default in _calls(param.default):
                made = module.layers.made(default)
                if made is None or "Dropout" in made or not _has_weights(module, default):
                    continue
                name = param.name.value
                if _keeps(module, function, name) and not _copies(module, function, name):
                    message = f"this default `{made}` is built only once, so all models share it: build it in the function"
                    yield Suspicion(default, message)


def _calls(default: Node | None) -> list[cst.Call]:
    """The calls that make a default: `RGBHead()`, and each one in `(RGBHead(), DepthHead())`."""
    if isinstance(default, (cst.Tuple, cst.List)):
        return [element.value for element in default.elements if isinstance(element.value, cst.Call)]
    return [default] if isinstance(default, cst.Call) else []


def _has_weights(module: FileFacts, made: cst.Call) -> bool:
    """Whether a class of the project that is made has layers with weights, and not only such as drop."""
    klass = module.classes.local(made.func)
    if klass is None:
        return True
    layers = [module.layers.made(call) for call in module.tree.within(klass, cst.Call)]
    names = [name for name in layers if name is not None]
    return not names or any("Dropout" not in name for name in names)


def _keeps(module: FileFacts, function: cst.FunctionDef, name: str) -> bool:
    """Whether the layer goes into an object: one that is constructed here, or that is built from it and returned."""
    if isinstance(module.tree.home(function), cst.ClassDef) and function.name.value == "__init__":
        return any(
            _mentions(module, assign.value, name) for assign in module.tree.own(function, cst.Assign)
        ) or any(
            _is_super(call) and _mentions(module, call, name) for call in module.tree.own(function, cst.Call)
        )
    return any(
        isinstance(leave.value, cst.Call)
        and any(_mentions(module, arg.value, name) for arg in leave.value.args)
        for leave in module.tree.own(function, cst.Return)
        if leave.value is not None and module.layers.made(leave.value) is not None
    )


def _is_super(call: cst.Call) -> bool:
    func = call.func
    return (
        isinstance(func, cst.Attribute)
        and func.attr.value == "__init__"
        and isinstance(func.value, cst.Call)
        and is_name(func.value.func, "super")
    )


def _mentions(module: FileFacts, node: Node, name: str) -> bool:
    return any(found.value == name for found in module.tree.within(node, cst.Name))


def _copies(module: FileFacts, function: cst.FunctionDef, name: str) -> bool:
    return any(
        module.qualified(call.func) in _COPIES and _mentions(module, call, name)
        for call in module.tree.own(function, cst.Call)
    )
