"""TA601: gradients are cleared after `backward()` and before `step()`, so the step has none."""

import re
from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.core.protocol import Action
from ta_lint.facts import FileFacts, Kind, StepCall, Suspicion
from ta_lint.facts.loops.loops import Region
from ta_lint.facts.loops.order import ExecutionPath, LoopEvent
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.edits import ProposedFix, insert_line_before, remove_statement
from ta_lint.syntax.layout import plain
from ta_lint.syntax.tree import LOOPS, Node, argument, attribute_of_self, dotted

KEYWORDS = (("zero_grad", "step"),)
AROUND = (
    "*backward",
    "step",
)

# Calls that leave gradients unchanged, on any object.
_KEEP_GRADIENTS = frozenset(
    "add_scalar append clip_grad_norm_ clip_grad_value_ cpu debug detach flush format get_last_lr info item log "
    "log_metrics mean named_parameters parameters perf_counter set_description set_postfix state_dict sum synchronize time unscale_ warning "
    "write zero_grad".split()
)
_COMPUTES_GRADIENTS = regex(
    r"torch\.(autograd|func|utils\.checkpoint|optim|distributed)\..*|builtins\.(exec|eval)"
)

# Names of functions that may compute gradients or make a step, and of those that only log them.
_COMPUTES = regex(r"back|grad|(?<!_)train|fit|step|update|optimi|closure|learn", re.IGNORECASE)
_REPORTS = regex(
    r"(^|[._])(\w*bar|\w*meters?|tqdm|progress|metrics?|writer|log\w*|wandb|tracker|stats?|timer|\w*sched\w*|ema|extend|save\w*|"
    r"reset)([._]|$)|empty_cache",
    re.IGNORECASE,
)


def check(module: FileFacts) -> Iterator[Suspicion]:
    reported: set[Node] = set()
    for step in module.loops.steps:
        clear = _clear_before(step, module)
        backward = _backward_before(clear, step, module) if clear is not None else None
        if clear is not None and backward is not None and not _is_skipped(clear, backward, step, module):
            reported.add(clear)
            fix = _moved(clear, backward, step, module)
            yield _suspicion(module, clear, backward, step.call, fix)
    if module.loops.framework is None and not module.loops.gated:
        if "zero_grad" in module.source.text:
            yield from _in_circles(module, reported)
        yield from _too_early(module, reported)


def _suspicion(
    module: FileFacts, clear: cst.Call, backward: cst.Call, step: cst.Call, fix: ProposedFix | None = None
) -> Suspicion:
    message = (
        f"`{module.code(clear)}` clears what `{module.code(backward)}` computed, "
        f"before `{module.code(step)}` can use it: clear the gradients earlier"
    )
    related = ((backward, "the gradients are computed here"), (step, "the step that has none"))
    return Suspicion(clear, message, related=related, fix=fix)


# -- over several passes of a loop ----------------------------------------------------------------------------


def _in_circles(module: FileFacts, reported: set[Node]) -> Iterator[Suspicion]:
    """Gradients that are lost between two passes: `step(); backward(); zero_grad()` in a loop, or under a guard of the step."""
    judged: set[Node] = set()
    for region in _regions(module):
        paths = module.order.paths(region)
        events = list(dict.fromkeys(event for path in paths for event in path))
        steps = [event for event in events if event.action is Action.STEP and event.call not in judged]
        if not {Action.BACKWARD, Action.CLEAR, Action.STEP} <= {event.action for event in events}:
            continue
        judged.update(step.call for step in steps)
        if not steps or _is_out_of_sight(module, region, events):
            continue
        by_subject: dict[str, list[LoopEvent]] = {}
        for one in steps:
            by_subject.setdefault(_subject(module, one), []).append(one)
        for own in by_subject.values():
            clear = _starves(module, paths, own) or _clears_each_time(module, region, paths, own)
            if clear is None or clear.place in reported or clear.call in reported:
                continue
            backward = next(event for event in events if event.action is Action.BACKWARD)
            shown = clear.call if module.is_here(clear.call) else clear.place
            reported.update((shown, *(step.call for step in own)))
            together = module.tree.home(own[0].call) is module.tree.home(shown)
            step = own[0].call if together else own[0].place
            yield _suspicion(module, shown, backward.place, step)


