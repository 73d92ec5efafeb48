"""TA650: torch's own `backward` or `step` trains what Accelerate, Fabric or DeepSpeed have prepared."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.protocol import Action
from ta_lint.facts import FileFacts, Kind, Suspicion
from ta_lint.facts.loops.order import ExecutionPath, LoopEvent
from ta_lint.facts.torch.preparing import PrepareCall, Preparer
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.edits import ProposedFix, replace
from ta_lint.syntax.tree import Node, dotted

KEYWORDS = (("*backward", "step"),)
AROUND = (("Accelerator", "accelerate", "*fabric*", "lightning", "deepspeed"),)

_DOES = {
    Preparer.ACCELERATE: "divides the loss by the accumulation and scales it",
    Preparer.FABRIC: "scales the loss",
    Preparer.DEEPSPEED: "divides the loss by the accumulation and scales it",
}


def check(module: FileFacts) -> Iterator[Suspicion]:
    for event in module.order.events(Action.BACKWARD):
        prepared = _plain_backward(event, module)
        if prepared is not None and not _has_alternative(event.call, module):
            yield _bypassed(event.call, prepared, module)
    for event in module.order.events(Action.STEP):
        found = _bare_step(event, module)
        if found is not None and not _has_alternative(event.call, module):
            yield found


# -- backward -------------------------------------------------------------------------------------------------


def _plain_backward(event: LoopEvent, module: FileFacts) -> PrepareCall | None:
    """The call that prepared the optimizer that steps along the gradients of a `loss.backward()`."""
    call = event.call
    is_plain = called_name(call) == "backward" and all(arg.keyword is not None for arg in call.args)
    if not is_plain or event.scaler is not None or module.preparing.backwards_by(call) is not None:
        return None
    region = module.order.region_by_calls(event, Action.STEP)
    steps = (
        [_step_along(path, index) for path, index in module.order.paths_with(region, event)] if region else []
    )
    prepared = [_owner(step, module) for step in steps if step is not None]
    is_known = bool(prepared) and None not in prepared
    return prepared[0] if is_known and _comes_from_prepared(call, module) is not False else None


def _step_along(path: ExecutionPath, index: int) -> LoopEvent | None:
    """The step that uses the gradients of a backward pass: the next one, in the next pass of the loop if need be. None if they are cleared before."""
    cleared = set()
    for event in (*path[index:], *path[:index]):
        if event.action is Action.CLEAR:
            cleared.add(dotted(event.subject))
        elif event.action is Action.STEP:
            return event if dotted(event.subject) not in cleared else None
    return None


def _owner(step: LoopEvent, module: FileFacts) -> PrepareCall | None:
    """The call that prepared the stepped object: an optimizer, or the engine of DeepSpeed."""
    return module.preparing.of(step.subject)


def _comes_from_prepared(backward: cst.Call, module: FileFacts) -> bool | None:
    """Whether a prepared model gave the loss; None if the source does not show which model did."""
    loss = next((one for one in module.gradients.losses if one.call is backward), None)
    path = module.gradients.path(loss) if loss is not None else ()
    calls = [node for node in path if isinstance(node, cst.Call)]
    if any(_is_of_prepared(call, module) for call in calls):
        return True
    is_known = any(module.kind(call.func) is Kind.MODULE for call in calls)
    return False if is_known else None


def _is_of_prepared(call: cst.Call, module: FileFacts) -> bool:
    return any(True for _ in module.preparing.bare(module.calls_in_loop.called(call)))


def _bypassed(call: cst.Call, prepared: PrepareCall, module: FileFacts) -> Suspicion:
    name = _name(prepared, module)
    message = f"`{module.code(call.func)}()` skips what `{name}.backward` does: it {_DOES[prepared.preparer]}"
    related = ((prepared.call, "prepared here"),)
    is_note = prepared.preparer is Preparer.DEEPSPEED  # its newest releases follow torch's `backward`
    return Suspicion(call, message, related, _fix(call, prepared, module), is_note=is_note)


def _name(prepared: PrepareCall, module: FileFacts) -> str:
    func = prepared.call.func
    is_method = isinstance(func, cst.Attribute) and prepared.preparer is not Preparer.DEEPSPEED
    return module.code(func.value) if is_method and isinstance(func, cst.Attribute) else "engine"


def _fix(call: cst.Call, prepared: PrepareCall, module: FileFacts) -> ProposedFix | None:
    assert isinstance(call.func, cst.Attribute)
    func = prepared.call.func
    holder = dotted(func.value) if isinstance(func, cst.Attribute) else None
    if (
        prepared.preparer is Preparer.DEEPSPEED
        or holder is None
        or not _reaches(holder, prepared, call, module)
    ):
        return None
    given = [module.verbatim(call.func.value), *(module.verbatim(arg) for arg in call.args)]
    code = f"{holder}.backward({', '.join(given)})"
    return ProposedFix(f"call `{holder}.backward`", (replace(call, code),))


def _reaches(holder: str, prepared: PrepareCall, call: cst.Call, module: FileFacts) -> bool:
    """Whether the framework's object has the same name at a call as where it prepared."""
    if holder.startswith("self."):
        klass = module.tree.enclosing(call, cst.ClassDef)
        return klass is not None and module.tree.enclosing(prepared.call, cst.ClassDef) is klass
    return module.tree.home(prepared.call) is module.tree.home(call)


