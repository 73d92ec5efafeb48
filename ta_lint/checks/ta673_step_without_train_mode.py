"""TA673: an Ignite engine trains a model that an evaluator left in evaluation mode."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.edits import ProposedFix, insert_line_before
from ta_lint.syntax.tree import Node, argument, dotted

KEYWORDS = ("Engine", "*backward")
AROUND = ("ignite",)


def check(module: FileFacts) -> Iterator[Suspicion]:
    evaluated = list(_evaluated(module))
    for engine, function in module.ignite.engines:
        if not module.ignite.goes_back(function) or _sets_mode(module, engine, function):
            continue
        for model, evaluator in evaluated:
            if _is_called(module, function, model) and _runs_in_handler(module, evaluator):
                name = module.code(model)
                message = f"`{name}` stays in evaluation mode after the first evaluation; call `{name}.train()` here"
                related = ((evaluator, "this evaluator sets it"),)
                if module.is_here(function):
                    yield Suspicion(function.name, message, related, _fix(module, function, name))
                break


def _fix(module: FileFacts, function: cst.FunctionDef, model: str) -> ProposedFix | None:
    if not isinstance(function.body, cst.IndentedBlock):
        return None
    first = function.body.body[0]
    return ProposedFix("set the mode", (insert_line_before(module.tree, first, f"{model}.train()"),))


def _evaluated(module: FileFacts) -> Iterator[tuple[Node, cst.Call]]:
    """The models that an evaluator sets to evaluation mode, each with the call that makes the evaluator."""
    for call in module.ignite.evaluators:
        if (model := argument(call, "model", 0)) is not None and not _is_the_same_in_both_modes(
            module, model
        ):
            yield model, call
    for call, function in module.ignite.engines:
        if module.ignite.goes_back(function):
            continue
        for inner in module.tree.within(function, cst.Call):
            if not isinstance(inner.func, cst.Attribute) or inner.func.attr.value != "eval" or inner.args:
                continue
            if not _is_the_same_in_both_modes(module, inner.func.value):
                yield inner.func.value, call


def _is_the_same_in_both_modes(module: FileFacts, model: Node) -> bool:
    made = module.kinds.construction(model)
    return made is not None and module.modes.depends(made) is False


def _is_called(module: FileFacts, function: cst.FunctionDef, model: Node) -> bool:
    calls = module.tree.within(function, cst.Call)
    return any(_is_same(module, call.func, model) for call in calls)


def _is_same(module: FileFacts, one: Node, other: Node) -> bool:
    """Whether two expressions are the same variable, or attribute of `self`, or come from the same place."""
    if dotted(one) is not None and dotted(one) == dotted(other):
        if not isinstance(one, cst.Name) or not isinstance(other, cst.Name):
            return True
        if module.names.bindings(one) == module.names.bindings(other):
            return True
    made = ({(origin.node, origin.path) for origin in module.flow.of(node).origins} for node in (one, other))
    return next(made) == next(made)


def _sets_mode(module: FileFacts, engine: cst.Call, function: cst.FunctionDef) -> bool:
    """Whether code sets a training mode repeatedly: not just where the engine is created, or at the top of the file."""
    if any(called_name(call) == "train" for call in module.tree.within(function, cst.Call)):
        return True
    once = {module.tree.home(engine), module.tree.root}
    for attribute in module.tree.all(cst.Attribute):
        if attribute.attr.value == "train":
            above = module.tree.parent[attribute]
            is_called = isinstance(above, cst.Call) and above.func is attribute
            if not is_called or module.tree.home(attribute) not in once:
                return True
    called = (module.calls.callee(call) for call in module.tree.within(function, cst.Call))
    inner = [call for one in called if one is not None for call in module.tree.within(one, cst.Call)]
    return any(called_name(call) == "train" for call in inner)


def _runs_in_handler(module: FileFacts, evaluator: cst.Call) -> bool:
    """Whether an evaluator is run by a handler, and not only by one of the end of the training."""
    for call in module.tree.all(cst.Call):
        if called_name(call) != "run" or not isinstance(call.func, cst.Attribute):
            continue
        origins = module.flow.of(call.func.value).origins
        if any(origin.node is evaluator for origin in origins):
            events = module.ignite.events(module.tree.home(call))
            if any(not module.code(event).endswith(".COMPLETED") for event in events):
                return True
    return False
