"""The edits that put clearing, clipping and the schedule where they belong around a step."""

import libcst as cst

from ta_lint.core.finding import Site
from ta_lint.core.protocol import Action
from ta_lint.facts.file_facts import FileFacts
from ta_lint.facts.loops.loops import TrainingLoop
from ta_lint.facts.torch.preparing import Preparer
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.edits import (
    Edit,
    ProposedFix,
    Side,
    insert_line_after,
    insert_line_before,
    move,
    remove_statement,
    replace,
)
from ta_lint.syntax.layout import plain
from ta_lint.syntax.tree import argument, dotted


def clear_first(module: FileFacts, step: Site) -> ProposedFix | None:
    """Clear the gradients that a step uses in each pass of its loop, with a misplaced statement or a new one.

    Only if each step follows its backward in one statement list: otherwise gradients may accumulate on purpose.
    """
    for loop in module.training_loops:
        if any(module.places.span(one.call)[:2] == (step.line, step.column) for one in loop.steps):
            return _clear_in(loop, module, _misplaced(loop, module))
    return None


def _clear_in(loop: TrainingLoop, module: FileFacts, moved: cst.Expr | None) -> ProposedFix | None:
    tree, region = module.tree, loop.region
    optimizers = {plain(step.optimizer) for step in loop.steps}
    blocks = {tree.block(call) for call in (*loop.backwards, *(step.call for step in loop.steps))}
    optimizer = loop.steps[0].optimizer
    if (
        len(optimizers) > 1
        or len(blocks) > 1
        or dotted(optimizer) is None
        or isinstance(region, cst.FunctionDef)
    ):
        return None
    name = tree.within(optimizer, cst.Name)[0]
    if module.names.is_bound_in(name, region):
        return None
    code = module.verbatim(moved.value) if moved is not None else f"{dotted(optimizer)}.zero_grad()"
    edits: list[Edit] = [insert_line_before(tree, region.body.body[0], code)]
    if moved is not None:
        edits.append(remove_statement(tree, moved))
    return ProposedFix("clear the gradients in each pass", tuple(edits))


def _misplaced(loop: TrainingLoop, module: FileFacts) -> cst.Expr | None:
    """The same optimizer's `zero_grad()` before the loop, in the same statement list."""
    optimizer = loop.steps[0].optimizer
    for statement in module.tree.preceding(loop.region):
        call = statement.value if isinstance(statement, cst.Expr) else None
        if (
            isinstance(statement, cst.Expr)
            and isinstance(call, cst.Call)
            and isinstance(call.func, cst.Attribute)
            and call.func.attr.value == "zero_grad"
            and plain(call.func.value) == plain(optimizer)
            and module.tree.block(statement) is module.tree.block(loop.region)
        ):
            return statement
    return None


def clear_earlier(module: FileFacts, clear: Site) -> ProposedFix | None:
    """Move a clearing before the backward pass, if that is the only one for the step and all three are in one statement list."""
    tree, call = module.tree, module.call_at(clear)
    if call is None or not isinstance(tree.parent[call], cst.Expr):
        return None
    block = tree.block(call)
    steps = [one.call for one in module.loops.steps if tree.block(one.call) is block]
    backwards = module.loops.backwards(block)
    if len(backwards) != 1 or not any(tree.before(call, step) for step in steps):
        return None
    statement = tree.statement(backwards[0])
    if tree.block(backwards[0]) is not block or not isinstance(statement, cst.Expr):
        return None
    if not tree.before(backwards[0], call):
        return None
    edits = (insert_line_before(tree, statement, module.verbatim(call)), remove_statement(tree, call))
    return ProposedFix("clear before the backward", edits)


def clip_between(module: FileFacts, clip: Site) -> ProposedFix | None:
    """Move a clipping before the step or after the backward pass in its block; none if gradients are scaled, as they would need unscaling."""
    tree, order, call = module.tree, module.order, module.call_at(clip)
    events = [event for action in (Action.STEP, Action.BACKWARD) for event in order.events(action)]
    if call is None or order.events(Action.UNSCALE) or any(event.scaler is not None for event in events):
        return None
    beside = [event for event in events if tree.block(event.place) is tree.block(call)]
    before = [event for event in beside if tree.before(event.place, call)]
    if any(event.action is Action.STEP for event in before):
        step = next(event for event in reversed(before) if event.action is Action.STEP)
        edits = move(tree, module.places, call, step.place, Side.START)
        return ProposedFix("clip before the step", edits) if edits else None
    after = [event for event in beside if event not in before and event.action is Action.BACKWARD]
    edits = move(tree, module.places, call, after[0].place, Side.END) if after else ()
    return ProposedFix("clip after the backward pass", edits) if edits else None


def schedule_after(module: FileFacts, call: Site) -> ProposedFix | None:
    """Move the step of a scheduler behind that of its optimizer, or of any optimizer if nobody knows which it is, in its block."""
    tree, schedules = module.tree, module.order.events(Action.SCHEDULE)
    schedule = next((one for one in schedules if one.call is module.call_at(call)), None)
    if schedule is None:
        return None
    made = module.kinds.construction(schedule.subject)
    optimizer = argument(made, "optimizer", 0) if made is not None else None
    steps = [step for step in module.order.events(Action.STEP) if not step.via]
    own = [step for step in steps if optimizer is not None and dotted(step.subject) == dotted(optimizer)]
    for step in own or steps:
        edits = move(tree, module.places, schedule.call, step.place, Side.END)
        if edits and tree.before(schedule.call, step.place):
            return ProposedFix("step the scheduler after the optimizer", edits)
    return None


def unscale_before(module: FileFacts, clip: Site) -> ProposedFix | None:
    """Take the factor of a scaler out of gradients before they are clipped; Accelerate's own clipping does both."""
    tree, order, call = module.tree, module.order, module.call_at(clip)
    if call is None:
        return None
    for backward in order.events(Action.BACKWARD):
        func = backward.call.func
        of_accelerate = module.preparing.backwards_by(backward.call) is Preparer.ACCELERATE
        if of_accelerate and isinstance(func, cst.Attribute) and not backward.via:
            code = f"{module.verbatim(func.value)}.{called_name(call)}"
            return ProposedFix(f"call `{code}`", (replace(call.func, code),))
    for step in order.events(Action.STEP):
        if step.scaler is not None and not step.via and dotted(step.subject) and tree.before(call, step.call):
            code = f"{module.verbatim(step.scaler)}.unscale_({module.verbatim(step.subject)})"
            return ProposedFix(f"insert `{code}`", (insert_line_before(tree, call, code),))
    return None


def step_by_scaler(module: FileFacts, step: Site) -> ProposedFix | None:
    """Step through the scaler of the backward pass before, or update the scaler after its step."""
    order, call = module.order, module.call_at(step)
    found = next((one for one in order.events(Action.STEP) if one.call is call), None)
    if found is None or dotted(found.subject) is None:
        return None
    if found.scaler is not None:
        code = f"{module.verbatim(found.scaler)}.update()"
        return ProposedFix(f"call `{code}`", (insert_line_after(module.tree, found.call, code),))
    before = [one for one in order.events(Action.BACKWARD) if module.tree.before(one.call, found.call)]
    if not before or before[-1].scaler is None or before[-1].via:
        return None
    code = f"{module.verbatim(before[-1].scaler)}.step({module.verbatim(found.subject)})"
    return ProposedFix(f"call `{code}`", (replace(found.call, code),))
