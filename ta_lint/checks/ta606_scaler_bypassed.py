"""TA606: a scaled loss whose optimizer steps without the scaler, or a scaler that is never updated."""

import re
from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.core.protocol import Action
from ta_lint.facts import FileFacts, Kind, Suspicion
from ta_lint.facts.loops.order import ExecutionPath, LoopEvent
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.edits import ProposedFix, insert_line_after, replace
from ta_lint.syntax.layout import plain
from ta_lint.syntax.tree import Node, dotted

KEYWORDS = (
    "step",
    "*scaler*",
)
AROUND = (
    "scale",
    "*backward",
)

# Methods of a scaler that do not update it.
_SCALER_METHODS = frozenset("get_scale is_enabled load_state_dict scale state_dict step unscale_".split())

_LOOKS = regex(r"isfinite|isinf|isnan")
_GRADIENTS = regex(r"grad|norm")

# Functions that take a scaler and do not update it.
_KEEPS = regex(r"\w*(save|load|print|log|checkpoint|state_dict|append|isinstance|dict)\w*", re.IGNORECASE)


def check(module: FileFacts) -> Iterator[Suspicion]:
    if module.loops.framework:
        return
    for step in module.order.events(Action.STEP):
        backward = _scaled_backward(module, step) if step.scaler is None else None
        if backward is not None and backward.scaler is not None:
            scaler = module.code(backward.scaler)
            message = (
                f"`{module.code(step.call)}` uses gradients that are still scaled: call `{scaler}.step(...)`"
            )
            related = ((backward.place, "the loss is scaled here"),)
            yield Suspicion(step.call, message, related, _step_fix(module, step, backward))
        elif step.scaler is not None and _is_never_updated(module, step, step.scaler):
            scaler = module.code(step.scaler)
            message = f"the second `{scaler}.step` raises an error: call `{scaler}.update()` after each step"
            yield Suspicion(step.call, message, fix=_update_fix(module, step))


# -- a step that leaves the scaler out ------------------------------------------------------------------------


def _scaled_backward(module: FileFacts, step: LoopEvent) -> LoopEvent | None:
    """The scaled backward pass whose gradients a plain step uses, on every path that scales them."""
    region = module.order.region_by_calls(step, Action.BACKWARD)
    if region is None or module.order.unscales_by_hand(region) or _checks_by_hand(module, region):
        return None
    found = (_last_backward(path[:index]) for path, index in module.order.paths_with(region, step))
    backward = next((event for event in found if event is not None and event.scaler is not None), None)
    if backward is None:
        return None
    paths = module.order.paths(region)
    return None if any(_steps_scaled(module, path, backward, step) for path in paths) else backward


def _last_backward(before: ExecutionPath) -> LoopEvent | None:
    """The backward pass before a step; None if a call that may do anything comes between them."""
    last = next((e for e in reversed(before) if e.action in (Action.BACKWARD, Action.UNKNOWN)), None)
    return last if last is not None and last.action is Action.BACKWARD else None


def _steps_scaled(module: FileFacts, path: ExecutionPath, backward: LoopEvent, step: LoopEvent) -> bool:
    """Whether the same optimizer steps through a scaler after a backward pass, before the next one."""
    start = next((index for index, event in enumerate(path) if event.call is backward.call), len(path))
    for event in path[start + 1 :]:
        if event.action is Action.BACKWARD:
            return False
        is_scaled = event.action is Action.STEP and event.scaler is not None
        if is_scaled and (event.via or plain(event.subject) == plain(step.subject)):
            return True
    return False


def _checks_by_hand(module: FileFacts, region: Node) -> bool:
    """Whether the code checks gradients for infinities itself, without the scaler's `step`."""
    names = (name.value for name in module.tree.within(region, cst.Name))
    looks = (
        call for call in module.tree.within(region, cst.Call) if _LOOKS.fullmatch(called_name(call) or "")
    )
    return any("found_inf" in name for name in names) or any(
        _GRADIENTS.search(plain(arg.value)) for call in looks for arg in call.args
    )


def _step_fix(module: FileFacts, step: LoopEvent, backward: LoopEvent) -> ProposedFix | None:
    if backward.scaler is None or backward.via or dotted(step.subject) is None:
        return None
    code = f"{module.verbatim(backward.scaler)}.step({module.verbatim(step.subject)})"
    return ProposedFix(f"call `{code}`", (replace(step.call, code),))


# -- a scale that stays ---------------------------------------------------------------------------------------


def _is_never_updated(module: FileFacts, step: LoopEvent, scaler: cst.BaseExpression) -> bool:
    """Whether a step through a scaler repeats, and no visible code may update the scaler."""
    name = dotted(scaler)
    function = module.tree.home(step.call)
    if name is None or not _scales(module, name):
        return False
    places: list[Node] = [function]
    klass = module.tree.enclosing(step.call, cst.ClassDef)
    if name.startswith("self.") and klass is not None:
        places.append(klass)
    is_own = len(places) > 1 and module.kind(scaler) is Kind.SCALER
    if not module.tree.loops(step.call) and not is_own:
        calls = module.calls.sites(function) if isinstance(function, cst.FunctionDef) else []
        if not calls or not all(module.tree.loops(call) for call in calls):
            return False
        places += [module.tree.home(call) for call in calls]
    return not any(_may_update(module, place, name) for place in places)


def _scales(module: FileFacts, scaler: str) -> bool:
    scalers = (event.scaler for event in module.order.events(Action.BACKWARD))
    return any(found is not None and dotted(found) == scaler for found in scalers)


def _may_update(module: FileFacts, place: Node, scaler: str) -> bool:
    """Whether code at a place, or code it calls, updates the scaler or passes it to code outside this file."""
    if Action.UPDATE in module.order.actions(place):
        return True
    for call in module.tree.within(place, cst.Call):
        is_given = scaler in {dotted(arg.value) for arg in call.args}
        if is_given and module.calls.callee(call) is None and not _KEEPS.fullmatch(called_name(call) or ""):
            return True
        is_own = isinstance(call.func, cst.Attribute) and dotted(call.func.value) == scaler
        if is_own and called_name(call) not in _SCALER_METHODS:
            return True
    return False


def _update_fix(module: FileFacts, step: LoopEvent) -> ProposedFix | None:
    if step.scaler is None:
        return None
    code = f"{module.verbatim(step.scaler)}.update()"
    return ProposedFix(f"call `{code}`", (insert_line_after(module.tree, step.call, code),))
