"""The edit that assigns the result of an operation to the variable that it is computed from."""

import libcst as cst

from ta_lint.core.finding import Site
from ta_lint.facts.file_facts import FileFacts
from ta_lint.syntax.edits import ProposedFix, wrap


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
