"""TA422: a tensor created on the default device in `forward` meets an input that may be on another."""

from collections.abc import Iterator
from itertools import chain

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Kind, Suspicion
from ta_lint.facts.values.names import Binding
from ta_lint.syntax.edits import ProposedFix, add_argument
from ta_lint.syntax.tree import Node, argument, spreads

_FACTORIES = "arange|empty|eye|full|linspace|ones|rand|randint|randn|randperm|tensor|zeros"
_OLD = "FloatTensor|LongTensor|Tensor"
KEYWORDS = ("forward", tuple(f"{_FACTORIES}|{_OLD}".split("|")))

_FACTORY = regex(rf"torch\.({_FACTORIES}|{_OLD})")
_OLD_FACTORY = regex(rf"torch\.({_OLD})")
# Code that sets the default device of a whole file or block.
_DEFAULT = regex(r"set_default_device|set_default_tensor_type|with torch\.device|set_device\(")
# The same for all that runs after it, in whichever file of the program.
_DEFAULT_OF_ALL = ("set_default_device", "set_default_tensor_type")

# Attributes and methods whose result is not, or not certainly, on the tensor's device.
_MOVES = frozenset("cpu cuda data_ptr device dim item numel numpy shape size to tolist type_as".split())
_JOINS = regex(
    r"torch\.(add|bmm|cat|concat|div|eq|ge|gt|hstack|le|lt|masked_select|matmul|maximum|minimum|mm|mul|ne|stack|sub|"
    r"vstack|where|nn\.functional\.scaled_dot_product_attention)"
)
# Functions whose result is computed from their first argument alone, on its device.
_KEEPS = regex(
    r"torch\.(abs|clamp|cos|cumsum|diag|exp|flatten|flip|log|logical_not|neg|permute|reshape|sigmoid|sin|sqrt|squeeze|"
    r"transpose|tril|triu|unsqueeze)"
)
_JOINING_METHODS = frozenset(
    "add add_ bmm copy_ div div_ eq gather ge gt index_add index_copy le lt masked_fill masked_fill_ masked_select matmul maximum "
    "minimum mm mul mul_ ne scatter scatter_ scatter_add scatter_add_ sub sub_ where".split()
)
_TENSOR_WORDS = frozenset("device dim shape size type_as unsqueeze view".split())

_DEPTH = 6


def check(module: FileFacts) -> Iterator[Suspicion]:
    if _DEFAULT.search(module.source.text):
        return
    suspicions = list(_suspicions(module))
    if suspicions and not module.names.beside(*_DEFAULT_OF_ALL):
        yield from suspicions


def _suspicions(module: FileFacts) -> Iterator[Suspicion]:
    calls = [call for call in module.tree.all(cst.Call) if _is_on_default(call, module)]
    if not calls:  # what flows into each `forward` takes longer to find
        return
    inputs = {
        id(forward): found
        for klass in module.classes.modules()
        if (forward := module.classes.methods(klass).get("forward")) is not None
        and (found := _inputs(forward, module))
    }
    for call in calls if inputs else []:
        for use in _uses(call, module, _DEPTH):
            home = module.tree.home(use)
            met = _meets(use, inputs.get(id(home), []), module)
            if met is not None:
                what, name = met
                message = f"`{module.code(call.func)}` makes a tensor on the default device: pass the device of `{what}`"
                here = home is module.tree.home(call)
                yield Suspicion(call, message, fix=_fix(call, name, module) if here else None)
                break


def _fix(call: cst.Call, name: str, module: FileFacts) -> ProposedFix | None:
    if _OLD_FACTORY.fullmatch(module.qualified(call.func) or ""):
        return None
    edit = add_argument(call, f"device={name}.device")
    return ProposedFix("make it on the same device", (edit,)) if edit else None


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


def _inputs(forward: cst.FunctionDef, module: FileFacts) -> list[str]:
    """The parameters of `forward` that are certainly tensors: annotated, or used as only tensors are."""
    used = {
        attribute.value.value
        for attribute in module.tree.own(forward, cst.Attribute)
        if isinstance(attribute.value, cst.Name) and attribute.attr.value in _TENSOR_WORDS
    }
    return [
        param.name.value
        for param in forward.params.params[1:]
        if param.name.value in used or module.kind(param) is Kind.TENSOR
    ]


