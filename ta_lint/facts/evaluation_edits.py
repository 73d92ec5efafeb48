"""The edits that put an evaluation into evaluation mode, and switch off gradients for it."""

import libcst as cst

from ta_lint.core.finding import Site
from ta_lint.facts.file_facts import FileFacts
from ta_lint.facts.loops.loops import BACKWARD
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.edits import ProposedFix, insert_line_before
from ta_lint.syntax.tree import Node

_METHODS = frozenset({"forward", "generate"})
"""Of a model: they run it."""


def evaluate_first(module: FileFacts, site: Site) -> ProposedFix | None:
    """Call `eval()` before the outermost loop of an evaluation, if the file trains nothing, or calls `train()` for what comes after it."""
    call = module.call_at(site)
    called = module.calls_in_loop.called(call) if call is not None else None
    if isinstance(called, cst.Attribute) and called.attr.value in _METHODS:
        called = called.value
    if call is None or not isinstance(called, (cst.Name, cst.Attribute)):
        return None
    if _calls(module, module.tree.root, BACKWARD) and not _calls(module, module.tree.root, {"train"}):
        return None
    loops = [loop for loop in module.tree.loops(call) if not _calls(module, loop, BACKWARD)]
    before = loops[-1] if loops else call
    edit = insert_line_before(module.tree, before, f"{module.verbatim(called)}.eval()")
    return ProposedFix("evaluate in evaluation mode", (edit,))


def record_nothing(module: FileFacts, site: Site) -> ProposedFix | None:
    """Put `@torch.no_grad()` over a function that only evaluates."""
    call = module.call_at(site)
    function = module.tree.home(call) if call is not None else None
    spelled = module.spelled("torch.no_grad", function) if function is not None else None
    if (
        not isinstance(function, cst.FunctionDef)
        or function.decorators  # the new decorator would wrap the result of `property` and the like
        or function.asynchronous is not None  # and would wrap only the creation of a coroutine
        or spelled is None
        or _calls(module, function.body, BACKWARD)
    ):
        return None
    code, imports = spelled
    edit = insert_line_before(module.tree, function, f"@{code}()")
    return ProposedFix("evaluate without recording", (edit,), imports)


def _calls(module: FileFacts, region: Node, names: "frozenset[str] | set[str]") -> bool:
    return any(called_name(call) in names for call in module.tree.within(region, cst.Call))
