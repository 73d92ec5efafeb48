"""The machine: one program, its state, and what happens while it runs."""

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from ta_lint.dryrun.flow import Flow
from ta_lint.dryrun.machine.frame import Frame, Pass
from ta_lint.dryrun.machine.memo import Memo
from ta_lint.dryrun.state import Changes, State
from ta_lint.dryrun.values import ENDS, Class, Place, Unknown, Value, join
from ta_lint.events.event import Event

MOST_STEPS = 60_000
"""Statements and calls of an entry. More of them is a table of constants, or code that no bound would end."""
ENTRIES = 8
"""All entries of a file have so many times the steps of one."""
MANY = 100
"""How often a pass after the first is taken to run: what happens in it is the rule, what happens in the first alone is not."""
LIGHTER = 4
"""So many steps of a library's program count as one of the user's: the loop of a trainer is long, and the same for all."""
MOST_THROWN = 8
"""Exceptions that are told apart where they are caught."""


MODES = {"recording": True, "autocast": False}
"""Whether autograd records, and whether the precision of an operation is chosen for it, where nothing else is said."""


class Raised(Exception):
    """An exception of the program, on every path from here."""

    def __init__(self, value: Value) -> None:
        super().__init__()
        self.value = value


@dataclass(eq=False, slots=True)
class Catch:
    """Where exceptions arrive that are raised from this moment on, and the state and the exception of each."""

    mark: int
    fits: Callable[[Value], bool | None] = lambda _: False
    """Whether an exception stays here."""
    thrown: list[tuple[Changes, Value]] = field(default_factory=list)
    further: Changes = field(default_factory=dict)
    """The states of all others together."""


class Exhausted(Exception):
    """The entry has used up its steps."""