def _uses(made: Node, module: FileFacts, depth: int) -> Iterator[Node]:
    """The expressions with a value on the device of a call: the call, what is computed from it, mentions of its name, and
    calls of the function that returns it.
    """
    node = made
    while True:
        yield node
        above = module.tree.parent[node]
        following = _computed(node, above, module)
        if following is None:
            break
        node = following
    if depth and isinstance(above, cst.Assign) and isinstance(name := above.targets[0].target, cst.Name):
        for mention in module.names.mentions(name):
            binding = module.names.definition(mention)
            if binding is not None and binding.node is above and mention is not name:
                yield from _uses(mention, module, depth - 1)
    elif depth and isinstance(above, cst.Return):
        function = module.tree.home(above)
        for site in module.calls.sites(function) if isinstance(function, cst.FunctionDef) else []:
            yield from _uses(site, module, depth - 1)


def _computed(node: Node, above: Node, module: FileFacts) -> Node | None:
    """The expression on the same device that is computed from one directly."""
    match above:
        case cst.Attribute():
            call = module.tree.parent[above]
            moves = above.attr.value in _MOVES or not isinstance(call, cst.Call) or call.func is not above
            return None if moves else call
        case cst.Subscript():
            return above if above.value is node else None
        case cst.BinaryOperation() | cst.Comparison():
            return above
        case cst.UnaryOperation():
            return None if isinstance(above.operator, cst.Not) else above
        case cst.ComparisonTarget():
            return module.tree.parent[above]
        case cst.Arg():
            call = module.tree.parent[above]
            first = isinstance(call, cst.Call) and call.args[0] is above
            called = module.qualified(call.func) if isinstance(call, cst.Call) and first else None
            return call if called is not None and _KEEPS.fullmatch(called) else None
    return None


def _meets(use: Node, inputs: list[str], module: FileFacts) -> tuple[str, str] | None:
    """The value that shares the device of an expression, and the input it is computed from, or that its layer gets too."""
    if not inputs:
        return None
    known = set(inputs)
    for other in _operands_beside(use, module):
        if other is not use and (name := _device_of(other, known, module)):
            return name, name
    call = next(iter(_argument_of(use, module)), None)
    made = module.kinds.construction(call.func) if call is not None else None
    if call is None or made is None or not (module.qualified(made.func) or "").startswith("torch.nn."):
        return None
    layer = module.code(call.func)
    return (layer, inputs[0]) if module.parameters.is_trainable(call.func) else None


def _operands_beside(use: Node, module: FileFacts) -> list[Node]:
    """The other operands of the operation that an expression is one of."""
    above = module.tree.parent[use]
    if isinstance(above, cst.BinaryOperation):
        return [above.left, above.right]
    if isinstance(above, cst.ComparisonTarget):
        comparison = module.tree.parent[above]
        return [comparison.left] if isinstance(comparison, cst.Comparison) else []
    if isinstance(above, cst.Comparison):
        return [target.comparator for target in above.comparisons]
    if isinstance(above, cst.AugAssign):
        return [above.target]
    if isinstance(above, cst.Attribute):
        changed = module.tree.parent[above]
        joins = isinstance(changed, cst.Call) and above.attr.value in _JOINING_METHODS
        return [arg.value for arg in changed.args] if isinstance(changed, cst.Call) and joins else []
    call = next(iter(_argument_of(use, module)), None)
    if call is None:
        return []
    called = module.qualified(call.func)
    if called is not None and _JOINS.fullmatch(called):
        return list(chain.from_iterable(module.layers.elements(arg.value) for arg in call.args))
    joins = (
        called is None and isinstance(call.func, cst.Attribute) and call.func.attr.value in _JOINING_METHODS
    )
    return [call.func.value] if isinstance(call.func, cst.Attribute) and joins else []


def _argument_of(use: Node, module: FileFacts) -> Iterator[cst.Call]:
    """The call that takes an expression as an argument, directly or in a list."""
    above = module.tree.parent[use]
    if isinstance(above, cst.Element):
        above = module.tree.parent[module.tree.parent[above]]
    if isinstance(above, cst.Arg) and isinstance(call := module.tree.parent[above], cst.Call):
        yield call


def _is_unpacked_call(binding: Binding) -> bool:
    """Whether a binding takes one of the values that a call returns."""
    return binding.how == "unpack" and isinstance(binding.value, cst.Call)


def _device_of(node: Node, inputs: set[str], module: FileFacts, depth: int = 12) -> str | None:
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
            if binding.value is not None and (binding.how == "assign" or _is_unpacked_call(binding))
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
