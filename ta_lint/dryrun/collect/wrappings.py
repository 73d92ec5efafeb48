"""What is done to models that a wrapper spreads over processes: wrapped again, moved inside the wrapper, called past it."""

import ast
from collections.abc import Iterator

from ta_lint.core.protocol import Action
from ta_lint.core.purposes import is_meant
from ta_lint.dryrun.collect.places import code, position
from ta_lint.dryrun.stubs.torch.modules import held, is_module
from ta_lint.dryrun.stubs.torch.outputs import BACK, USED
from ta_lint.dryrun.stubs.torch.tensors import GRADIENT, ModelCall, Tensor
from ta_lint.dryrun.stubs.torch.wrapping import REPLICATED, WRAPPER
from ta_lint.dryrun.values import Known, Object, Place, Sequence, Value, options
from ta_lint.events.event import Event
from ta_lint.events.wrapping import Bypassed, MovedAfterWrap, Rewrapped

_STEPS = frozenset({"forward", "test_step", "train_step", "training_step", "validation_step"})
"""Methods that a framework, or torch, calls for each batch."""


# -- wrapped again -----------------------------------------------------------------------------------


def rewrapped_of(events: list[Event]) -> list[Rewrapped]:
    """The wrappers that a loop that trains puts around the same model in each pass."""
    wraps = [event for event in events if event.action == "wrap" and not event.by_library]
    training = {loop for event in events if _trains(event) for loop, _ in event.passes}
    found: dict[Place, Rewrapped] = {}
    for index, event in enumerate(wraps):
        loop = next((loop for loop in _repeating(event, wraps[:index]) if loop in training), None)
        step = _step(event)
        if loop is not None or step:
            model = _model(event.place)
            at = None if loop is None else position(loop)
            found.setdefault(
                event.place, Rewrapped(position(event.place), event.detail["how"], model, at, step)
            )
    return [*found.values()]


def _repeating(event: Event, before: list[Event]) -> Iterator[Place]:
    """The loops that came here in the pass before, with the same model, unwrapped or in the wrapper that it got."""
    for one in before:
        if one.place != event.place or one.entry != event.entry:
            continue
        if not event.in_each_pass and not _holds_again(event, one):
            continue
        if not any(map(_inmost(event.subject).__contains__, _inmost(one.subject))):
            continue
        chosen, earlier = event.detail["options"], one.detail["options"]
        if chosen.keys() != earlier.keys() or not all(_is_same(chosen[key], earlier[key]) for key in chosen):
            continue
        for (loop, number), (other, past) in zip(event.passes, one.passes, strict=False):
            if loop != other:
                break
            if number != past:
                if not _unwraps(loop.node, _argument(event.place.node)):
                    yield loop
                break


def _is_same(one: Value, other: Value) -> bool:
    if isinstance(one, Sequence) and isinstance(other, Sequence):
        return len(one.items) == len(other.items) and all(map(_is_same, one.items, other.items))
    return one == other


def _holds_again(event: Event, before: Event) -> bool:
    """Whether the conditions here are those of the pass before, and ask for the same values."""
    return event.path == before.path and len(event.path) == 2 * event.doubt


def _unwraps(loop: ast.AST, model: ast.expr | None) -> bool:
    """Whether a loop takes the model out of its wrapper again."""
    return model is not None and any(
        isinstance(one, ast.Assign)
        and isinstance(one.value, ast.Attribute)
        and one.value.attr == "module"
        and any(ast.dump(target)[:-8] == ast.dump(model)[:-7] for target in one.targets)
        for one in ast.walk(loop)
    )


def _inmost(model: Value) -> list[Object]:
    """The models that a value may be, without their wrappers."""
    found: list[Object] = []
    pending = list(options(model))
    while pending:
        one = pending.pop()
        inner = one.fields.get("module") if isinstance(one, Object) and one.cls.is_a(WRAPPER) else None
        if inner is not None and one not in found:
            pending += [each for each in options(inner) if each is not one]
        elif isinstance(one, Object):
            found.append(one)
    return found


def _step(event: Event) -> str:
    """The method for one step that wraps what its object holds, each time it runs."""
    function = event.functions[-1] if event.functions else None
    name = getattr(getattr(function, "node", None), "name", "")
    given = _argument(event.place.node)
    is_held = (
        isinstance(given, ast.Attribute) and isinstance(given.value, ast.Name) and given.value.id == "self"
    )
    return name if name in _STEPS and is_held and event.certain else ""


def _trains(event: Event) -> bool:
    return event.action == Action.BACKWARD or _is_given_to_training(event)


def _is_given_to_training(event: Event) -> bool:
    by = event.detail.get("by") if event.action == "hand over" else None
    name = by.value if isinstance(by, Known) else None
    return isinstance(name, str) and is_meant("training", name.rpartition(".")[2])


def _model(place: Place) -> str:
    given = _argument(place.node)
    return "the model" if given is None else f"`{code(Place(place.file, given))}`"


def _argument(call: ast.AST) -> ast.expr | None:
    if not isinstance(call, ast.Call):
        return None
    named = (keyword.value for keyword in call.keywords if keyword.arg == "module")
    return call.args[0] if call.args else next(named, None)


# -- moved inside the wrapper ------------------------------------------------------------------------


