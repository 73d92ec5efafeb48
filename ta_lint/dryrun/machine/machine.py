"""The machine: one program, its state, and what happens while it runs."""

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, NoReturn

from ta_lint.dryrun.flow import Flow
from ta_lint.dryrun.machine.frame import Frame, Pass
from ta_lint.dryrun.machine.memo import Memo
from ta_lint.dryrun.machine.modes import MODES
from ta_lint.dryrun.state import Changes, State
from ta_lint.dryrun.values import ENDS, Class, Function, Object, Place, Unknown, Value, join
from ta_lint.events.event import Event

MOST_STEPS = 60_000
"""Statements and calls of an entry. More of them is a table of constants, or code that no bound would end."""
ENTRIES = 8
"""All entries of a file have so many times the steps of one."""
MOST_SPARE = 30_000
"""Steps that a script may take for what it imports, at most,"""
SPARE_OF_A_BYTE = 0.5
"""and for a byte of that."""
MANY = 100
"""How often a pass after the first is taken to run: what happens in it is the rule, what happens in the first alone is not."""
LIGHTER = 4
"""So many steps of a library's program count as one of the user's: the loop of a trainer is long, and the same for all."""
MOST_THROWN = 8
"""Exceptions that are told apart where they are caught."""


class Raised(Exception):
    """An exception of the program, on every path from here."""

    def __init__(self, value: Value) -> None:
        super().__init__()
        self.value = value