def _regions(module: FileFacts) -> Iterator[Region]:
    """The loops of the file, the inner ones first, and the functions that loops call for each step and nothing beside it."""
    yield from sorted(module.tree.all(*LOOPS), key=module.tree.order, reverse=True)
    for training in module.training_loops:
        if isinstance(training.region, cst.FunctionDef):
            sites = module.calls.sites(training.region)
            around = [
                event for loop in training.callers for path in module.order.paths(loop) for event in path
            ]
            if all(module.tree.loops(site) for site in sites) and all(
                event.place in sites for event in around
            ):
                yield training.region


def _is_out_of_sight(module: FileFacts, region: Region, events: list[LoopEvent]) -> bool:
    """Whether something in a region may bring gradients that its events do not show."""
    if any(event.action is Action.UNKNOWN for event in events):
        return True
    nodes = module.loops.reach(region)
    if any(True for node in nodes for _ in module.gradient_writes.within(node)):
        return True
    if module.tree.own(region, cst.Yield, cst.Await):
        return True
    names = [name for event in events for name in module.tree.within(event.subject, cst.Name)[:1]]
    optimizers = [name for name in names if module.kinds.is_optimizer(name)]
    if any(module.names.is_bound_in(name, region) for name in optimizers):
        return True
    known = {call for event in events for call in (event.call, *event.via)}
    return any(call not in known and _may_compute(call, module) for call in module.tree.own(region, cst.Call))


def _may_compute(call: cst.Call, module: FileFacts) -> bool:
    """Whether a call may compute gradients: by its name, or as it is made for nothing but its effect."""
    is_mode = module.calls_in_loop.is_mode(call)
    if is_mode or module.calls.callee(call) is not None or _is_known(call, module):
        return False
    name = dotted(call.func) or called_name(call) or ""
    if _REPORTS.search(name):
        return False
    return isinstance(module.tree.parent[call], cst.Expr) or _COMPUTES.search(name) is not None


def _clears(module: FileFacts, event: LoopEvent, step: LoopEvent) -> bool:
    """Whether an event clears all gradients that a step uses."""
    if event.action is not Action.CLEAR or called_name(event.call) != "zero_grad":
        return False
    cleared, stepped = module.order.subject(event), module.order.subject(step)
    if plain(cleared) == plain(stepped):
        return True
    if not isinstance(cleared, cst.BaseExpression) or not isinstance(stepped, cst.BaseExpression):
        return False
    return _is_what_is_optimized(cleared, StepCall(step.call, stepped), module)


def _subject(module: FileFacts, event: LoopEvent) -> str:
    return plain(module.order.subject(event))


def _last(module: FileFacts, path: ExecutionPath, step: LoopEvent) -> tuple[Action, LoopEvent] | None:
    """What last decided on the gradients of an optimizer before the end of a path: a backward pass, a clearing or a step."""
    for event in reversed(path):
        if event.action is Action.BACKWARD or _clears(module, event, step):
            return event.action, event
        if event.action is Action.STEP and _subject(module, event) == _subject(module, step):
            return event.action, event
    return None


def _starves(module: FileFacts, paths: list[ExecutionPath], steps: list[LoopEvent]) -> LoopEvent | None:
    """The clearing that comes right before each step, in its pass or in the one before, with no backward pass between."""
    found: list[tuple[Action, LoopEvent]] = []
    for path in paths:
        for index, event in enumerate(path):
            if event.action is not Action.STEP or event.call not in [step.call for step in steps]:
                continue
            if (last := _last(module, path[:index], event)) is not None:
                found.append(last)
                home = module.tree.home(last[1].call)
                before = [one for one in path[: path.index(last[1])] if one.action is Action.BACKWARD]
                if any(module.tree.home(backward.call) is home for backward in before):
                    return None  # all in one pass of one function, which has been looked at
            else:
                found += filter(None, (_last(module, earlier, event) for earlier in paths))
    if not found or any(action is not Action.CLEAR for action, _ in found):
        return None
    return found[0][1]


def _clears_each_time(
    module: FileFacts, region: Region, paths: list[ExecutionPath], steps: list[LoopEvent]
) -> LoopEvent | None:
    """The clearing in each pass of a loop whose only step comes after several: all but the last gradients are lost."""
    step = steps[0]
    others = {event.call for path in paths for event in path if event.action is Action.STEP}
    if not isinstance(region, LOOPS) or others != {step.call}:
        return None
    guard = module.order.guard(step, region)
    if guard is None:
        return None
    idle = [path for path in paths if all(event.action is not Action.STEP for event in path)]
    training = [path for path in paths if any(event.action is Action.BACKWARD for event in path)]
    clears = [[event for event in path if _clears(module, event, step)] for path in training]
    if not all(clears) or not any(path in training for path in idle):
        return None
    backwards = {event for path in training for event in path if event.action is Action.BACKWARD}
    if any(module.tree.contains(guard, event.place) for event in backwards):
        return None
    clear = next((event for event in clears[0] if not module.tree.contains(guard, event.place)), None)
    return clear if clear is not None and not _is_idle(module, clear) else None