def moved_after_wrap_of(events: list[Event]) -> list[MovedAfterWrap]:
    """The moves of models in `DistributedDataParallel`, but for those to the device where the model has gone before it was wrapped."""
    wraps: dict[Object, Event] = {}
    placed: set[Object] = set()
    found: dict[Place, MovedAfterWrap] = {}
    pending: list[tuple[Event, Object, Event]] = []
    for event in events:
        if event.action == "wrap" and event.detail["how"] == REPLICATED.name.rpartition(".")[2]:
            wraps[event.detail["wrapper"]] = event
            if not any(map(is_module, options(event.detail["given"]))):  # nobody knows where it is
                placed.update(_inmost(event.subject))
        elif event.action == "move" and not event.by_library:
            wrapper = event.subject
            at = wraps.get(wrapper)
            if at is not None and event.entry != at.entry and not _in_constructor(at):
                continue  # perhaps it comes first
            if at is None:
                placed.update(_inmost(wrapper) if _places(event) else ())
            elif not event.detail["is_layout"] and not (
                _places(event) and any(one in placed for one in _inmost(wrapper))
            ):
                pending.append((event, wrapper, at))
        elif pending:
            for one in [one for one in pending if _learns(event, one[1])]:
                move, _, at = one
                pending.remove(one)
                moved = MovedAfterWrap(position(move.place), move.detail["how"], position(at.place))
                found.setdefault(move.place, moved)
    return [*found.values()]


def _in_constructor(event: Event) -> bool:
    return any(getattr(one.node, "name", "") == "__init__" for one in event.functions)


def _places(move: Event) -> bool:
    """Whether it goes to a device and stays in its dtype."""
    return move.detail["how"] in ("cuda", "to", "xpu") and not move.detail["converts"]


def _learns(event: Event, wrapper: Object) -> bool:
    """Whether a backward pass goes to the parameters of a model, or training code out of sight gets it."""
    if event.action == Action.BACKWARD:
        own = {id(one) for inner in _inmost(wrapper) for one in _parameters(inner)}
        return any(id(root) in own for root in event.detail["roots"] | event.detail["perhaps"])
    return _is_given_to_training(event) and event.subject is wrapper


def _parameters(module: Object) -> Iterator[Tensor]:
    yield from (one for _, one in held(module).parameters)


# -- called past the wrapper -------------------------------------------------------------------------


def bypassed_of(events: list[Event]) -> list[Bypassed]:
    """The forward passes past `DistributedDataParallel` whose gradients nothing reduces."""
    through = {
        event.place for event in events if event.action == Action.FORWARD and _is_wrapper(event.subject)
    }
    wraps = {event.detail["wrapper"]: event for event in events if event.action == "wrap"}
    past = {
        event.detail["call"]: (event, event.detail["wrapper"])
        for event in events
        if event.action == Action.FORWARD and _is_past(event, wraps) and event.place not in through
    }
    found: dict[Place, Bypassed] = {}
    for index, event in enumerate(events if past else ()):
        if event.action != USED or event.detail["how"] != BACK:
            continue
        for output in event.detail["outputs"]:
            if isinstance(output, ModelCall) and output in past:
                forward, wrapper = past[output]
                at, back = wraps[wrapper], events[index + 1]
                if not _holds(at, forward) or not _reaches(back, forward):
                    continue
                if not _is_reduced(events[index + 1 :], forward.subject, wrapper):
                    one = Bypassed(position(forward.place), _called(forward.place), position(at.place))
                    found.setdefault(forward.place, one)
    return [*found.values()]


def _holds(wrap: Event, forward: Event) -> bool:
    """Whether the model is in its wrapper wherever it is called: that was certain, holds here, or the call takes it out of it."""
    if any(wrap.path.get(key, holds) is not holds for key, holds in forward.path.items()):
        return False
    called = getattr(forward.place.node, "func", ast.Pass())
    takes = any(isinstance(one, ast.Attribute) and one.attr == "module" for one in ast.walk(called))
    return wrap.certain or takes or wrap.path.items() <= forward.path.items()


def _reaches(backward: Event, forward: Event) -> bool:
    """Whether the graph of a loss starts where that of an output does; of several values nobody may know where."""
    before = {start for one in forward.detail["given"] for start in one}
    own = set(forward.detail.get("starts", ())) - before
    starts = backward.detail.get("starts")
    return not own or not starts or not own.isdisjoint(starts)


def _is_wrapper(subject: Value) -> bool:
    return isinstance(subject, Object) and subject.cls.is_a(REPLICATED)


def _is_past(event: Event, wraps: dict[Object, Event]) -> bool:
    """Whether the model inside a wrapper runs, and not for the wrapper."""
    wrapper = event.detail["wrapper"]
    wrap = wraps.get(wrapper)
    if wrap is None or not _is_wrapper(wrapper) or event.detail["recording"] is False or event.by_library:
        return False
    is_inside = event.subject in options(wrap.subject)
    return is_inside and all(one is not wrapper for one, _ in event.detail["within"])


def _called(place: Place) -> str:
    node = place.node
    return code(Place(place.file, node.func)) if isinstance(node, ast.Call) else code(place)


def _is_reduced(after: list[Event], model: Object, wrapper: Object) -> bool:
    """Whether the program, or code out of sight, may average the gradients of a backward pass before they are used."""
    own = {id(one) for one in (model, wrapper)}
    for event in after:
        if event.action in (Action.STEP, Action.CLEAR):
            return False
        if event.action == "write" and isinstance(event.subject, Tensor) and event.subject.cls is GRADIENT:
            return True
        if event.action == "hand over" and (id(event.subject) in own or isinstance(event.subject, Tensor)):
            return True
    return False
