"""TA439: `isinstance` tests whether a parameter is a layer, which is never true."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Kind, Suspicion
from ta_lint.syntax.edits import ProposedFix, replace
from ta_lint.syntax.tree import Node

KEYWORDS = ("isinstance", ("parameters", "named_parameters"))

_TENSORS = ("Parameter", "Buffer")


def check(module: FileFacts) -> Iterator[Suspicion]:
    for call in module.calls_to("builtins.isinstance"):
        if len(call.args) != 2 or not isinstance(call.args[0].value, cst.Name):
            continue
        binding = module.names.definition(call.args[0].value)
        loop = binding.node if binding is not None else None
        if not isinstance(loop, cst.For) or module.parameters.generated_by(loop.iter) is None:
            continue
        target = loop.target.elements[-1].value if isinstance(loop.target, cst.Tuple) else loop.target
        asked = call.args[0].value.value
        if isinstance(target, cst.Name) and target.value == asked and _are_layers(module, call.args[1].value):
            message = f"`{module.code(call)}` is never true, as `{module.code(loop.iter)}` gives tensors: loop over `modules()`"
            yield Suspicion(call, message, ((loop.iter, "the parameters"),), fix=_fix(loop))


def _are_layers(module: FileFacts, types: Node) -> bool:
    types = module.kinds.origin(types)
    each = [element.value for element in types.elements] if isinstance(types, cst.Tuple) else [types]
    return bool(each) and all(_is_layer(module, one) for one in each)


def _is_layer(module: FileFacts, one: Node) -> bool:
    name = module.qualified(one) or ""
    return module.kinds.instance(one) is Kind.MODULE and not name.endswith(_TENSORS)


def _fix(loop: cst.For) -> ProposedFix | None:
    function = loop.iter.func if isinstance(loop.iter, cst.Call) and not loop.iter.args else None
    if not isinstance(function, cst.Attribute) or function.attr.value != "parameters":
        return None
    return ProposedFix("go over the modules", (replace(function.attr, "modules"),))