class Machine:
    """Runs code of one program. What it does is in the modules beside this one, by the kind of syntax."""

    def __init__(self, program: Any, most: int = MOST_STEPS) -> None:
        """`most` are the statements and calls of an entry."""
        self.most = most
        self.program = program
        self.state = State()
        self.events: list[Event] = []
        self.passes: list[Pass] = []
        self.frames: list[Frame] = []
        self.modes: dict[str, Any] = dict(MODES)
        """What holds for all code that runs; None is unknown."""
        self.layers: list[Any] = []
        """The modules whose `forward` runs now, the outermost first."""
        self.doubt = 0
        """How many conditions, of which nobody knows whether they hold, lie between the start of the entry and here."""
        self.steps = 0
        """Statements and calls so far,"""
        self._theirs = 0
        """and those of the programs of libraries."""
        self.limit = most
        """The step at which what runs now is cut off."""
        self.end = ENTRIES * most
        """The step at which all entries of the file are."""
        self.entry: Value | None = None
        """The function that runs on guessed arguments, None while the script itself runs."""
        self.optimizers: list[Any] = []
        """Those that the entry may use,"""
        self.own = 0
        """and the first of them that is its own."""
        self.modules_switched: dict[Any, None] = {}
        """The modules that something has put into a mode."""
        self._alternatives: dict[int, set[int]] = {}
        """Those that were built on other paths than one, so that there is either it or them; all by their ids."""
        self.hooks: list[Value] = []
        """What backward passes call."""
        self.guessed: dict[tuple[Value | None, str], Value] = {}
        """The optimizers that code out of sight has given, by the entry and by what they are called."""
        self.called: set[ast.AST] = set()
        self.alone: set[ast.AST] = set()
        """The expressions that were evaluated for what they do, as nothing takes their value."""
        self.misfits: dict[str, str] = {}
        """The functions of libraries that did not find what they look for in what they get, each with the line that it looks in."""
        self.catches: list[Catch] = []
        """Who catches exceptions, the innermost last."""
        self.heavy: set[ast.AST] = set()
        """The decorators that have taken too many steps."""
        self.checking = False
        """Whether this is for type checkers alone, `if TYPE_CHECKING`: what is imported here need not run."""
        self.outline = False
        """Whether the entry trains nothing: what has run once is not run again then, and what it gives is not known."""
        self.assumed: dict[Any, bool] = {}
        """The conditions that hold on this path."""
        self.memo = Memo(self)
        """What calls have given before."""
        self._borrowed: dict[tuple[int, str], tuple[Class, str, Value | None]] = {}

    def borrow(self, cls: Class, name: str) -> None:
        """The program changes a class of a library, which other programs have as well: until `give_back`."""
        self._borrowed.setdefault((id(cls), name), (cls, name, cls.fields.get(name)))

    def give_back(self) -> None:
        """The classes of libraries are as before, and nothing hangs on backward passes any more."""
        self.hooks.clear()
        for cls, name, value in self._borrowed.values():
            self.memo.patched(name)
            cls.fields.pop(name, None)
            if value is not None:
                cls.fields[name] = value
        self._borrowed.clear()

    # -- what happens ----------------------------------------------------------------------------------

    def emit(self, action: str, node: ast.AST, subject: Value | None = None, **detail: Any) -> Event:
        """Something happens here."""
        event = Event(
            action, self.place(node), subject, self.doubt == 0,
            tuple((one.loop, one.number) for one in self.passes), detail,
            tuple(frame.function for frame in self.frames if frame.function is not None),
            self.entry, self._times(), self._site() is not None, self._is_in_library(),
            waits=next((one.waits for one in reversed(self.passes) if one.waits is not None), None),
        )  # fmt: skip
        self.events.append(event)
        return event

    def break_off(self, error: BaseException) -> None:
        """What runs ends here, before its end: nobody knows what it would have done. A program that ends itself is at its end."""
        if not (isinstance(error, Raised) and getattr(error.value, "why", "") == ENDS):
            self.emit("broken off", ast.Pass())

    def _times(self) -> int:
        """How often what happens now is taken to happen: often where nobody calls the entry, and the oftener the later the pass."""
        later = (min(one.number, 2 if one.settled else 1) for one in self.passes)
        return int(MANY ** sum(later, self.entry is not None))

    def _site(self) -> Place | None:
        """Where the program has called the code of a library that runs now, None if its own code runs."""
        return self.frames[-1].site if self.frames else None

    def _is_in_library(self) -> bool:
        """Whether code of a library runs now, in a loop of its own."""
        site = self._site()
        return site is not None and bool(self.passes) and self.passes[-1].site == site

    def place(self, node: ast.AST) -> Place:
        """Where this code stands; of a stub's code, where the program calls it."""
        if not self.frames:
            return Place("", node)
        frame = self.frames[-1]
        return frame.site or Place(frame.file, node)

    def mode(self, name: str) -> bool | None:
        """Whether a mode is on, None if nobody knows."""
        value = self.modes[name]
        return value if isinstance(value, bool) else None

    @contextmanager
    def switched(self, name: str, value: Any) -> Iterator[None]:
        """What runs here runs with this mode."""
        before = self.modes[name]
        self.state.write(self.modes, name, value)
        yield
        self.state.write(self.modes, name, before)

    def step(self) -> None:
        """One more statement or call.

        Raises:
            Exhausted: there were too many.
        """
        if self._site() is not None:
            self._theirs += 1
            if self._theirs % LIGHTER:
                return
        self.steps += 1
        if self.steps > self.limit:
            raise Exhausted

    def start(self) -> None:
        """An entry begins: with steps of its own, and nothing around it."""
        self.memo.settle()
        self.limit = min(self.steps + self.most, self.end)
        self.doubt, self.layers = 0, []
        self.passes, self.catches, self.assumed = [], [], {}
        for name, value in MODES.items():
            if self.modes[name] is not value:
                self.state.write(self.modes, name, value)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """What runs here, such as a module that is imported, has steps and a state of its own, and no loop or condition around it."""
        self.memo.spoil()
        depth, steps = len(self.frames), self.steps
        now = self.passes, self.doubt, self.limit, self.state, self.outline, self.checking, self.catches
        self.passes, self.doubt, self.limit, self.state = [], 0, self.steps + self.most, State()
        self.outline = self.checking = False
        self.catches, modes = [], dict(self.modes)
        try:
            yield
        except (Raised, Exhausted, RecursionError) as error:
            if not depth:  # of a module that is imported, the further names are not known
                self.break_off(error)
            self.modes.update(modes)  # it may have broken off within `with torch.no_grad():`
        finally:
            del self.frames[depth:]
            self.passes, self.doubt, self.limit, self.state, self.outline, self.checking, self.catches = now
            self.limit += self.steps - steps
            self.end += self.steps - steps

    # -- paths -----------------------------------------------------------------------------------------

    def branch(self, arms: Sequence[Callable[[], Flow]]) -> Flow:
        """Run alternatives, each from this state, and go on from what they leave together."""
        mark, doubt, assumed = self.state.mark, self.doubt, self.assumed
        ends, raised, parted = [], 0, False
        built: list[list[Any]] = []
        for arm in arms:
            known = set(map(id, self.optimizers))
            self.doubt = doubt + 1
            self.assumed = dict(assumed)
            before = len(self.events)
            try:
                flow = arm()
            except Raised as error:
                raised += 1
                parted = parted or any(one.fits(error.value) is not False for one in self.catches)
            else:
                if flow is Flow.ON:
                    ends.append(self.state.changes(mark))
                    parted = parted or self.doubt > doubt + 1
                else:
                    parted = True
                    if self.passes and flow in (Flow.BREAK, Flow.RETURN):
                        self.once(before)
                    self.leave(flow)
            self.state.undo(mark)
            if new := [one for one in self.optimizers if id(one) not in known]:
                built.append(new)
        self.doubt, self.assumed = doubt, assumed
        if len(built) > 1:
            self._note_alternatives(built)
        if raised == len(arms):
            raise Raised(Unknown("an exception"))
        if not ends:
            return Flow.GONE
        self.doubt += parted
        self.state.take(ends)
        return Flow.ON

    def _note_alternatives(self, built: list[list[Any]]) -> None:
        """These were built on different paths."""
        for own in built:
            others = {id(one) for some in built if some is not own for one in some}
            for one in own:
                self._alternatives.setdefault(id(one), set()).update(others)

    def are_alternatives(self, values: Sequence[Value]) -> bool:
        """Whether there is one of these optimizers and none of the others, so that what happens to one of them happens to the one there is."""
        ids = {id(one) for one in values}
        return len(ids) > 1 and all(ids - {one} <= self._alternatives.get(one, set()) for one in ids)

    def once(self, since: int, *, some_pass: bool = False) -> None:
        """What has happened since there were so many events happens in one pass of the loop around it, of which nobody knows which one that
        is in the case of `some_pass`.
        """
        for number in range(since, len(self.events)):
            event = self.events[number]
            self.events[number] = replace(event, times=max(1, event.times // MANY), some_pass=some_pass)

    def every_few(self, waits: Any, arm: Callable[[], Flow]) -> Flow:
        """Run what happens every few passes of the innermost loop, as `conditions.comes_round` says. If it goes on with the next pass, so does what is left of this one."""
        now = self.passes[-1]
        before, now.waits, flow = now.waits, waits, Flow.ON
        try:
            flow = arm()
        finally:
            now.waits = waits if flow is Flow.CONTINUE else before
        return flow

    def leave(self, flow: Flow) -> None:
        """Keep the state of a path that leaves here, for where it arrives."""
        if flow is Flow.RETURN:
            frame = self.frames[-1]
            frame.exits.append(self.state.changes(frame.mark))
        elif not self.passes:
            pass  # outside of a loop: Python would not run it
        elif flow is Flow.BREAK:
            self.passes[-1].breaks.append(self.state.changes(self.passes[-1].start))
        elif flow is Flow.CONTINUE:
            self.passes[-1].continues.append(self.state.changes(self.passes[-1].mark))

    def throw(self, value: Value) -> NoReturn:
        """An exception of the program leaves from here.

        Raises:
            Raised: always.
        """
        self.arrive(value)
        raise Raised(value)

    def arrive(self, value: Value) -> None:
        """An exception of some path arrives at who catches it."""
        self.memo.threw(value)
        if self.catches:
            catch = self.catches[-1]
            if len(catch.thrown) < MOST_THROWN:
                catch.thrown.append((self.state.changes(catch.mark), value))
            else:
                self.state.gather(catch.further, catch.mark)

    def apart(self, run: Callable[[], None]) -> None:
        """Run what happens on a path that does not come back here."""
        mark, doubt = self.state.mark, self.doubt
        self.doubt += 1
        try:
            run()
        except Raised:
            pass
        finally:
            self.state.undo(mark)
            self.doubt = doubt

    def choose(self, arms: Sequence[Callable[[], Value]]) -> Value:
        """The value of one of several expressions, each evaluated from this state.

        Raises:
            Raised: none of them gives a value.
        """
        values: list[Value] = []

        def arm(run: Callable[[], Value]) -> Callable[[], Flow]:
            def evaluated() -> Flow:
                values.append(run())
                return Flow.ON

            return evaluated

        self.branch([arm(run) for run in arms])
        result = values[0] if values else Unknown("nothing is there")
        for value in values[1:]:
            result = join(result, value)
        return result
