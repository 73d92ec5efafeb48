"""TA669: the model that `merge_and_unload` returns is dropped, and the old one is saved."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.edits import ProposedFix, wrap
from ta_lint.syntax.tree import Node, dotted

KEYWORDS = ("merge_and_unload",)

_SAVES = frozenset({"save_pretrained", "push_to_hub"})


def check(module: FileFacts) -> Iterator[Suspicion]:
    for call in module.tree.all(cst.Call):
        if called_name(call) != "merge_and_unload" or not isinstance(call.func, cst.Attribute):
            continue
        statement, model = module.tree.parent[call], call.func.value
        name = dotted(model)
        if not isinstance(statement, cst.Expr) or name is None or module.calls.callee(call) is not None:
            continue
        if module.is_shown(statement) or module.kinds.class_of(model) is not None:
            continue
        saved = next(_saved(module, call, model), None)
        if saved is not None:
            message = f"this returns the merged model, which is lost, as `{name}` is saved instead: assign the result"
            fix = ProposedFix("keep it", wrap(call, f"{name} = ", ""))
            yield Suspicion(call, message, ((saved, "saved here"),), fix=fix)


def _saved(module: FileFacts, merge: cst.Call, model: Node) -> Iterator[cst.Call]:
    """The calls after a merge, in its function, that save the same model."""
    home = module.tree.home(merge)
    for call in module.tree.own(home, cst.Call):
        after = module.tree.before(merge, call) and not module.tree.apart(merge, call)
        if after and any(_is_same(module, model, one) for one in _saved_by(module, call)):
            yield call


def _saved_by(module: FileFacts, call: cst.Call) -> Iterator[Node]:
    """What a call saves: `model` of `model.save_pretrained(folder)`, and of `save(model)` that does it."""
    if isinstance(call.func, cst.Attribute) and call.func.attr.value in _SAVES:
        yield call.func.value
        return
    function = module.calls.callee(call)
    if function is None:
        return
    inner = [one.func for one in module.tree.within(function, cst.Call) if called_name(one) in _SAVES]
    for param, given in module.calls.arguments(call, function).items():
        saved = (one.value for one in inner if isinstance(one, cst.Attribute))
        if any(dotted(one) == param.name.value for one in saved):
            yield given


def _is_same(module: FileFacts, merged: Node, saved: Node) -> bool:
    """Whether two names stand for one object: they are the same, and nothing binds it between them."""
    if dotted(merged) != dotted(saved):
        return False
    if not isinstance(merged, cst.Name) or not isinstance(saved, cst.Name):
        return not _is_set_between(module, merged, saved)
    first, second = module.names.definition(merged), module.names.definition(saved)
    return first is second and (
        first is not None or module.names.reaching(merged) == module.names.reaching(saved)
    )


def _is_set_between(module: FileFacts, merged: Node, saved: Node) -> bool:
    return any(
        dotted(item.target) == dotted(merged)
        for item in module.tree.within(module.tree.home(merged), cst.AssignTarget)
        if module.tree.before(merged, item) and module.tree.before(item, saved)
    )
