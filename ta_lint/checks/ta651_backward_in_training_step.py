"""TA651: a Lightning training step runs a backward pass or step that its optimization mode does not expect."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.edits import ProposedFix, replace
from ta_lint.syntax.tree import Node, argument, attribute_of_self, is_name

KEYWORDS = ("training_step",)
AROUND = (("lightning", "pytorch_lightning"),)

_MANUAL = "set `self.automatic_optimization = False`"


def check(module: FileFacts) -> Iterator[Suspicion]:
    for klass in module.lightning.modules:
        hook = module.lightning.hook(klass, "training_step")
        automatic = module.lightning.automatic(klass) if hook is not None else None
        if hook is None or automatic is None:
            continue
        functions = module.lightning.reached(hook)
        find = _beside_automatic if automatic else _in_manual
        yield from (found for found in find(module, klass, functions) if module.is_here(found.node))


# -- automatic optimization -----------------------------------------------------------------------------------


def _beside_automatic(
    module: FileFacts, klass: cst.ClassDef, functions: list[cst.FunctionDef]
) -> Iterator[Suspicion]:
    backwards = list(_backwards(module, functions))
    steps = [step for step in _calls(module, functions) if _is_step(step)]
    if _serves_something_else(module, klass, functions, steps):
        return
    for call in _calls(module, functions):
        if attribute_of_self(call.func) == "manual_backward":
            yield Suspicion(call, f"`manual_backward` raises here; {_MANUAL}", is_note=True)
            return
    for call, loss in backwards:
        yield _of_backward(module, functions[0], call, loss, bool(steps))
    if not backwards and steps:
        message = "this uses the last batch's gradient again: leave it out, as Lightning steps after `training_step`"
        yield Suspicion(steps[0], message)


def _of_backward(
    module: FileFacts, hook: cst.FunctionDef, call: cst.Call, loss: Node, is_stepped: bool
) -> Suspicion:
    returned = [one.value for one in module.tree.own(hook, cst.Return) if one.value is not None]
    is_kept = is_name(argument(call, "retain_graph"), "True")
    if any(_contains(module, value, loss) for value in returned):
        if is_kept:
            return Suspicion(
                call, "Lightning clears this gradient and runs its own backward pass: leave this one out"
            )
        return Suspicion(
            call, f"Lightning's own backward pass raises after this one; {_MANUAL}", is_note=True
        )
    if is_stepped:
        return Suspicion(call, f"Lightning clears, clips and steps around this loop of your own; {_MANUAL}")
    return Suspicion(call, f"Lightning clears this gradient before it steps; return the loss or {_MANUAL}")


def _contains(module: FileFacts, value: Node, loss: Node) -> bool:
    """Whether a value is a loss, or computed from it."""
    made = {id(origin.node) for origin in module.flow.of(loss).origins}
    origins = [origin.node for origin in module.flow.of(value).origins]
    origins += [origin.node for origin in module.flow.of(value, ("loss",)).origins]
    return any(id(part) in made for origin in origins for part in module.parts.of(origin))


def _serves_something_else(
    module: FileFacts, klass: cst.ClassDef, functions: list[cst.FunctionDef], steps: list[cst.Call]
) -> bool:
    """Whether code wants a gradient for itself, or trains by an optimizer that Lightning does not know."""
    if any(_is_optimizer_of_its_own(module, klass, step) for step in steps):
        return True
    for function in functions:
        if any(_reads_gradient(module, node) for node in module.tree.within(function, cst.Attribute)):
            return True
        made = (module.qualified(call.func) or "" for call in module.tree.within(function, cst.Call))
        if any(name.startswith("torch.optim.") for name in made):
            return True
    return False


def _is_optimizer_of_its_own(module: FileFacts, klass: cst.ClassDef, step: cst.Call) -> bool:
    """Whether a step is not certainly one of an optimizer that Lightning steps too."""
    receiver = step.func.value if isinstance(step.func, cst.Attribute) else step
    name = attribute_of_self(receiver)
    if name is None:
        values = module.calls_in_loop.values(receiver)
        return not all(module.lightning.optimizers(value) for value in values)
    configure = module.lightning.hook(klass, "configure_optimizers")
    if configure is None:
        return True
    mentions = (one for one in module.tree.within(configure, cst.Attribute) if attribute_of_self(one) == name)
    is_read = any(not isinstance(module.tree.parent[one], cst.AssignTarget) for one in mentions)
    return not is_read or _is_schedule(module, klass, receiver)


def _is_schedule(module: FileFacts, klass: cst.ClassDef, receiver: Node) -> bool:
    """Whether what is stepped is a schedule that Lightning gets."""
    schedules = {(one.made, one.frame) for one in module.lightning.schedules(klass)}
    return any((one.node, one.frame) in schedules for one in module.flow.of(receiver).origins)


def _reads_gradient(module: FileFacts, node: cst.Attribute) -> bool:
    return node.attr.value == "grad" and not isinstance(module.tree.parent[node], cst.AssignTarget)


# -- manual optimization --------------------------------------------------------------------------------------


def _in_manual(
    module: FileFacts, klass: cst.ClassDef, functions: list[cst.FunctionDef]
) -> Iterator[Suspicion]:
    for call, loss in _backwards(module, functions):
        message = "this bypasses Lightning's loss scaling and strategy; call `self.manual_backward`"
        yield Suspicion(call, message, fix=_by_lightning(module, call, loss), is_note=True)
    hook = functions[0]
    if _returns_a_value(module, hook) and not _may_go_back(module, klass, functions):
        yield Suspicion(
            hook.name,
            "nothing is trained: in manual optimization this method must call `self.manual_backward(loss)`",
        )


def _by_lightning(module: FileFacts, call: cst.Call, loss: Node) -> ProposedFix | None:
    if module.qualified(call.func) is not None or not module.is_here(call):
        return None
    given = ", ".join([module.verbatim(loss), *(module.verbatim(arg) for arg in call.args)])
    return ProposedFix("call `self.manual_backward`", (replace(call, f"self.manual_backward({given})"),))


def _returns_a_value(module: FileFacts, hook: cst.FunctionDef) -> bool:
    returns = module.tree.own(hook, cst.Return)
    return any(one.value is not None and not is_name(one.value, "None") for one in returns)


def _may_go_back(module: FileFacts, klass: cst.ClassDef, functions: list[cst.FunctionDef]) -> bool:
    """Whether a backward pass may run in a module's classes, or in code that gets the module or its optimizers."""
    for one in module.lightning.lineage(klass) or ():
        named = (called_name(call) or "" for call in module.tree.within(one, cst.Call))
        if any("backward" in name for name in named):
            return True
    for call in _calls(module, functions):
        if isinstance(call.func, cst.Attribute) and "super" in module.code(call.func):
            return True
        if _is_step(call) or any(_gives_itself_away(module, arg.value) for arg in call.args):
            return True
    return False


def _gives_itself_away(module: FileFacts, value: Node) -> bool:
    return is_name(value, "self") or module.lightning.optimizers(value)


# -- calls ----------------------------------------------------------------------------------------------------


def _calls(module: FileFacts, functions: list[cst.FunctionDef]) -> Iterator[cst.Call]:
    for function in functions:
        yield from module.tree.within(function, cst.Call)


def _is_step(call: cst.Call) -> bool:
    return (
        called_name(call) == "step"
        and isinstance(call.func, cst.Attribute)
        and not is_name(call.func.value, "self")
    )


def _backwards(module: FileFacts, functions: list[cst.FunctionDef]) -> Iterator[tuple[cst.Call, Node]]:
    """The calls of torch's own backward pass, each with its loss."""
    for call in _calls(module, functions):
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "backward":
            continue
        loss = call.func.value
        if module.qualified(call.func) == "torch.autograd.backward" and call.args:
            yield call, call.args[0].value
        elif not any(arg.keyword is None for arg in call.args) and not is_name(loss, "self"):
            yield call, loss
