"""TA907: `torch.Tensor(n)` is uninitialised memory, and `torch.Tensor([1, 2])` contains floats."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.syntax.edits import ProposedFix, replace, wrap
from ta_lint.syntax.tree import Node, is_name

KEYWORDS = (("Tensor", "FloatTensor"),)

_FLOATS = ("torch.Tensor", "torch.FloatTensor")


def check(module: FileFacts) -> Iterator[Suspicion]:
    for call in module.calls_to(*_FLOATS):
        given = [arg.value for arg in call.args]
        if not given or any(arg.star or arg.keyword is not None for arg in call.args):
            continue
        name = module.code(call.func)
        if len(given) > 1 or _is_integer(given[0], module):
            if not _is_filled(call, module):
                yield Suspicion(
                    call,
                    f"`{name}` of sizes is uninitialised memory: use `torch.zeros` or `torch.empty`",
                    fix=_empty(call, module),
                )
        elif name.endswith("FloatTensor"):
            continue  # the name shows the type
        elif isinstance(given[0], cst.List) and _holds_integers_alone(given[0]):
            message = f"`{name}` makes a float tensor of integers: use `torch.tensor` with a `dtype`"
            fix = _of_values(call, module)
            yield Suspicion(call, message, fix=fix, in_tests=False)  # a test checks its values


def _is_integer(value: cst.BaseExpression, module: FileFacts) -> bool:
    """Whether a single argument is certainly a size: a literal or a length."""
    origin = module.kinds.origin(value)
    return isinstance(origin, cst.Integer) or (
        isinstance(origin, cst.Call) and module.qualified(origin.func) == "builtins.len"
    )


def _is_filled(call: cst.Call, module: FileFacts) -> bool:
    """Whether the memory is filled at once, or becomes a parameter or buffer that `reset_parameters` fills."""
    above = module.tree.parent[call]
    if isinstance(above, cst.Attribute):
        return True
    if isinstance(above, cst.Assign) and isinstance(target := above.targets[0].target, cst.Name):
        return any(_is_written(mention, module) for mention in module.names.mentions(target))
    return isinstance(above, cst.Arg) and isinstance(module.tree.parent[above], cst.Call)


def _is_written(mention: Node, module: FileFacts) -> bool:
    """Whether an in-place method, a function or an assignment writes to the memory, possibly through a view: `x.data[0] = y`."""
    tree = module.tree
    node, above = mention, tree.parent[mention]
    while isinstance(above, (cst.Attribute, cst.Call, cst.Subscript)):
        if (above.func if isinstance(above, cst.Call) else above.value) is not node:
            break
        if isinstance(above, cst.Attribute) and above.attr.value.endswith("_"):
            return True
        node, above = above, tree.parent[above]
    if isinstance(above, cst.AssignTarget) and isinstance(node, cst.Subscript):
        return True
    if not isinstance(above, cst.Arg):
        return False
    if above.keyword is not None and above.keyword.value == "out":
        return True
    call = tree.parent[above]
    if not isinstance(call, cst.Call):
        return False
    called = module.qualified(call.func) or ""
    if called == "torch.autograd.Variable":  # shares the memory
        assign = tree.parent[call]
        target = assign.targets[0].target if isinstance(assign, cst.Assign) else None
        return (
            isinstance(target, cst.Name)
            and not is_name(mention, target.value)
            and any(_is_written(other, module) for other in module.names.mentions(target))
        )
    return called.endswith("_")


def _holds_integers_alone(values: cst.List) -> bool:
    inner = [element.value for element in values.elements]
    return bool(inner) and all(
        isinstance(value, cst.Integer) or (isinstance(value, cst.List) and _holds_integers_alone(value))
        for value in inner
    )


def _empty(call: cst.Call, module: FileFacts) -> ProposedFix | None:
    spelled = module.spelled("torch.empty", at=call)
    return (
        ProposedFix("say `torch.empty`", (replace(call.func, spelled[0]),), spelled[1]) if spelled else None
    )


def _of_values(call: cst.Call, module: FileFacts) -> ProposedFix | None:
    function, dtype = (module.spelled(name, at=call) for name in ("torch.tensor", "torch.float32"))
    if function is None or dtype is None:
        return None
    _, after = wrap(call.args[0].value, "", f", dtype={dtype[0]}")
    return ProposedFix("say the type", (replace(call.func, function[0]), after), function[1] + dtype[1])
