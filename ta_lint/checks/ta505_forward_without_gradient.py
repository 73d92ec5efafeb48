"""TA505: the loss of a `backward()` was computed under `no_grad`, so there is no graph to traverse."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.loops.loops import BACKWARD
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.tree import Node

KEYWORDS = ("*backward",)
AROUND = (("no_grad", "inference_mode", "set_grad_enabled"),)

# Methods and functions that create a leaf, or hide the gradient's path.
_REQUIRES = frozenset({"requires_grad_", "retain_grad", "apply"})


def check(module: FileFacts) -> Iterator[Suspicion]:
    for loss in module.gradients.losses:
        if not isinstance(loss.call, cst.Call) or called_name(loss.call) not in BACKWARD:
            continue
        gradient = module.gradients.of(loss.value)
        forward = gradient.unrecorded if gradient.cut is None and not gradient.by_name else None
        if forward is None or _asks_for_gradient(module, loss.call):
            continue
        decision = module.recording.around(forward)
        together = decision is None and module.tree.home(forward) is module.tree.home(loss.call)
        if together and module.recording.records(loss.call) is not False:
            continue  # the callers that switch recording off do not get to the backward pass
        message = f"`{module.code(loss.call)}` raises, as no graph is recorded: take `{module.code(forward)}` out of `no_grad`"
        related: tuple[tuple[Node, str], ...] = ((forward, "computed here"),)
        if decision is not None and isinstance(decision.node, cst.With):
            related = (
                (forward, "computed here"),
                (decision.node.items[0], "recording is switched off here"),
            )
        yield Suspicion(loss.call, message, related=related)


def _asks_for_gradient(module: FileFacts, call: cst.Call) -> bool:
    """Whether the function creates leaves itself, so that a graph may start at any of its tensors."""
    home = module.tree.home(call)
    if any(name.value in _REQUIRES for name in module.tree.within(home, cst.Name)):
        return True
    keywords = (arg.keyword for arg in module.tree.within(home, cst.Arg))
    targets = (item.target for item in module.tree.within(home, cst.AssignTarget))
    set_by_hand = any(
        isinstance(target, cst.Attribute) and target.attr.value == "requires_grad" for target in targets
    )
    return set_by_hand or any(
        keyword is not None and keyword.value == "requires_grad" for keyword in keywords
    )
