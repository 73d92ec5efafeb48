"""TA620: an optimizer is built for training, but nothing ever steps it."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.protocol import Action
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.parameters import OptimizerCall
from ta_lint.facts.values.whereabouts import Uses
from ta_lint.syntax.tree import LOOPS, Node, dotted, literal_text

KEYWORDS = (("optim", "*optimizer*", "*adam*"),)

# What code does with an optimizer besides stepping it.
_DONE = frozenset("add_param_group defaults load_state_dict param_groups state state_dict zero_grad".split())


def check(module: FileFacts) -> Iterator[Suspicion]:
    if module.is_test or module.loops.framework:
        return
    for optimizer in module.parameters.optimizers:
        uses = module.whereabouts.uses(optimizer.call)
        if uses is None or not uses.keys() <= _DONE or _steps_by_hand(module, optimizer.call, uses):
            continue
        cleared = uses.get("zero_grad", [])
        trains = module.is_nearby("backward") if cleared else _trains_around(module, optimizer.call)
        if trains and (cleared or not _is_replaced(module, optimizer)):
            related = tuple((node, "its gradients are cleared here") for node in cleared[:1])
            yield Suspicion(
                optimizer.call,
                "the optimizer is never stepped, so its parameters never change: call `step()`",
                related,
            )


def _steps_by_hand(module: FileFacts, made: cst.Call, uses: Uses) -> bool:
    """Whether code reads gradients, or the parameters of the groups, and so may make the step itself."""
    attributes = module.tree.within(module.tree.home(made), cst.Attribute)
    if any(one.attr.value == "grad" and module.qualified(one) is None for one in attributes):
        return True
    return any(
        literal_text(key) == "params"
        for groups in uses.get("param_groups", [])
        for key in module.tree.within(_around(module, groups), cst.SimpleString)
    )


def _around(module: FileFacts, groups: Node) -> Node:
    """The loop over groups, or the statement that reads them."""
    above = module.tree.parent[groups]
    return above if isinstance(above, cst.For) else module.tree.statement(groups)


def _trains_around(module: FileFacts, made: cst.Call) -> bool:
    """Whether a loop of the function, or of the top of the file, that makes an optimizer runs backward passes."""
    loops = module.tree.own(module.tree.home(made), *LOOPS)
    return any(Action.BACKWARD in module.order.actions(loop) for loop in loops)


def _is_replaced(module: FileFacts, optimizer: OptimizerCall) -> bool:
    """Whether another optimizer of the file holds the same model, or this one's may be frozen."""
    if optimizer.sources is None:
        return True
    held = {dotted(source.model) for source in optimizer.sources}
    others = (one for one in module.parameters.optimizers if one is not optimizer)
    found = {dotted(source.model) for other in others for source in other.sources or ()}
    found |= {dotted(switch.model) for switch in module.parameters.switches if not switch.on}
    return not held.isdisjoint(found)