# -- step -----------------------------------------------------------------------------------------------------


def _bare_step(event: LoopEvent, module: FileFacts) -> Suspicion | None:
    """The step of an optimizer along the gradients of a framework that was not given it, or whose engine steps it."""
    region = module.order.region_by_calls(event, Action.BACKWARD)
    if region is None or event.scaler is not None:
        return None
    before = [_backward_before(path, index) for path, index in module.order.paths_with(region, event)]
    ways = {module.preparing.backwards_by(one.call) if one is not None else None for one in before}
    by = before[0] if len(ways) == 1 else None
    if by is None or None in ways:
        return None
    code, preparer = module.code(event.call.func), module.preparing.backwards_by(by.call)
    related = ((by.call, "the backward pass of the framework"),)
    if preparer is Preparer.DEEPSPEED:
        owner = _owner(event, module)
        is_own = owner is not None and owner.preparer is Preparer.DEEPSPEED and _is_optimizer(event, module)
        message = f"`{code}()` may step after each micro-batch: call `engine.step()` instead"
        return Suspicion(event.call, message, related) if is_own else None
    if not _is_never_prepared(event, module):
        return None
    message = f"gradients stay scaled or partial at `{code}()`: pass the optimizer to `prepare`"
    return Suspicion(event.call, message, related)


def _backward_before(path: ExecutionPath, index: int) -> LoopEvent | None:
    """The backward pass whose gradients a step uses: the last one, of the pass before if need be."""
    earlier = (event for event in (*path[index::-1], *path[:index:-1]) if event.action is Action.BACKWARD)
    return next(earlier, None)


def _is_optimizer(event: LoopEvent, module: FileFacts) -> bool:
    """Whether the stepped object is the second result of `deepspeed.initialize`, and not the engine."""
    return all(origin.path == (1,) for origin in module.flow.of(event.subject).tensors)


def _is_never_prepared(event: LoopEvent, module: FileFacts) -> bool:
    """Whether the program certainly creates an optimizer and passes it to no framework."""
    origins = [origin.node for origin in module.flow.of(event.subject).tensors]
    if not origins or not all(_makes_optimizer(node, module) for node in origins):
        return False
    files = dict.fromkeys([module.tree.root, *map(module.tree.root_of, origins)])
    return not any(
        _may_prepare(call, origins, module) for root in files for call in module.tree.within(root, cst.Call)
    )


def _makes_optimizer(node: Node, module: FileFacts) -> bool:
    return isinstance(node, cst.Call) and module.kinds.instance(node.func) is Kind.OPTIMIZER


def _may_prepare(call: cst.Call, made: list[Node], module: FileFacts) -> bool:
    """Whether a call may prepare one of these: it gets a value from one, or does not show its arguments."""
    name = called_name(call) or ""
    if not ("prepare" in name or "setup" in name):
        return False
    values = [arg.value for arg in call.args]
    return any(arg.star for arg in call.args) or any(
        origin.node in made for value in values for origin in module.flow.of(value).origins
    )


def _has_alternative(call: cst.Call, module: FileFacts) -> bool:
    """Whether a condition chooses between torch's way and the framework's."""
    home = module.tree.home(call)
    for above in module.tree.ancestors(call):
        if above is home:
            return False
        if isinstance(above, cst.If) and any(
            module.preparing.backwards_by(other) is not None for other in module.tree.within(above, cst.Call)
        ):
            return True
        if isinstance(above, (cst.If, cst.IfExp)) and _asks_for_framework(above.test, module):
            return True
    return False


def _asks_for_framework(test: Node, module: FileFacts) -> bool:
    words = ("accelerat", "fabric", "deepspeed")
    names = (name.value.lower() for name in module.tree.within(test, cst.Name))
    return any(word in name for name in names for word in words)
