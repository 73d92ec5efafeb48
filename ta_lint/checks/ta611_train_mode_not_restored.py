"""TA611: a loop puts its model into evaluation mode and continues training without `train()`."""

import re
from collections.abc import Iterator
from dataclasses import replace

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.core.protocol import Action
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.loops.calls_in_loop import LoopCall, Variable
from ta_lint.facts.loops.loops import Loop
from ta_lint.facts.values.calls import called_name
from ta_lint.file import is_test
from ta_lint.syntax.edits import ProposedFix, insert_line_after, insert_line_before
from ta_lint.syntax.tree import LOOPS, Node, dotted

_Region = Loop | cst.FunctionDef

KEYWORDS = (("eval", "train"),)
AROUND = ("*backward",)

# Functions of other files that probably set the mode of a model that they receive.
_MAY_TRAIN = regex(r"train|freeze|(^|_)(fit|mode|step|epoch|restore)(_|$)", re.IGNORECASE)

# Names of models that training calls but does not train, for files where no optimizer shows which models it trains.
_FIXED = regex(
    r"teacher|ema|target|frozen|pretrain|vgg|clip|ref|percept|lpips|vae|incep|momentum|old", re.IGNORECASE
)


def check(module: FileFacts) -> Iterator[Suspicion]:
    if module.loops.framework is not None or _writes_mode(module, module.tree.root):
        return
    reported: set[Node] = set()
    for loop in (*_loops(module), *_steps(module)):
        events = module.calls_in_loop.events(loop.body)
        if not any(event.action is Action.BACKWARD for event in events):
            continue
        for index, event in enumerate(events):
            if event.action is not Action.EVAL or event.subject is None or event.call in reported:
                continue
            if not module.is_here(event.call):
                continue
            trained = _trained_next(module, loop, events, index, event.subject)
            if trained is not None and not _is_the_same_in_both(module, event):
                reported.add(event.call)
                yield _suspicion(module, loop, event, trained)


def _loops(module: FileFacts) -> Iterator[Loop]:
    """The loops that may run an `eval()` of this file: its own, then those of the files that use it; inner ones first."""
    own = sorted(module.tree.all(*LOOPS), key=module.tree.order, reverse=True)
    yield from own
    evals = [call for call in module.tree.all(cst.Call) if called_name(call) == "eval"]
    for loop in module.calls_in_loop.loops_over(evals):
        if not module.is_here(loop) and not _is_out_of_sight(module, loop):
            yield loop


def _steps(module: FileFacts) -> Iterator[cst.FunctionDef]:
    """The functions that hold a whole step and an `eval()`, and that the project itself does not call."""
    for function in module.tree.all(cst.FunctionDef):
        calls = module.tree.own(function, cst.Call)
        if (
            any(called_name(call) == "eval" for call in calls)
            and any(module.loops.step(call) is not None for call in calls)
            and not module.calls_in_loop.sites(function)
        ):
            yield function


def _is_out_of_sight(module: FileFacts, loop: Loop) -> bool:
    """Whether a loop of another file is in a test, or in code of a framework, or its file sets modes by hand."""
    return (
        is_test(module.parsed(loop).source.path)
        or module.loops.framework_of(loop) is not None
        or _writes_mode(module, module.tree.root_of(loop))
    )


def _is_the_same_in_both(module: FileFacts, event: LoopCall) -> bool:
    """Whether a model certainly has no layer that depends on the mode."""
    assert isinstance(event.call.func, cst.Attribute)
    return module.evaluations.depends_on_mode(event.call.func.value, event.subject) is False


def _suspicion(module: FileFacts, loop: _Region, event: LoopCall, trained: LoopCall) -> Suspicion:
    code = module.code(event.call)
    related: tuple[tuple[Node, str], ...] = ((trained.call, "trains in evaluation mode"),)
    if isinstance(loop, cst.FunctionDef):
        message = (
            f"after `{code}`, `{loop.name.value}` trains this model in evaluation mode: call `train()` first"
        )
    else:
        message = f"`{code}` stays on, so the loop goes on training in evaluation mode: call `train()` again"
        again = ", as do all after the first" if module.tree.before(trained.place, event.place) else ""
        related = ((trained.call, f"this pass trains in evaluation mode{again}"), (loop, "the loop"))
    home = module.tree.home(event.call)
    if event.via and isinstance(home, cst.FunctionDef):
        returns = module.tree.own(home, cst.Return)
        end = returns[-1] if returns else home.body.body[-1]
        related = (*related, (end, f"`{home.name.value}` ends here, with the model in evaluation mode"))
    return Suspicion(event.call, message, related=related, fix=_fix(module, loop, event, trained))


