"""TA626: an optimizer steps twice with the same gradients."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.protocol import Action
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.loops.order import ExecutionPath, LoopEvent
from ta_lint.syntax.layout import plain
from ta_lint.syntax.tree import LOOPS, Node

KEYWORDS = ("step",)
AROUND = ("*backward",)


def check(module: FileFacts) -> Iterator[Suspicion]:
    if module.loops.framework or module.is_test or len(module.order.events(Action.STEP)) < 2 - _helps(module):
        return
    for step in module.order.events(Action.STEP):
        region = module.order.region(step, Action.BACKWARD)
        if region is None or (isinstance(region, LOOPS) and module.loops.is_last_pass(step.call, region)):
            continue
        paths = module.order.paths_with(region, step)
        firsts = [_first(module, path, index) for path, index in paths]
        if firsts and None not in firsts and firsts[0] is not None:
            first = firsts[0]
            if not _sets_gradients(module, first, step):
                code = module.code(step.call)
                message = f"`{code}` applies the same gradients a second time: step once per backward pass"
                yield Suspicion(step.call, message, ((first.place, "the first step"),))


def _helps(module: FileFacts) -> bool:
    """Whether the file imports functions of the project, which may step as well."""
    return bool(module.names.attributes_of_imports) or module.is_nearby("step")


def _first(module: FileFacts, path: ExecutionPath, index: int) -> LoopEvent | None:
    """The step of the same optimizer just before one, with only a scaler's update or a schedule's step between."""
    step = path[index]
    optimizer = _optimizer(module, step)
    for before in reversed(path[:index]):
        if before.action is Action.STEP and _optimizer(module, before) == optimizer:
            return before if before.call is not step.call else None
        if before.action not in (Action.UPDATE, Action.SCHEDULE, Action.STEP):
            return None
    return None


def _optimizer(module: FileFacts, step: LoopEvent) -> Node | str:
    """The call that makes the optimizer of a step, if it is run once, as the optimizer may have two names; else its code."""
    subject = module.order.subject(step)
    made, tree = module.kinds.construction(subject), module.tree
    if made is None or not isinstance(subject, (cst.Attribute, cst.Name)):
        return plain(subject)
    klass, home = tree.enclosing(step.call, cst.ClassDef), tree.home(made)
    methods = module.classes.methods(klass).values() if klass is not None else ()
    repeats = tree.loops(made) or tree.enclosing(made, cst.ListComp, cst.DictComp, cst.GeneratorExp)
    runs_once = not repeats and (home in methods or home is tree.home(subject) or tree.is_at_top(made))
    return made if runs_once else plain(subject)


def _sets_gradients(module: FileFacts, first: LoopEvent, step: LoopEvent) -> bool:
    """Whether code between two steps writes to `.grad`."""
    tree = module.tree
    return any(
        attribute.attr.value == "grad"
        and tree.before(first.place, attribute)
        and tree.before(attribute, step.call)
        for attribute in tree.within(tree.home(step.call), cst.Attribute)
    )
