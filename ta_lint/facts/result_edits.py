"""Edits of where an operation is called: its result takes the place of a variable, or it moves into the call before it."""

import libcst as cst

from ta_lint.core.finding import Site
from ta_lint.facts.file_facts import FileFacts
from ta_lint.syntax.edits import Anchor, ProposedFix, Replacement, Side, insert_after, wrap


def keep_result(module: FileFacts, called: Site) -> ProposedFix | None:
    """`x = x.relu()` for `x.relu()`; none for an attribute, which may be a parameter and reject tensors."""
    call = module.call_at(called)
    if call is None:
        return None
    is_function = module.qualified(call.func) is not None
    of = call.args[0].value if is_function and call.args else getattr(call.func, "value", None)
    if not isinstance(of, cst.Name):
        return None
    return ProposedFix("keep the result", wrap(call, f"{of.value} = ", ""))


def call_inside(module: FileFacts, called: Site, around: str) -> ProposedFix | None:
    """`nn.Parameter(t.to(device))` for `nn.Parameter(t).to(device)`, where `around` names `nn.Parameter`."""
    outer = module.call_at(called)
    call = getattr(outer and outer.func, "value", None)
    if outer is None or not isinstance(call, cst.Call) or module.qualified(call.func) != around:
        return None
    if not call.args or call.args[0].star or call.args[0].keyword is not None:
        return None
    data = call.args[0].value
    ending = module.verbatim(outer)[len(module.verbatim(call)) :]
    binds = isinstance(data, (cst.Name, cst.Attribute, cst.Call, cst.Subscript)) or module.is_in_parentheses(
        data
    )
    inside = (insert_after(data, ending),) if binds else wrap(data, "(", f"){ending}")
    gone = Replacement(Anchor(call, Side.END), Anchor(outer, Side.END), "")
    return ProposedFix("move the tensor before it becomes a parameter", (*inside, gone))