def _trained_next(
    module: FileFacts, loop: _Region, events: list[LoopCall], index: int, model: Variable
) -> LoopCall | None:
    """The backward pass after an `eval()`, in the same iteration or the next, with no `train()` in between."""
    switched = events[index]
    if (
        not _lives_on(module, loop, events, model)
        or _is_at_the_end(module, switched.place, loop)
        or any(_is_other_branch(module, switched, event) for event in events)
        or not _is_trained(module, model)
    ):
        return None
    meant = False
    again = range(index) if not isinstance(loop, cst.FunctionDef) else ()
    for position in [*range(index + 1, len(events)), *again]:
        event: LoopCall = events[position]
        if event.action is Action.EVAL and event.subject == model:
            return None
        if event.action in (Action.TRAIN, Action.MODE) and not module.calls_in_loop.distinct(
            event.subject, model
        ):
            return None
        if event.action is None and _may_set_mode(module, event, model):
            return None
        records = all(module.recording.records(call) is not False for call in (event.call, *event.via))
        if event.action is Action.BACKWARD and records and _goes_through(module, event, model, events):
            if position < index:
                return event
            runs = any(_runs_between(module, use, model, switched, event) for use in events)
            if runs and not meant and _is_apart(module, loop, events, index, position, model):
                return event
            meant = True  # unless the model trains before it as well, and so in both modes
    return None


def _writes_mode(module: FileFacts, root: Node) -> bool:
    """Whether a file sets the mode by hand: `model.training = was_training`."""
    targets = (item.target for item in module.tree.within(root, cst.AssignTarget))
    return any(isinstance(target, cst.Attribute) and target.attr.value == "training" for target in targets)


# -- the model ------------------------------------------------------------------------------------------------


def _is_trained(module: FileFacts, model: Variable) -> bool:
    """Whether an optimizer has the model's parameters, or, if that is unknown, whether its name allows it."""
    optimized = module.calls_in_loop.is_optimized(model)
    fixed = any(isinstance(part, str) and _FIXED.search(part) for part in model)
    return not fixed if optimized is None else optimized


def _lives_on(module: FileFacts, loop: _Region, events: list[LoopCall], model: Variable) -> bool:
    """Whether an iteration starts with the previous iteration's model, in the mode it had."""
    tree, first = module.tree, model[0]
    helpers = {tree.home(event.call) for event in events} - {tree.home(loop)}
    if isinstance(first, cst.ClassDef):
        made = module.classes.attribute(first, str(model[1])) if len(model) > 1 else []
        return not any(
            isinstance(value, cst.Call)
            and module.kinds.handed_on(value) is None
            and (tree.contains(loop, value) or tree.home(value) in helpers)
            for value in made
        )
    if not isinstance(first, Node) or tree.contains(loop, first) or tree.home(first) in helpers:
        return False
    return not any(
        isinstance(assign.value, cst.Call) and module.kinds.handed_on(assign.value) is None
        for assign in tree.within(loop, cst.Assign)
        for item in assign.targets
        if isinstance(item.target, cst.Name) and item.target.value == model[1]
    )


def _goes_through(module: FileFacts, backward: LoopCall, model: Variable, events: list[LoopCall]) -> bool:
    """Whether the model is called and recorded in the function of a backward pass, in one that it calls, or in one that gives
    it the loss."""
    homes = _homes_of_loss(module, backward)
    optimized = [module.calls_in_loop.optimized_by(optimizer) for optimizer in _steppers(module, backward)]
    if optimized and not any(models is None or _has(models, model, module) for models in optimized):
        return False
    return any(
        _uses(event, model)
        and not {module.tree.home(call) for call in (event.call, *event.via)}.isdisjoint(homes)
        and module.recording.records(event.call) is not False
        for event in events
    )


def _steppers(module: FileFacts, backward: LoopCall) -> list[Node]:
    """The optimizers that step in the function of a backward pass: those between it and the next one, else all."""
    tree = module.tree
    calls = tree.own(tree.home(backward.call), cst.Call)
    steps = [step for call in calls if (step := module.loops.step(call)) is not None]
    after = [call for call in calls if called_name(call) == "backward" and tree.before(backward.call, call)]
    own = [
        step
        for step in steps
        if tree.before(backward.call, step.call) and not any(tree.before(call, step.call) for call in after)
    ]
    return [step.optimizer for step in own or steps]


