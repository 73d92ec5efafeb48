"""TA422: a tensor created on the default device in `forward` meets an input that may be on another."""

from collections.abc import Iterator
from itertools import chain

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Kind, Suspicion
from ta_lint.syntax.edits import ProposedFix, add_argument
from ta_lint.syntax.tree import Node, argument, spreads

_FACTORIES = "arange|empty|eye|full|linspace|ones|rand|randint|randn|randperm|tensor|zeros"
KEYWORDS = ("forward", tuple(_FACTORIES.split("|")))

_FACTORY = regex(rf"torch\.({_FACTORIES})")
# Code that sets the default device of a whole file or block.
_DEFAULT = regex(r"set_default_device|set_default_tensor_type|with torch\.device|set_device\(")

# Attributes and methods whose result is not, or not certainly, on the tensor's device.
_MOVES = frozenset("cpu cuda data_ptr device dim item numel numpy shape size to tolist type_as".split())
_JOINS = regex(
    r"torch\.(add|bmm|cat|concat|div|eq|ge|gt|hstack|le|lt|masked_select|matmul|maximum|minimum|mm|mul|ne|stack|sub|"
    r"vstack|where)"
)
_TENSOR_WORDS = frozenset("device dim shape size type_as unsqueeze view".split())


def check(module: FileFacts) -> Iterator[Suspicion]:
    if _DEFAULT.search(module.source.text):
        return
    for klass in module.classes.modules():
        forward = module.classes.methods(klass).get("forward")
        if forward is None:
            continue
        inputs = _inputs(forward, module)
        for call in module.tree.own(forward, cst.Call) if inputs else []:
            if not _is_on_default(call, module):
                continue
            met = next((found for use in _uses(call, module) if (found := _meets(use, inputs, module))), None)
            if met is not None:
                message = f"`{module.code(call.func)}` makes a tensor on the default device, and `{met}` may be on another"
                edit = add_argument(call, f"device={met}.device")
                yield Suspicion(
                    call, message, fix=ProposedFix("make it on the same device", (edit,)) if edit else None
                )


def _is_on_default(call: cst.Call, module: FileFacts) -> bool:
    """Whether a call creates a tensor with dimensions and specifies no device."""
    called = module.qualified(call.func)
    if (
        called is None
        or _FACTORY.fullmatch(called) is None
        or spreads(call)
        or argument(call, "device") is not None
    ):
        return False
    if called == "torch.tensor":  # a scalar has no dimensions and works with every device
        return isinstance(argument(call, "data", 0), (cst.List, cst.ListComp))
    return argument(call, "out") is None and module.shapes.shape(call) != ()


def _inputs(forward: cst.FunctionDef, module: FileFacts) -> set[str]:
    """The parameters of `forward` that are certainly tensors: annotated, or used as only tensors are."""
    used = {
        attribute.value.value
        for attribute in module.tree.own(forward, cst.Attribute)
        if isinstance(attribute.value, cst.Name) and attribute.attr.value in _TENSOR_WORDS
    }
    return {
        param.name.value
        for param in forward.params.params[1:]
        if param.name.value in used or module.kind(param) is Kind.TENSOR
    }


def _uses(made: Node, module: FileFacts) -> Iterator[Node]:
    """The expressions with the value of a call on its device: the call, views of it, mentions of its name."""
    node = made
    while isinstance(above := module.tree.parent[node], cst.Attribute):
        call = module.tree.parent[above]
        if above.attr.value in _MOVES or not isinstance(call, cst.Call) or call.func is not above:
            return
        node = call
    yield node
    statement = module.tree.parent[node]
    if isinstance(statement, cst.Assign) and isinstance(name := statement.targets[0].target, cst.Name):
        for mention in module.names.mentions(name):
            binding = module.names.definition(mention)
            if binding is not None and binding.node is statement and mention is not name:
                yield from _uses(mention, module)


def _meets(use: Node, inputs: set[str], module: FileFacts) -> str | None:
    """The input that the other operand of an expression shares its device with."""
    above = module.tree.parent[use]
    others: list[Node] = []
    if isinstance(above, cst.BinaryOperation):
        others = [above.left, above.right]
    elif isinstance(above, cst.ComparisonTarget):
        comparison = module.tree.parent[above]
        others = [comparison.left] if isinstance(comparison, cst.Comparison) else []
    elif isinstance(above, cst.Comparison):
        others = [target.comparator for target in above.comparisons]
    elif isinstance(above, cst.AugAssign):
        others = [above.target]
    else:
        call = next((a for a in _argument_of(use, module)), None)
        if call is not None and _JOINS.fullmatch(module.qualified(call.func) or ""):
            others = list(chain.from_iterable(module.layers.elements(arg.value) for arg in call.args))
    return next(
        (name for other in others if other is not use and (name := _device_of(other, inputs, module))), None
    )


def _argument_of(use: Node, module: FileFacts) -> Iterator[cst.Call]:
    """The call that takes an expression as an argument, directly or in a list."""
    above = module.tree.parent[use]
    if isinstance(above, cst.Element):
        above = module.tree.parent[module.tree.parent[above]]
    if isinstance(above, cst.Arg) and isinstance(call := module.tree.parent[above], cst.Call):
        yield call


def _device_of(node: Node, inputs: set[str], module: FileFacts, depth: int = 6) -> str | None:
    """The input that an expression is computed from, through methods that keep the device."""
    if depth == 0:
        return None
    if isinstance(node, cst.Name):
        binding = module.names.definition(node)
        if binding is None:
            return None
        if binding.how == "param":
            return node.value if node.value in inputs else None
        return (
            _device_of(binding.value, inputs, module, depth - 1)
            if binding.how == "assign" and binding.value
            else None
        )
    if isinstance(node, cst.Subscript):
        return _device_of(node.value, inputs, module, depth - 1)
    if isinstance(node, cst.BinaryOperation):
        sides = (_device_of(side, inputs, module, depth - 1) for side in (node.left, node.right))
        return next((side for side in sides if side), None)
    if not isinstance(node, cst.Call):
        return None
    if module.kind(node.func) is Kind.MODULE or (module.qualified(node.func) or "").startswith("torch."):
        parts = chain.from_iterable(module.layers.elements(arg.value) for arg in node.args)
        given = (_device_of(part, inputs, module, depth - 1) for part in parts)
        return next((name for name in given if name), None)
    if isinstance(node.func, cst.Attribute) and node.func.attr.value not in _MOVES:
        return _device_of(node.func.value, inputs, module, depth - 1)
    return None