def _is_idle(module: FileFacts, clear: LoopEvent) -> bool:
    """Whether Accelerate may have wrapped an optimizer, so that it clears nothing before the last micro-batch."""
    names = module.names.imported_by(clear.call)
    return module.kind(clear.subject) is not Kind.MODULE and any(
        name.partition(".")[0] == "accelerate" for name in names
    )


# -- before the backward pass of its own loss ------------------------------------------------------------------


def _too_early(module: FileFacts, reported: set[Node]) -> Iterator[Suspicion]:
    """Steps between the forward pass of a loss and its backward pass, with no backward pass before them."""
    for step in module.loops.steps:
        backward = _backward_after(step, module) if step.call not in reported else None
        if backward is None or not _has_what_is_used(step, backward, module):
            continue
        loss = module.code(backward.subject)
        message = f"`{module.code(step.call)}` changes the weights between the forward pass of `{loss}` and its backward pass: step after both"
        related = ((backward.call, "the gradients are computed here, for the step of the next pass"),)
        yield Suspicion(step.call, message, related=related)


def _backward_after(step: StepCall, module: FileFacts) -> LoopEvent | None:
    """The backward pass behind a step, in its list of statements, of a loss that was computed before it in the same pass."""
    tree = module.tree
    if not isinstance(tree.parent[step.call], cst.Expr) or _is_after_backward(step, module):
        return None
    following = (
        event
        for event in module.order.events(Action.BACKWARD)
        if tree.before(step.call, event.call) and tree.block(event.call) is tree.block(step.call)
    )
    backward = next(following, None)
    if backward is None:
        return None
    made = _forward(backward, module)
    if made is None or not tree.before(made, step.call) or tree.home(made) is not tree.home(step.call):
        return None
    return backward if tree.contains(_pass(step, module), made) else None


def _forward(backward: LoopEvent, module: FileFacts) -> cst.Call | None:
    """The call that computes the loss of a backward pass, where that is a variable, or one that is scaled."""
    made = module.kinds.origin(backward.subject)
    if isinstance(made, cst.Call) and backward.scaler is not None and made.args:
        made = module.kinds.origin(made.args[0].value)
    calls = module.tree.within(made, cst.Call)
    return calls[0] if calls and made is not backward.subject else None


def _is_after_backward(step: StepCall, module: FileFacts) -> bool:
    """Whether something before a step, in its pass, runs or may run a backward pass."""
    for statement in module.tree.preceding(step.call):
        if isinstance(statement, LOOPS) and module.tree.contains(statement, step.call):
            return False
        if Action.BACKWARD in module.order.actions(statement):
            return True
        calls = module.tree.within(statement, cst.Call)
        if any(_may_compute(call, module) for call in calls if called_name(call) != "zero_"):
            return True
    return False


def _has_what_is_used(step: StepCall, backward: LoopEvent, module: FileFacts) -> bool:
    """Whether an optimizer has a model that runs before its step; if it is unknown which it has, whether all run before it."""
    events = module.calls_in_loop.events(_pass(step, module))
    models = [event for event in events if event.subject is not None and _is_of_variable(event.call, module)]
    before = [event.subject for event in models if module.tree.before(event.place, step.call)]
    owned = module.calls_in_loop.optimized_by(step.optimizer)
    if owned is None:
        return bool(before) and all(event.subject in before for event in models)
    meant = [meaning for subject in before if subject for meaning in module.calls_in_loop.meanings(subject)]
    return any(meaning[: len(model)] == model for meaning in meant for model in owned)


def _is_of_variable(call: cst.Call, module: FileFacts) -> bool:
    """Whether a call may run a model: it calls a variable, or an attribute of `self` that is not a method."""
    if isinstance(call.func, cst.Name):
        return any(binding.how in ("param", "assign") for binding in module.names.bindings(call.func))
    return attribute_of_self(call.func) is not None and module.calls.callee(call) is None


def _pass(step: StepCall, module: FileFacts) -> Node:
    """What runs for each step: the body of the innermost loop around it, or its function."""
    loops = module.tree.loops(step.call)
    return loops[0].body if loops else module.tree.home(step.call)


# -- within one pass ------------------------------------------------------------------------------------------