def _homes_of_loss(module: FileFacts, backward: LoopCall) -> list[Node]:
    """The function of a backward pass, and those that give it the loss as an argument."""
    homes = [module.tree.home(backward.call)]
    given: Node = backward.call
    for call in reversed(backward.via):
        names = module.tree.within(given, cst.Name)
        if not any(
            isinstance(module.kinds.origin(name), cst.Param) for name in names if name.value != "self"
        ):
            break
        homes.append(module.tree.home(call))
        given = call
    return homes


def _has(models: list[Variable], model: Variable, module: FileFacts) -> bool:
    return any(found[: len(one)] == one for one in module.calls_in_loop.meanings(model) for found in models)


def _uses(event: LoopCall, model: Variable) -> bool:
    called = event.subject is not None and event.subject[: len(model)] == model
    return event.action is None and (called or model in event.given)


def _runs_between(
    module: FileFacts, use: LoopCall, model: Variable, switched: LoopCall, backward: LoopCall
) -> bool:
    """Whether a model runs with gradients between an `eval()` and a backward pass, or inside the expression of that pass."""
    if not _uses(use, model) or module.recording.records(use.call) is False:
        return False
    if switched.place is backward.place:  # all in one helper
        depth = _shared_depth(switched, backward)
        if use.via[:depth] != switched.via[:depth]:
            return False
        switched, use, backward = (_inside(event, depth) for event in (switched, use, backward))
    depth = _shared_depth(use, backward)  # a helper may make the loss and go back from it
    inner, end = _inside(use, depth).place, _inside(backward, depth).place
    for_it = module.tree.before(inner, end) or module.tree.contains(backward.call, use.call)
    return bool(for_it and module.tree.before(switched.place, use.place))


def _shared_depth(one: LoopCall, other: LoopCall) -> int:
    """Through how many calls both events are reached together."""
    pairs = zip(one.via, other.via, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a is not b), min(len(one.via), len(other.via)))


def _inside(event: LoopCall, depth: int) -> LoopCall:
    """An event as it is seen from the function that so many calls lead to."""
    return replace(event, via=event.via[depth:])


def _may_set_mode(module: FileFacts, event: LoopCall, model: Variable) -> bool:
    """Whether a call outside this file may put the model into training mode."""
    name = called_name(event.call) or ""
    owner = model[:1] if isinstance(model[0], cst.ClassDef) else model
    on_it = event.subject in ((*model, name), (*owner, name))
    return _MAY_TRAIN.search(name) is not None and (on_it or model in event.given)


# -- from `eval()` to the training ----------------------------------------------------------------------------


def _is_at_the_end(module: FileFacts, node: Node, loop: _Region) -> bool:
    """Whether `eval()` runs only in the last iteration: under `if epoch == last:`, or before a `break`."""
    tree = module.tree
    if isinstance(loop, cst.FunctionDef):
        return False
    if module.loops.is_last_pass(node, loop):
        return True
    conditions = [
        above for above in tree.ancestors(node) if isinstance(above, cst.If) and tree.contains(loop, above)
    ]
    return any(
        tree.contains(above.body, node) and _holds_once(module, above.test, loop) for above in conditions
    )


def _holds_once(module: FileFacts, test: Node, loop: _Region) -> bool:
    """Whether a condition holds in one iteration of a loop: `epoch == epochs - 1`, `step % len(loader) == 0` in a pass over it.

    Not `phase == "val"`, nor `step == len(loader) - 1` in the loop over the epochs, each of which has such a step.
    """
    tree = module.tree
    equals = [
        target for target in tree.within(test, cst.ComparisonTarget) if isinstance(target.operator, cst.Equal)
    ]
    if not equals or any(isinstance(target.comparator, cst.SimpleString) for target in equals):
        return False
    if any(_counts_inside(module, name, loop) for name in tree.within(test, cst.Name)):
        return False
    remainders = [
        operation
        for operation in tree.within(test, cst.BinaryOperation)
        if isinstance(operation.operator, cst.Modulo)
    ]
    return all(_is_whole_pass(module, remainder.right, loop) for remainder in remainders)


def _counts_inside(module: FileFacts, name: cst.Name, loop: _Region) -> bool:
    """Whether a name counts the iterations of a loop inside this one, which restarts in each iteration."""
    return any(
        binding.how == "for" and binding.node is not loop and module.tree.contains(loop.body, binding.node)
        for binding in module.names.bindings(name)
    )


