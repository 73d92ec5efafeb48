"""TA412: `nn.Parameter(t).to(device)` is a tensor computed from a parameter, not a parameter."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.syntax.edits import Anchor, ProposedFix, Replacement, Side, insert_after, wrap
from ta_lint.syntax.tree import Node, argument, spreads

_MAKE_FLOATS = ("torch.ones", "torch.rand", "torch.randn", "torch.zeros", "torch.empty")
_MOVES = "bfloat16 cpu cuda double float half to type type_as"
KEYWORDS = ("Parameter", ("bfloat16", "cpu", "cuda", "double", "float", "half", "to", "type", "type_as"))


def check(module: FileFacts) -> Iterator[Suspicion]:
    for moved in module.tree.all(cst.Call):
        attribute = moved.func
        if (
            not isinstance(attribute, cst.Attribute)
            or attribute.attr.value not in _MOVES.split()
            or not _is_kept(module, moved)
        ):
            continue
        call = _parameter(module, attribute.value)
        if call is None:
            continue
        method = attribute.attr.value
        if method == "float" and (call is not attribute.value or _is_float(module, call)):
            continue
        message = f"the parameter becomes a plain tensor and never trains: call `.{method}()` inside `nn.Parameter(...)`"
        fix = _fix(module, call, moved) if call is attribute.value else None
        yield Suspicion(moved, message, fix=fix)


def _parameter(module: FileFacts, moved: Node) -> cst.Call | None:
    """The call that creates a parameter: the moved value itself, or a local name that nothing else uses."""
    made = moved
    if isinstance(moved, cst.Name):
        bound = module.names.definition(moved)
        alone = bound is not None and len(module.names.mentions(moved)) == 2
        made = bound.value if alone and bound is not None and bound.value is not None else moved
    is_one = isinstance(made, cst.Call) and module.qualified(made.func) == "torch.nn.Parameter"
    return made if is_one and isinstance(made, cst.Call) else None


def _is_kept(module: FileFacts, moved: cst.Call) -> bool:
    """Whether the result becomes an attribute; where a parameter is required, it would raise."""
    assign = module.tree.parent[moved]
    targets = [item.target for item in assign.targets] if isinstance(assign, cst.Assign) else []
    return any(isinstance(target, cst.Attribute) for target in targets)


def _is_float(module: FileFacts, call: cst.Call) -> bool:
    """Whether a parameter certainly has the default type, so that `.float()` returns it unchanged."""
    data = argument(call, "data", 0)
    return (
        isinstance(data, cst.Call)
        and module.qualified(data.func) in _MAKE_FLOATS
        and argument(data, "dtype", None) is None
        and not spreads(data)
    )


def _fix(module: FileFacts, call: cst.Call, moved: cst.Call) -> ProposedFix | None:
    """`nn.Parameter(t.to(device))`."""
    if not call.args or call.args[0].star or call.args[0].keyword is not None:
        return None
    data = call.args[0].value
    ending = module.verbatim(moved)[len(module.verbatim(call)) :]
    binds = isinstance(data, (cst.Name, cst.Attribute, cst.Call, cst.Subscript)) or module.is_in_parentheses(
        data
    )
    around = (insert_after(data, ending),) if binds else wrap(data, "(", f"){ending}")
    gone = Replacement(Anchor(call, Side.END), Anchor(moved, Side.END), "")
    return ProposedFix("move the tensor before it becomes a parameter", (*around, gone))
