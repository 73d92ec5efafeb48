"""TA214: a loss is computed in float16 without a gradient scaler, so small gradients become zero."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.protocol import Action
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.loops.order import LoopEvent
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.tree import Node, dotted

KEYWORDS = ("*backward",)
AROUND = ("autocast",)

# Frameworks that scale losses themselves, or may.
_SCALING = frozenset(
    "accelerate apex colossalai composer deepspeed fairscale fastai ignite lightning lightning_fabric mmengine "
    "pytorch_lightning transformers".split()
)
_SCALES = frozenset({"scale", "scale_loss", "unscale_"})
_LEAST_FACTOR = 8  # of a loss that is scaled by hand


def check(module: FileFacts) -> Iterator[Suspicion]:
    if module.loops.framework:
        return
    for backward in module.order.events(Action.BACKWARD):
        if backward.scaler is not None or _is_scaled_by_hand(module, backward):
            continue
        autocast = _autocast(module, backward)
        if autocast is None or _scales(module):
            continue
        message = (
            f"small gradients of float16 become zero at `{module.code(backward.call)}`: use a `GradScaler`"
        )
        yield Suspicion(backward.call, message, ((autocast, "what is computed here is in float16"),))


def _autocast(module: FileFacts, backward: LoopEvent) -> cst.Call | None:
    """The autocast in float16 under which something runs that a loss is computed from, and that autograd records."""
    for part in module.parts.of(backward.subject):
        for call in module.tree.within(part, cst.Call):
            for computing in (call, *_inside(module, call)):
                found = module.autocasts.around(computing)
                if found is None or not module.autocasts.is_half(found):
                    continue
                if _is_recorded(module, call) and _is_recorded(module, computing):
                    return found
    return None


def _inside(module: FileFacts, call: cst.Call) -> Iterator[cst.Call]:
    """The calls that compute what the `forward` returns that a call runs."""
    if module.qualified(call.func) is not None:
        return
    entered = module.flow.entered(call, (), None)
    for origin in entered.origins if entered is not None else ():
        for part in module.parts.of(origin.node):
            yield from module.tree.within(part, cst.Call)


def _is_recorded(module: FileFacts, call: cst.Call) -> bool:
    decision = module.recording.around(call)
    return decision is None or decision.records is not False


def _is_scaled_by_hand(module: FileFacts, backward: LoopEvent) -> bool:
    """Whether a loss is multiplied by a large number, or by something named a scale."""
    for part in module.parts.of(backward.subject):
        if "scale" in (dotted(part) or "").lower():
            return True
        for product in module.tree.within(part, cst.BinaryOperation):
            if isinstance(product.operator, cst.Multiply) and any(
                _is_scale(module, side) for side in (product.left, product.right)
            ):
                return True
    return False


def _is_scale(module: FileFacts, factor: Node) -> bool:
    number = module.number(factor)
    return "scale" in (dotted(factor) or "").lower() or (number is not None and number >= _LEAST_FACTOR)


def _scales(module: FileFacts) -> bool:
    """Whether anything in the program scales a loss, or hands a scaler on, or a framework does that may."""
    roots = [module.tree.root, *(module.names.beside("scale", "scale_loss", "*scaler*", *_SCALING) or ())]
    return any(_scales_in(module, root) for root in roots)


def _scales_in(module: FileFacts, root: cst.Module) -> bool:
    if any(name.partition(".")[0] in _SCALING for name in module.names.imported_by(root)):
        return True
    calls = module.tree.within(root, cst.Call)
    if any(called_name(call) in _SCALES for call in calls):
        return True
    given = (dotted(arg.value) or "" for call in calls for arg in call.args)
    return any("scaler" in name.lower() for name in given)