def _is_whole_pass(module: FileFacts, modulus: Node, loop: _Region) -> bool:
    """Whether so many steps are as many as a loop has in one pass: `len(loader)`, `len(dataset) // batch_size`."""
    tree = module.tree
    modulus = module.kinds.origin(modulus)
    lengths = [call for call in tree.within(modulus, cst.Call) if called_name(call) == "len"]
    if not lengths or not isinstance(loop, cst.For):
        return False
    if tree.within(modulus, cst.Integer, cst.Float):
        return False  # a part of a pass: len(loader) // 10
    measured = {dotted(arg.value) for call in lengths for arg in call.args}
    over = {dotted(name) for name in tree.within(loop.iter, cst.Name, cst.Attribute)}
    return modulus in lengths or measured.isdisjoint(over)


def _is_other_branch(module: FileFacts, switched: LoopCall, event: LoopCall) -> bool:
    """Whether a condition chooses between `eval()` and another call: `if train: model.train() else: model.eval()`."""
    return (
        event.action in (Action.TRAIN, Action.MODE)
        and not module.calls_in_loop.distinct(event.subject, switched.subject)
        and module.tree.apart(event.call, switched.call)
    )


def _is_for_evaluation(
    module: FileFacts, switched: LoopCall, loop: _Region, model: Variable, events: list[LoopCall]
) -> bool:
    """Whether `eval()` is meant for other code than the training that follows in the same pass.

    It is in a function that does not train, or under a condition together with a call of the model.
    """
    tree = module.tree
    home = tree.home(switched.call)
    if switched.via and not module.loops.backwards(home):
        return True
    condition = next(
        (above for above in tree.ancestors(switched.call) if isinstance(above, (cst.If, cst.Else))), None
    )
    if condition is None or not tree.contains(loop.body, condition):
        return False
    return any(_uses(event, model) and tree.contains(condition.body, event.place) for event in events)


def _is_apart(
    module: FileFacts, loop: _Region, events: list[LoopCall], index: int, position: int, model: Variable
) -> bool:
    """Whether an `eval()` is not meant for the training that comes after it in its own pass."""
    before, between = events[:index], events[index:position]
    return (
        _is_for_evaluation(module, events[index], loop, model, events)
        or _comes_after_training(module, before, between, model)
        or _evaluates_first(module, between, model)
    )


def _evaluates_first(module: FileFacts, between: list[LoopCall], model: Variable) -> bool:
    """Whether a model that an optimizer has runs without gradients, in the function of its `eval()`, before it runs with them."""
    if module.calls_in_loop.is_optimized(model) is not True:
        return False
    first = next((event for event in between if _uses(event, model)), None)
    if first is None or module.recording.records(first.call) is not False:
        return False
    return module.tree.home(first.call) is module.tree.home(between[0].call)


def _comes_after_training(
    module: FileFacts, before: list[LoopCall], between: list[LoopCall], model: Variable
) -> bool:
    """Whether the pass has trained the model in training mode before, and evaluates it between `eval()` and training it again."""
    last = max(
        (i for i, event in enumerate(before) if event.action is Action.TRAIN and event.subject == model),
        default=None,
    )
    if last is None or not any(event.action is Action.BACKWARD for event in before[last:]):
        return False
    return any(_uses(event, model) and module.recording.records(event.call) is False for event in between)


# -- the fix --------------------------------------------------------------------------------------------------


def _fix(module: FileFacts, loop: _Region, switched: LoopCall, trained: LoopCall) -> ProposedFix | None:
    """Insert `train()` at the start of the iteration, or between the evaluation there and the training."""
    tree, call = module.tree, switched.call
    if (
        switched.via
        or not isinstance(call.func, cst.Attribute)
        or not isinstance(loop.body, cst.IndentedBlock)
    ):
        return None
    code = f"{module.verbatim(call.func.value)}.train()"
    if tree.before(trained.place, switched.place):
        return ProposedFix(
            "train in training mode", (insert_line_before(tree, _first(loop.body.body[0]), code),)
        )
    block = tree.block(call)
    if not isinstance(block, cst.IndentedBlock):
        return None
    uses = [
        event.place
        for event in module.calls_in_loop.events(loop.body)
        if switched.subject is not None
        and tree.before(call, event.place)
        and _uses(event, switched.subject)
        and module.recording.records(event.call) is not False
    ]
    trains = next((part for part in block.body if any(tree.contains(part, use) for use in uses)), None)
    beside = (
        insert_line_after(tree, _first(block.body[-1]), code)
        if trains is None
        else insert_line_before(tree, _first(trains), code)
    )
    return ProposedFix("train in training mode", (beside,))


def _first(statement: Node) -> Node:
    """The statement itself if it is compound, else the first of its line."""
    return statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else statement