@dataclass(eq=False, slots=True)
class Catch:
    """Where exceptions arrive that are raised from this moment on, and the state and the exception of each."""

    mark: int
    frame: "Frame | None" = None
    """Where it stands."""
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
        self.guesses: list[tuple[frozenset[Function], int, int]] = []
        """What runs on guessed arguments, as the script does not call all of these functions: the events from the first to the last."""
        self.trained = 0
        """The first event of functions that train nothing."""
        self.passes: list[Pass] = []
        self.frames: list[Frame] = []
        self.modes: dict[str, Any] = dict(MODES)
        """What holds for all code that runs; None is unknown."""
        self.set_by_script: dict[str, Any] = {}
        """What else holds where an entry begins: what the script has switched off may be on where its functions are called."""
        self.layers: list[Any] = []
        """The modules whose `forward` runs now, the outermost first,"""
        self.around_layers = 0
        """and how many loops are around the outermost."""
        self.extended = set[Any]()
        """The classes that others derive from, which perhaps nobody makes objects of."""
        self.guessing = False
        """Whether an object is made that no code here makes, of guessed arguments."""
        self.draws = 0
        """How many calls of `next` go on."""
        self.goes_on = 0
        """How many generators run on that have given an element before."""
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
        self.passes_run = 0
        """Passes of loops so far."""
        self._spare = 0
        """Steps that a script may take more, as it runs what it imports;"""
        self._has_more = False
        self._may_go_on: Callable[[], bool] = _never
        """whether it takes them, and whether what runs now may."""
        self.entry: Value | None = None
        """The function that runs on guessed arguments, None while the script itself runs."""
        self.optimizers: list[Any] = []
        """Those that the entry may use,"""
        self.own = 0
        """and the first of them that is its own."""
        self.modules_switched: dict[Any, None] = {}
        """The modules that something has put into a mode."""
        self.modules_built: list[Any] = []
        """All modules, in order, which keeps them alive and their ids apart."""
        self._arms: dict[int, dict[int, int]] = {}
        """By the id of an optimizer or a module: the branches that build one on several paths, by their numbers, with the path that built it."""
        self._parted = 0
        """How many branches have built some on several paths."""
        self.hooks: list[tuple[Value, Value, Place]] = []
        """What backward passes call, for the gradient of which tensor, and where the program says so."""
        self.guessed: dict[tuple[Value | None, str], Value] = {}
        """The optimizers that code out of sight has given, by the entry and by what they are called."""
        self.asked: dict[tuple[ast.AST, str], frozenset[str]] = {}
        """What the variables of functions and scripts are asked for."""
        self.instances: dict[Class, Object] = {}
        """Of classes of the program, an object that it certainly makes,"""
        self.ready: dict[Class, Object] = {}
        """and one that has got a module whose mode something has set."""
        self.missing: dict[tuple[Object, str], Unknown] = {}
        """The attributes of objects that were asked for and that nobody knows."""
        self.called: set[ast.AST] = set()
        self.unrecorded: set[Function] = set()
        """The functions that are called where gradients are not recorded, or perhaps not."""
        self.alone: set[ast.AST] = set()
        """The expressions that were evaluated for what they do, as nothing takes their value."""
        self.followed: set[Value] = set()
        """What nobody knows, and the program has taken the state of."""
        self.accelerates = False
        """Whether anything has gone to a device that is perhaps an accelerator."""
        self.misfits: dict[str, str] = {}
        """The functions of libraries that did not find what they look for in what they get, each with the line that it looks in."""
        self.catches: list[Catch] = []
        """Who catches exceptions, the innermost last."""
        self.heavy: set[ast.AST] = set()
        """The decorators that have taken too many steps."""
        self.registering: dict[ast.AST, int] = {}
        """The steps of each decorator that has given back what it got."""
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
            action, self.place(node), subject, self.doubt,
            tuple((one.loop, one.number) for one in self.passes), detail,
            self._called(),
            self.entry, self._times(), self.by_library, self._is_in_library(), path=self.assumed,
            waits=next((one.waits for one in reversed(self.passes) if one.waits is not None), None),
            in_each_pass=bool(self.passes) and self.doubt == self.passes[-1].doubt,
        )  # fmt: skip
        self.events.append(event)
        return event

    def _called(self) -> tuple[Any, ...]:
        """The functions that were called to come here; not a generator, whose elements a loop goes over."""
        inner = self.frames.index(self.frames[-1]) + 1 if self.frames else 0
        return tuple(frame.function for frame in self.frames[:inner] if frame.function is not None)

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

    @property
    def by_library(self) -> bool:
        """Whether code of a library runs now, of which a program in `stubs/programs` tells what happens to the graph, and nothing else."""
        return self._site() is not None

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

    def given_at(self, node: ast.AST, passes_on: Callable[[Frame], bool]) -> Place:
        """Where a value is given that this code uses: the call of the functions that only pass it on, which `passes_on` tells of their frames."""
        place = self.place(node)
        for frame in reversed(self.frames):
            if frame.call is None or not passes_on(frame):
                break
            place = frame.call
        return place

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

    @property
    def is_late(self) -> bool:
        """Whether the entry has used up half of its steps: what has run before is not looked into any more."""
        return self._has_more or self.limit - self.steps < self.most // 2

    def step(self) -> None:
        """One more statement or call.

        Raises:
            Exhausted: there were too many.
        """
        if self.by_library:
            self._theirs += 1
            if self._theirs % LIGHTER:
                return
        self.steps += 1
        if self.steps > self.limit:
            if not self._spare or not self._may_go_on():
                raise Exhausted
            self.limit, self._spare, self._has_more = self.limit + self._spare, 0, True

    def allow_for(self, size: int) -> None:
        """Let the script take more steps, as it imports a module of so many bytes."""
        self._spare = min(self._spare + int(SPARE_OF_A_BYTE * size), MOST_SPARE)

    def start(self) -> None:
        """An entry begins: with steps of its own, and nothing around it."""
        self.memo.settle()
        self.limit = min(self.steps + self.most, self.end)
        self.doubt, self.layers = 0, []
        self.passes, self.catches, self.assumed = [], [], {}
        for name, value in (MODES | self.set_by_script).items():
            if self.modes[name] is not value:
                self.state.write(self.modes, name, value)

    @contextmanager
    def aside(
        self, most: int | None = None, *, may_go_on: Callable[[], bool] | None = None
    ) -> Iterator[None]:
        """What runs here, such as a module that is imported, has steps and a state of its own, and no loop or condition around it. It takes at
        most so many steps, and goes no further, unless it `may_go_on`, as a script does for what it imports.
        """
        self.memo.spoil()
        outer, self._may_go_on = self._may_go_on, may_go_on or _never
        depth, steps = len(self.frames), self.steps
        now = self.passes, self.doubt, self.limit, self.state, self.outline, self.checking, self.catches
        self.passes, self.doubt, self.state = [], 0, State()
        self.limit = self.steps + (self.most if most is None else min(most, self.most))
        self.outline = self.checking = False
        self.catches, modes = [], dict(self.modes)
        try:
            yield
        except (Raised, Exhausted, RecursionError) as error:
            if not depth:  # of what is imported, the further names are not known
                self.break_off(error)
            self.modes.update(modes)  # it may have broken off within `with torch.no_grad():`
        finally:
            self._may_go_on, self._has_more = outer, outer is not _never and self._has_more
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
            known, modules = set(map(id, self.optimizers)), len(self.modules_built)
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
                        self.once(before, leaves=self._left(flow))
                    self.leave(flow)
            self.state.undo(mark)
            new = [one for one in self.optimizers if id(one) not in known] + self.modules_built[modules:]
            if new:
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
        self._parted += 1
        for arm, own in enumerate(built):
            for one in own:
                self._arms.setdefault(id(one), {})[self._parted] = arm

    def are_alternatives(self, values: Sequence[Value]) -> bool:
        """Whether there is one of these optimizers or modules and none of the others, so that what happens to one of them happens to the one
        there is.
        """
        arms = [self._arms.get(one, {}) for one in {id(each) for each in values}]
        return len(arms) > 1 and all(
            any(first[branch] != second.get(branch, first[branch]) for branch in first)
            for first, second in combinations(arms, 2)
        )

    def _left(self, flow: Flow) -> int:
        """How many loops end here: those of the function that is left."""
        return 1 if flow is Flow.BREAK else sum(one.frame is self.frames[-1] for one in self.passes)

    def once(self, since: int, *, some_pass: bool = False, leaves: int = 0) -> None:
        """What has happened since there were so many events happens in one pass of the loop around it, of which nobody knows which one that
        is in the case of `some_pass`; so many loops `leaves` it.
        """
        for number in range(since, len(self.events)):
            event = self.events[number]
            self.events[number] = replace(
                event,
                times=max(1, event.times // MANY),
                some_pass=some_pass,
                leaves=max(event.leaves, leaves),
            )

    def ends(self, now: Pass) -> None:
        """A loop certainly ends in this pass of it: what has happened in it leaves it."""
        depth = len(self.passes)
        for number in range(now.events, len(self.events)):
            event = self.events[number]
            if event.leaves == len(event.passes) - depth:
                self.events[number] = replace(event, leaves=event.leaves + 1)

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

    def expects(self, error: Value) -> bool:
        """Whether the function that runs has code around this for such an exception."""
        return any(one.frame is self.frames[-1] and one.fits(error) is not False for one in self.catches)

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
        happened: list[list[Event]] = []
        start = len(self.events)

        def arm(run: Callable[[], Value]) -> Callable[[], Flow]:
            def evaluated() -> Flow:
                before = len(self.events)
                values.append(run())
                happened.append(self.events[before:])
                return Flow.ON

            return evaluated

        self.branch([arm(run) for run in arms])
        if len(happened) == len(arms) > 1 and all(map(_are_alike, happened, happened[1:])):
            self.events[start:] = [
                replace(one, doubt=one.doubt - 1, path=self.assumed) for one in happened[0]
            ]  # it happens on every path
        result = values[0] if values else Unknown("nothing is there")
        for value in values[1:]:
            result = join(result, value)
        return result


def _never() -> bool:
    return False


def _are_alike(some: Sequence[Event], others: Sequence[Event]) -> bool:
    """Whether the same happens to the same objects."""
    return len(some) == len(others) and all(
        (one.action, one.place, one.subject, one.doubt)
        == (other.action, other.place, other.subject, other.doubt)
        for one, other in zip(some, others, strict=True)
    )
