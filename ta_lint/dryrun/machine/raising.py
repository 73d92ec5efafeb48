"""Exceptions of the program: who catches one, and what runs on every way out of a block."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ta_lint.dryrun.flow import Flow
from ta_lint.dryrun.machine import library
from ta_lint.dryrun.machine.machine import Catch, Machine, Raised
from ta_lint.dryrun.state import Changes
from ta_lint.dryrun.values import Class, Object, Unknown, Value, options
from ta_lint.dryrun.values import Sequence as Several

Body = Callable[[], Flow]


@dataclass(frozen=True, slots=True)
class Handler:
    """What catches exceptions: their classes, None for all of them, and what it does with one."""

    kinds: Value | None
    run: Callable[[Value], Flow]


def attempt(machine: Machine, body: Body, handlers: Sequence[Handler], *, anywhere: bool) -> Flow:
    """Run a body whose exceptions these handlers get. With `anywhere`, any code of it may raise, so that each of them runs perhaps."""
    catch, flow = _caught(machine, body, handlers)
    arms: list[Body] = []
    caught: set[int] = set()
    for handler in handlers:
        reached = []
        for number, (changes, value) in enumerate(catch.thrown):
            fits = _fits(handler, value)
            if number not in caught and fits is not False:
                reached.append((changes, value))
            if fits:
                caught.add(number)
        if reached or (anywhere and flow is not None):
            arms.append(_arm(machine, catch, handler, reached, here=anywhere and flow is Flow.ON))
    left = [one for number, one in enumerate(catch.thrown) if number not in caught]
    _go_on(machine, catch, left, None)
    if flow is None:
        if not arms:
            raise Raised(Unknown("an exception"))
        return arms[0]() if len(arms) == 1 and not left else machine.branch(arms)
    return machine.branch([lambda: flow, *arms]) if arms else flow


def _arm(
    machine: Machine, catch: Catch, handler: Handler, reached: list[tuple[Changes, Value]], *, here: bool
) -> Body:
    value = reached[0][1] if len(reached) == 1 and not here else Unknown("an exception")

    def handled() -> Flow:
        if reached:
            machine.state.arrive(catch.mark, [changes for changes, _ in reached], here=here)
        return handler.run(value)

    return handled


def _fits(handler: Handler, value: Value) -> bool | None:
    """Whether an exception is of the classes that a handler catches."""
    if handler.kinds is None:
        return True
    if isinstance(value, Class):
        wanted = handler.kinds.items if isinstance(handler.kinds, Several) else options(handler.kinds)
        known = [one for one in wanted if isinstance(one, Class)]
        return True if any(value.is_a(one) for one in known) else None if len(known) < len(wanted) else False
    return library.is_instance(value, handler.kinds) if isinstance(value, Object) else None


def _any(verdicts: Iterable[bool | None]) -> bool | None:
    known = set(verdicts)
    return True if True in known else None if None in known else False


def finish(machine: Machine, body: Body, final: Body) -> Flow:
    """Run a body, and on every way out of it what ends it: at its end, and where it returns, breaks or raises."""
    frame, now = (
        machine.frames[-1] if machine.frames else None,
        machine.passes[-1] if machine.passes else None,
    )
    ways: list[tuple[list[Changes], Callable[[], int]]] = []
    if frame is not None:
        ways.append((frame.exits, lambda: frame.mark))
    if now is not None:
        ways += [(now.breaks, lambda: now.start), (now.continues, lambda: now.mark)]
    before = [len(left) for left, _ in ways]
    catch, flow = _caught(machine, body)
    for (left, mark), count in zip(ways, before, strict=True):
        if len(left) > count:
            new = left[count:]
            del left[count:]

            def again(
                left: list[Changes] = left, mark: Callable[[], int] = mark, new: list[Changes] = new
            ) -> None:
                machine.state.arrive(mark(), new, here=False)
                final()
                left.append(machine.state.changes(mark()))

            machine.apart(again)
    _go_on(machine, catch, catch.thrown, final)
    if flow is None:
        raise Raised(Unknown("an exception"))
    ended = final()
    return flow if ended is Flow.ON else ended


def _caught(machine: Machine, body: Body, handlers: Sequence[Handler] = ()) -> tuple[Catch, Flow | None]:
    """Run a body; returns what was raised in it, and how it ended, None where every path raises."""
    depth = len(machine.frames), len(machine.passes)
    frame = machine.frames[-1] if handlers and machine.frames else None
    catch = Catch(machine.state.mark, frame, lambda value: _any(_fits(one, value) for one in handlers))
    machine.catches.append(catch)
    gathered = machine.state.gathered
    try:
        return catch, body()
    except Raised:
        del machine.frames[depth[0] :], machine.passes[depth[1] :]
        return catch, None
    finally:
        machine.catches.remove(catch)
        machine.state.gathered = min(gathered, catch.mark)
        if catch.further:
            catch.thrown.append((catch.further, Unknown("an exception")))


def _go_on(machine: Machine, catch: Catch, left: list[tuple[Changes, Value]], final: Body | None) -> None:
    """What nobody has caught here goes on to who catches it further out."""
    if left and (final is not None or machine.catches):

        def on() -> None:
            machine.state.arrive(catch.mark, [changes for changes, _ in left], here=False)
            if final is None or final() is Flow.ON:
                machine.throw(left[0][1] if len(left) == 1 else Unknown("an exception"))

        machine.apart(on)