def _moved(clear: cst.Call, backward: cst.Call, step: StepCall, module: FileFacts) -> ProposedFix | None:
    """Move the clearing before the backward pass, if that is the only one for the step and nothing is conditional."""
    tree = module.tree
    blocks = {tree.block(call) for call in (clear, backward, step.call)}
    statement = tree.statement(backward)
    others = module.loops.backwards(tree.block(clear))
    if len(blocks) > 1 or not isinstance(statement, cst.Expr) or others != [backward]:
        return None
    edits = (insert_line_before(tree, statement, module.verbatim(clear)), remove_statement(tree, clear))
    return ProposedFix("clear before the backward", edits)


def _clear_before(step: StepCall, module: FileFacts) -> cst.Call | None:
    """The `zero_grad()` that certainly runs before a step, with nothing in between that could compute gradients."""
    for statement in module.tree.preceding(step.call):
        clear = next(
            (c for c in module.tree.within(statement, cst.Call) if _clears_for(step, c, module)), None
        )
        if clear is not None:
            return clear if isinstance(statement, cst.Expr) and statement.value is clear else None
        if not _keeps_gradients(statement, step, module):
            return None
    return None


def _backward_before(clear: cst.Call, step: StepCall, module: FileFacts) -> cst.Call | None:
    """The last `backward()` before a `zero_grad()`, if no step or other clearing comes between."""
    for statement in module.tree.preceding(clear):
        if backwards := module.loops.backwards(statement):
            return backwards[-1]
        calls = module.tree.within(statement, cst.Call)
        if any(_clears_for(step, call, module) or module.loops.step(call) is not None for call in calls):
            return None
    return None


def _is_skipped(clear: Node, backward: Node, step: StepCall, module: FileFacts) -> bool:
    """Whether a branch drops the gradients of a bad batch on purpose: another path steps with them."""
    tree = module.tree
    branch = next((above for above in tree.ancestors(clear) if isinstance(above, cst.If)), None)
    if branch is None or tree.contains(branch, backward) or not tree.contains(branch.body, step.call):
        return False
    return any(
        tree.home(other.call) is tree.home(step.call)
        and not tree.contains(branch.body, other.call)
        and plain(other.optimizer) == plain(step.optimizer)
        for other in module.loops.steps
    )


def _clears_for(step: StepCall, call: cst.Call, module: FileFacts) -> bool:
    """Whether a call clears all gradients that a step uses."""
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "zero_grad":
        return False
    receiver = call.func.value
    return plain(receiver) == plain(step.optimizer) or _is_what_is_optimized(receiver, step, module)


def _is_what_is_optimized(model: cst.BaseExpression, step: StepCall, module: FileFacts) -> bool:
    """Whether the optimizer was built in this file from exactly `model.parameters()`."""
    made = module.kinds.construction(step.optimizer)
    if made is None or module.kind(made) is not Kind.OPTIMIZER:
        return False
    params = argument(made, "params", 0)
    if not isinstance(params, cst.Call) or params.args or not isinstance(params.func, cst.Attribute):
        return False
    return params.func.attr.value == "parameters" and _is_same_variable(params.func.value, model, module)


def _is_same_variable(first: Node, second: Node, module: FileFacts) -> bool:
    """Two uses of one name in one scope; `self` is the same in all methods."""
    if dotted(first) is None or dotted(first) != dotted(second):
        return False
    one, other = module.tree.within(first, cst.Name)[0], module.tree.within(second, cst.Name)[0]
    return one.value == "self" or module.names.bindings(one) == module.names.bindings(other)


def _keeps_gradients(statement: Node, step: StepCall, module: FileFacts) -> bool:
    """Whether a statement certainly computes no gradients, and does not rebind the optimizer's name."""
    tree = module.tree
    return (
        not any(True for _ in module.gradient_writes.within(statement))
        and not tree.within(statement, cst.Yield, cst.Await)
        and not any(
            module.names.is_bound_in(name, statement) for name in tree.within(step.optimizer, cst.Name)[:1]
        )
        and all(_is_known(call, module) for call in tree.within(statement, cst.Call))
    )


def _is_known(call: cst.Call, module: FileFacts) -> bool:
    qualified = module.qualified(call.func)
    if qualified is not None and qualified.startswith(("torch.", "builtins.")):
        return _COMPUTES_GRADIENTS.fullmatch(qualified) is None
    if called_name(call) == "step":  # `step` of an agent or trainer may do anything
        return module.loops.step(call) is not None or "sched" in plain(call.func)
    return called_name(call) in _KEEP_GRADIENTS
