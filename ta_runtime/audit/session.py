"""A session: watches the steps of a run, asks the checks, and keeps the incidents.

The main path is `stepped`: a step has ended, its numbers are on their way, and those of an earlier one are here.
Whatever goes wrong in here stays in here; the run goes on as it would have.
"""

import sys
import time
import weakref
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial, wraps
from inspect import getattr_static
from typing import Any

import torch
from torch import Tensor, nn

from ta_lint.core.errors import oneline
from ta_runtime import checks, ranks
from ta_runtime.audit.schedule import (
    EARLY,
    OF_RANKS,
    RECORDED,
    Budget,
    Comparable,
    Look,
    Looked,
    Period,
    StepSchedule,
)
from ta_runtime.coverage import ENOUGH, Coverage
from ta_runtime.facts import Machine, Model, Run, Said, Step, Suspicion, Told, Update
from ta_runtime.facts.asked import asked
from ta_runtime.facts.history import History
from ta_runtime.faults import is_users, keep
from ta_runtime.incidents import Incident, Incidents
from ta_runtime.measure.devices import accelerator
from ta_runtime.naming import Names
from ta_runtime.observers import observers
from ta_runtime.observers.backwards import Backwards
from ta_runtime.observers.forwards import Forwards
from ta_runtime.observers.loaders import LoaderObserver
from ta_runtime.observers.observer import Observer
from ta_runtime.observers.optimizers import Optimizers
from ta_runtime.observers.tokenizers import Tokenizers
from ta_runtime.observers.window import Window
from ta_runtime.probes import construction, hub, steps, threads
from ta_runtime.probes.compile import Compilers
from ta_runtime.probes.guard import FaultBarrier
from ta_runtime.probes.places import NOWHERE, Place, Scope, is_library, scope_of, scopes
from ta_runtime.probes.registers import BUILT, Register
from ta_runtime.probes.sources import of_class
from ta_runtime.probes.steps import EndOfStep
from ta_runtime.probes.undo import Undo, remove_waiting
from ta_runtime.settings import Settings

_ARMED = 2
"""Steps that are audited after a new incident, to see it from close up."""
_IN_FLIGHT = 4
"""Steps whose numbers may be on their way at once; of more, the newest is not looked at."""
_THOROUGH = 4
"""The first audits, and of those after them each so-manieth, also look at what hardly changes from one to the next."""
_OFTEN = 32
"""Of so many audits every other looks at the structure of the model, later those that are a power of two."""
_LONGEST = 256
"""Steps in a row that are but counted: then what the loop does is looked at again."""
_AWAKE = 3
"""Steps in a row, at least, that are told of, the first of them from its middle on."""
_OF_CONTENTS = {"TA308", "TA313", "TA314", "TA320", "TA856"}
"""The rules for which batches are hashed."""
_MOST_SCOPES = 256
"""Functions and classes of the user's that are remembered to have taken part in steps."""
_PATIENCE = 3
"""How often an observer may raise before the session lets go of the run."""


class AuditFailed(Exception):
    """A finding at or above `fail_level`: raised out of `optimizer.step()`, after the step."""


class Session:
    """Watches every optimizer of the process, or those that are given. Not thread-safe: steps run in one thread."""

    def __init__(
        self,
        settings: Settings,
        *,
        models: Iterable[nn.Module] = (),
        optimizers: Iterable[torch.optim.Optimizer] | None = None,
        on_incidents: Callable[[list[Incident]], object] = lambda incidents: None,
        on_judged: Callable[[Window], object] = lambda window: None,
        on_logged: Callable[[Mapping[str, float]], object] = lambda values: None,
    ) -> None:
        self.settings = settings
        self.names = Names()
        self.history = History()
        self.incidents = Incidents()
        self._machine = machine()
        self.not_seen: dict[str, int] = {}
        """What the session could not look at, and how often; see `hidden` for all of it."""
        self._stepped = 0
        """Optimizer steps so far, of all optimizers together, without those of a nap that goes on."""
        self.looked: Counter[Look] = Counter()
        """How closely the steps so far were looked at."""
        self.looks = Looked()
        """Which steps these were."""
        self._on_incidents, self._on_judged, self._on_logged = on_incidents, on_judged, on_logged
        self._only = None if optimizers is None else {id(optimizer): optimizer for optimizer in optimizers}
        enabled, asked = checks.enabled(settings.rules), checks.enabled(settings.asked)
        self._checks = {
            fact: [check for check in (asked if fact in checks.ASKED else enabled) if check.fact == fact]
            for fact in checks.FACTS
        }
        self._on_trial: dict[tuple[str, Hashable], Suspicion] | None = None
        """By rule and identity, what each audited step of a trial showed; None before the first."""
        self._may_infer = self._only is None
        kept = settings.record is not None or settings.send
        self._looks = kept or any(check.fact != "violation" for check in enabled)
        """Whether more is asked for than invariants, which a tracer sees to by itself."""
        self._steps_elsewhere = threads.steps_elsewhere()  # before it started
        self._off: set[str] = set()
        self._failures: dict[str, int] = {}
        self._failure: AuditFailed | None = None  # to be raised when a step is over
        self._undo = Undo()
        self._judged: Register[bool] = Register()  # models and optimizers
        self._optimizers_seen = 0  # that stepped
        self._data_parallel = False
        self._took_part: dict[Scope, None] = {}  # the user's functions and classes, in audited steps
        self._end_of_step = EndOfStep(self._first_optimizers)
        self._armed = 0
        self._asks_soon = False
        self._audits = 0
        self._schedule = _scheduled(settings)
        self._own = 0.0  # seconds of the barrier up to the step before
        self._awake = 0  # steps that were told of since the last nap
        self._listening = Undo()  # to what a loop does in each step
        self._nap = Undo()
        self._napping: tuple[int, float] | None = (
            None  # how many steps had run when it began, and when that was
        )
        self._pending: deque[Window] = deque()
        self._last_looked = -1  # the last step whose numbers were asked for
        self.barrier = FaultBarrier(self._raised, looks_at_captures=True)
        self.compilers = Compilers(self._compiles)
        self._settle = self.barrier(self._judge_arrived)  # when a model is built: the one before may be gone
        self.optimizers = Optimizers(self)
        self.forwards = Forwards(self)
        self.backwards = Backwards(self)
        self.loaders = LoaderObserver(self)
        self.tokenizers = Tokenizers()
        self.observers = [observer(self) for observer in observers()] if self._looks else []
        self._listeners = {
            event: [
                getattr(observer, event)
                for observer in self.observers
                if getattr(type(observer), event) is not method
            ]
            for event, method in vars(Observer).items()
            if not event.startswith("_") and callable(method)
        }
        self.wants_digests = not settings.rules.isdisjoint(_OF_CONTENTS)
        self.wants_filters = "TA405" in settings.rules
        self.incidents.first = settings.start_step
        self.window = self._next_window(settings.start_step)
        for model in models:
            self.names.add(model)

    # -- from the start to the end ----------------------------------------------------------------------------

    def start(self) -> None:
        """Attach to torch."""
        assert not self.started
        self.barrier.on = True
        self._steps_elsewhere = threads.steps_elsewhere()
        self.window.began = None  # a training that ended before
        undo = self._undo
        looking = (self.backwards, self.loaders) if self._looks else ()
        self._own = self.barrier.seconds
        try:
            undo.append(partial(construction.detach, self._settle))
            construction.attach(self._settle)
            undo += [hub.subscribe(self.optimizers, self.barrier.run, hub.REST), self._judge_the_rest]
            undo += [self.compilers.lift, hub.subscribe(self.compilers, self.barrier.run), self._listening]
            for part in (*looking, *self.observers):
                undo.append(part.detach)
                undo.append(hub.subscribe(part, self._run_guarded, hub.REST))
            self._listen()
            for observer in self.observers:
                observer.attach()
            undo.append(self.forwards.detach)
            self._follow_window()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Let go of torch, and judge what is still on its way. The incidents stay."""
        self._wake()
        self.barrier.on = False
        self._undo()
        remove_waiting()

    def _judge_the_rest(self) -> None:
        optimizers = construction.optimizers()
        self._may_infer = self.infers
        self.flush()
        for optimizer in optimizers:
            if self.watches(optimizer) and optimizer not in self._judged:  # it never stepped
                self._judge_optimizer(optimizer)

    def conclude(self, rank: int = 0, peers: Mapping[int, Told] | None = None) -> Told:
        """Judge the run as a whole, with what other ranks told; returns what this one tells."""
        run = self._run(over=True, rank=rank, peers=peers or {})
        step = max(self.index - 1, 0)
        self._open([*self._asked("progress", run), *self._asked("run", run)], step)
        if self._on_trial and self.step_count <= ENOUGH:
            notes: list[tuple[str, Said]] = [
                (rule, replace(one, is_note=True)) for (rule, _), one in self._on_trial.items()
            ]
            self._open(notes, step)
        return run.told

    def flush(self) -> None:
        """Judge everything that was noted, waiting for its numbers; also of a step that did not end."""
        self._wake()
        if not self.window.empty:
            if self.window.step is not None:
                self.window.step.complete = False
            self.window.readings.send()
            self._pending.append(self.window)
            self.window = Window(self.window.index, None, reads=self.window.reads)
        while self._pending:
            self.barrier.tried(self._judge, self._pending.popleft())

    # -- asked by the observers -------------------------------------------------------------------------------

    @property
    def started(self) -> bool:
        return self.barrier.on

    @property
    def hidden(self) -> dict[str, int]:
        """What the run hid, and how often."""
        hidden = dict(self.not_seen)
        if elsewhere := threads.steps_elsewhere() - self._steps_elsewhere:
            hidden["optimizer steps in other threads than the first"] = elsewhere
        if threads.are_shared():
            hidden["anything once two threads stepped the same parameters"] = 1
        return hidden

    @property
    def paused(self) -> bool:
        """Whether what happens now is no part of the run."""
        return self.barrier.paused

    @paused.setter
    def paused(self, paused: bool) -> None:
        self._wake()
        self.barrier.paused = paused

    @property
    def machine(self) -> Machine:
        """The hardware, as far as it can be known by now."""
        if self._machine.accelerator == "cuda" and self._machine.capability is None:
            self._machine = machine()
        return self._machine

    @property
    def device_idle(self) -> bool | None:
        """Whether the device has finished the step before, asked without waiting; None if that step was not looked at."""
        before = self.window.index - 1
        if self._napping or self._last_looked != before:
            return None
        return all(window.readings.arrived for window in self._pending if window.index == before)

    @property
    def runs_compiled(self) -> bool:
        """Whether compiled code runs on audited steps too: hooks and wrappers would become part of it."""
        return self.settings.compiled != "eager" and self.compilers.used

    @property
    def infers(self) -> bool:
        """Whether no optimizer was ever built: its forward passes are then all that the program does."""
        self._may_infer = self._may_infer and not self.step_count and not construction.has_optimizer()
        return self._may_infer

    def watches(self, optimizer: torch.optim.Optimizer) -> bool:
        return self._only is None or id(optimizer) in self._only

    def looks_at(self, window: Window) -> bool:
        """Whether the gradients of a window are read."""
        return window.step is not None or window.reads

    def model(self, module: nn.Module, caller: Place) -> Model:
        """The facts of a model that is called, or given."""
        self.names.add(module)
        place = BUILT.get(module) or of_class(type(module))
        if place is None:  # built before the session, or a copy
            place = caller
            BUILT.add(module, caller)
        return Model(module, place, self.names, self.machine)

    def guarded(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """An observer's method that can neither stop nor slow the run: what it raises is a finding, TA000."""

        @wraps(method)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            return self._run_guarded(method, *args, **kwargs)

        return guarded

    def _run_guarded(self, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        result = self.barrier.run(method, *args, **kwargs)
        if self._napping is not None and threads.is_watched() and not self._settled:
            self._wake()
        return result

    def window_for(self, optimizer: torch.optim.Optimizer) -> Window:
        """The window in which an optimizer steps now: a new one if it has stepped in the current one already."""
        if self._end_of_step.is_before(optimizer):
            over = self.window
            self._close()
            self.window.take_over(over)
        return self.window

    def tell(self, event: str, *args: object) -> None:
        """Call the method named as the event of every observer that has its own."""
        for method in self._listeners[event]:
            try:
                method(*args)
            except Exception as error:  # noqa: BLE001 - as behind the barrier, without a call for each
                keep(error)
                self._raised(method.__qualname__, error)

    def stepped(self, optimizer: torch.optim.Optimizer) -> None:
        """An optimizer has stepped; with the last of those in use, the step of the run is over."""
        self._stepped += 1
        self.tell("after_step", optimizer, self.window)
        self.loaders.stepped()
        if optimizer not in self._judged:
            self._judge_optimizer(optimizer)
            if self._optimizers_seen and self._optimizers_seen & (self._optimizers_seen - 1) == 0:
                self.begins_phase()  # another model, or some of its layers
            self._optimizers_seen += 1
        self.window.stepped = True
        if self.window.step is not None:
            self.window.step.scopes.update(scopes())
        if self._end_of_step.is_with(optimizer):
            self._close()
        self._progress()

    def trains_by_hand(self, passes: int) -> None:
        """Parameters have changed without an optimizer: so many backward passes before this one were steps, looked at as one."""
        self._stepped += passes
        self.looked[Look.COUNT] += passes
        self.incidents.steps += passes
        self.window.index += passes
        if self.window.step is not None:
            self.window.step.index = self.window.index
        self._miss("what only an optimizer shows, as the parameters are updated by hand")

    def stepped_by_hand(
        self, stand_in: torch.optim.Optimizer, place: Place, gradients: Sequence[Tensor | None] | None
    ) -> None:
        """A backward pass ends a step of a training without an optimizer, for which one stands in."""
        self.optimizers.stepped_by_hand(stand_in, place, gradients, self.window)
        self._stepped += 1
        self.loaders.stepped()
        self.window.stepped = True
        self._close()
        self._progress()

    def _progress(self) -> None:
        """Ask about the run so far where it is time to, and raise what is to stop it."""
        if self._asks_soon or (self.step_count > 1 and self.step_count & (self.step_count - 1) == 0):
            self._asks_soon = False
            self._open(list(self._asked("progress", self._run(over=False))), self.window.index)
        self._fail()

    def ask_soon(self) -> None:
        """Ask about the run after this step, and not only after the next of the steps 2, 4, 8 and so on."""
        self._asks_soon = True

    def logs(self, values: Mapping[str, float]) -> None:
        """The run has logged these values by one of its trackers."""
        self._on_logged(values)

    def skipped(self, optimizer: torch.optim.Optimizer) -> None:
        """A GradScaler found an overflow and left the optimizer alone."""
        self._wake()
        if self.watches(optimizer):
            self.tell("skipped", optimizer)
            self.window.forget()
            self.window_for(optimizer)
            if self._end_of_step.is_with(optimizer):
                self._close()
            self._fail()

    def _first_optimizers(self) -> list[torch.optim.Optimizer]:
        return [optimizer for optimizer in construction.optimizers() if self.watches(optimizer)]

    def _run(self, *, over: bool, rank: int = 0, peers: Mapping[int, Told] | None = None) -> Run:
        run = Run(
            steps=self.step_count,
            machine=self.machine,
            loaders=self.loaders.found,
            history=self.history,
            rank=rank,
            over=over,
        )
        run.peers = dict(peers or {})
        run.infers = self.infers
        run.data_parallel = self._data_parallel
        run.told.batches = [loader.digests for loader in run.loaders]
        run.told.orders = [[each.shuffled_by for each in loader.passes] for loader in run.loaders]
        self.loaders.report(run)
        self.tell("report", run)
        return run

    # -- steps ------------------------------------------------------------------------------------------------

    def _close(self) -> None:
        """The step is over: send its numbers off, judge those that have arrived, and begin the next."""
        window = self.window
        window.ended = time.perf_counter()
        self._end_of_step.turn()
        self._tell_schedule(window)
        if not window.empty:
            if len(self._pending) < _IN_FLIGHT:
                window.readings.send()
                self._pending.append(window)
                self._last_looked = window.index
            else:
                self._miss("steps whose numbers had not arrived four steps later")
        self.window = self._next_window(window.index + 1)
        self.window.began = window.ended
        self._follow_window()
        # what is not on a device is judged at once, so that nothing of the run is kept until the next step
        self._judge_arrived(but=None if window.readings.on_host else window)
        self._doze()

    def _judge_arrived(self, but: Window | None = None) -> None:
        while self._pending and self._pending[0] is not but and self._pending[0].readings.arrived:
            self._judge(self._pending.popleft())

    def _next_window(self, index: int) -> Window:
        look = self._schedule.look(index) if self._looks else Look.COUNT
        armed = self._armed > 0 and self._looks
        audited = armed or look is Look.FULL
        self._armed = max(self._armed - 1, 0)
        step = self._audited_step(index, closer=armed) if audited else None
        return Window(index, step, reads=look >= Look.GRADIENTS)

    def _audited_step(self, index: int, *, closer: bool) -> Step:
        number, self._audits = self._audits, self._audits + 1
        closer |= bool(self.optimizers.closer) or self.history.is_waiting
        first = number < _THOROUGH
        self.history.is_waiting = False
        return Step(
            index,
            NOWHERE,
            self.machine,
            history=self.history,
            thorough=closer or first or number % _THOROUGH == 0,
            structural=closer or first or number & (number - 1) == 0 or (number < _OFTEN and number % 2 == 0),
        )

    def _tell_schedule(self, window: Window) -> None:
        """What became of a step, and what it cost."""
        read = Look.GRADIENTS if window.reads else Look.COUNT
        look = read if window.step is None else Look.FULL
        self.looked[look] += 1
        self.looks.add(window.index, look)
        self.incidents.steps += 1
        self._awake += 1
        own = self.barrier.seconds
        self._schedule.over(window.index, look, window.seconds, own - self._own)
        self._own = own
        if isinstance(self._schedule, Budget) and ranks.world_size() > 1:
            self._schedule = _comparable(self.settings, OF_RANKS)

    # -- steps that are but counted ---------------------------------------------------------------------------

    def _listen(self) -> None:
        """Be told of what a loop does in each step."""
        self._listening.append(hub.subscribe(self.optimizers, self.barrier.run, hub.LOOP))
        for part in (self.backwards, *self.observers) if self._looks else ():
            self._listening.append(hub.subscribe(part, self.barrier.run, hub.LOOP))

    @property
    def step_count(self) -> int:
        """Optimizer steps so far, of all optimizers together."""
        return self._stepped + self.slept

    @property
    def slept(self) -> int:
        """Steps of the nap that goes on, in which they are but counted."""
        return steps.count() - self._napping[0] if self._napping is not None else 0

    @property
    def index(self) -> int:
        """The number of the step that runs, or is to begin."""
        return self.window.index + self.slept

    @property
    def coverage(self) -> Coverage:
        """How much of the run was looked at so far."""
        looks = self.looked[Look.FULL] + self.looked[Look.GRADIENTS]
        found = {incident.rule for incident in self.incidents}
        every = [check for asked in self._checks.values() for check in asked if check.rule not in found]
        rules = {check.rule for check in every if check.least > looks} if self.step_count else set()
        return Coverage(self.index - self.settings.start_step, self.looked[Look.FULL], tuple(sorted(rules)))

    @property
    def _settled(self) -> bool:
        """Whether the observers can do without being told of what a loop does."""
        return self.loaders.settled and all(observer.settled for observer in self.observers)

    def _doze(self) -> None:
        """But count the steps up to the one before the next that is looked at, if nothing speaks against it."""
        window, done, alone = self.window, self._stepped, self._end_of_step.alone
        if self._awake < _AWAKE or done < EARLY or alone is None or not (self._looks and self.started):
            return
        due = self._schedule.following(window.index) - window.index - 1
        most = min(due, (1 << done.bit_length()) - done - 1, _LONGEST)
        busy = window.step is not None or window.reads or self._armed or self._asks_soon or self._pending
        if most < 2 or busy or self.compilers.used or not self._settled:
            return
        self.tell("loses_track")
        began = steps.count()
        self._nap.append(steps.sleep(steps.Rest(weakref.ref(alone), began + int(most), self._woken)))
        self._napping = began, window.began or time.perf_counter()
        self._listening()

    def _woken(self) -> None:
        self.barrier.tried(self._wake)

    def _wake(self) -> None:
        """Be told again of what the loop does, from the middle of the step that runs."""
        if self._napping is None:
            return
        slept, (_, began) = self.slept, self._napping
        self._napping, self._awake = None, 0
        self._listen()
        self._nap()
        self._stepped += slept
        self.looked[Look.COUNT] += slept
        self.incidents.steps += slept
        self._schedule.counted(slept, time.perf_counter() - began)
        self._own = self.barrier.seconds
        self.window = Window(self.window.index + slept, None)
        if (alone := self._end_of_step.alone) is not None:
            self.tell("counted", alone, slept)

    # -- what an audited step needs ---------------------------------------------------------------------------

    def _follow_window(self) -> None:
        """Attach what an audited step needs, or let go of it."""
        eager = self.settings.compiled == "eager"
        over = not self.started  # a callback may have ended the session in the middle of a step
        if not over:
            self.tell("begin", self.window)
        if self.window.step is None or over:
            if self.forwards.attached:
                self.forwards.detach()
            self.compilers.lift()
        elif self.runs_compiled:
            self._compiles()
        else:
            if eager:
                self.compilers.suspend()
            if self.forwards.attached:
                self.forwards.begin()
            else:
                self.forwards.attach()

    def _compiles(self) -> None:
        """The process compiles its models: hooks would be compiled into them."""
        self.tell("compiles")
        if self.settings.compiled == "skip":
            self.forwards.detach()
            what = "layers, inputs and losses, as the process uses `torch.compile`"
            self.not_seen[f"{what}; `compiled='eager'` runs audited steps without it"] = 1

    def _judge(self, window: Window) -> None:
        """Ask the checks about a step, now that its numbers are here."""
        window.readings.deliver()
        suspicions: list[tuple[str, Said]] = []
        for gradients in window.gradients:
            suspicions += self._asked("gradients", gradients)
        step = window.step
        if step is not None:
            step.machine = self.machine
            step.infers = self.infers
            if step.infers:
                step.forwards = [each for each in step.forwards if each.grad_enabled] + step.inferences
            step.gradients = window.gradients
            if window.gradients:
                step.place = window.gradients[0].place
            for forward in step.forwards:
                module = forward.model.module
                if module not in self._judged:
                    self._judged.add(module, True)
                    self._data_parallel |= forward.model.data_parallel
                    suspicions += self._asked("model", forward.model)
            self._join(step)
            self._note_part(step)
            suspicions += self._asked("step", step, structural=step.structural)
            suspicions += self._tried(step)
            self._look_closer(step)
        self._remember(window)
        began = time.perf_counter()
        self._on_judged(window)  # what is written of a look is no part of its cost
        self._own += time.perf_counter() - began
        self._open(suspicions, window.index)

    def _tried(self, step: Step) -> list[tuple[str, Said]]:
        """Keep what a step shows as each of a trial before it did; returns what it says of a check that failed."""
        if not self.settings.asked or self.step_count > ENOUGH or not step.gradients:
            return []
        said = list(self._asked("trial", step))
        shown: dict[tuple[str, Hashable], Suspicion] = {
            (rule, one.identity): one for rule, one in said if isinstance(one, Suspicion) and rule != "TA000"
        }
        known = self._on_trial
        self._on_trial = shown if known is None else {key: known[key] for key in known if key in shown}
        return [(rule, one) for rule, one in said if rule == "TA000"]

    def _remember(self, window: Window) -> None:
        """What the steps to come are compared with."""
        for gradients in window.gradients:
            if not gradients.skipped:
                history = gradients.optimizer.history
                history.add_norm(gradients.before_clipping or gradients.total)
                history.add_loss(gradients.step, gradients.loss)
                history.add_rate(gradients.learning_rate)
                history.add_gradients(gradients.step, gradients.tensors, gradients.present, gradients.norms)
                scheduled = gradients.optimizer.is_scheduled
                if (
                    history.silence.is_long
                    or history.wants_loss(gradients.step)
                    or history.wants_update(gradients.step, scheduled=scheduled)
                ):
                    self.audit_next()
        if window.step is not None:
            step = window.step
            self.history.add_ratios((update.optimizer.history, update.ratio) for update in step.updates)
            for forward in step.training_forwards:
                self.history.called.update(id(call.module) for call in forward.calls)

    def _judge_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        self._judged.add(optimizer, True)
        self._open(list(self._asked("optimizer", self.optimizers.facts(optimizer))), self.window.index)

    def _note_part(self, step: Step) -> None:
        """Note which code of the user's took part in a step: the functions on the stack, and the classes of its modules."""
        classes = {type(call.module) for forward in step.forwards for call in forward.calls}
        for kind in classes:
            code = getattr(
                getattr_static(kind, "forward", None), "__code__", None
            )  # of a script, to ask is to compile
            if code is not None and not is_library(code.co_filename):
                step.scopes.add(Scope(code.co_filename, scope_of(code).name.rpartition(".")[0]))
        new = step.scopes - self._took_part.keys()
        if len(self._took_part) + len(new) <= _MOST_SCOPES:
            self._took_part.update(dict.fromkeys(sorted(new)))

    def _join(self, step: Step) -> None:
        """What one part of a step says about another."""
        updates: dict[int, list[Update]] = {}
        for update in step.updates:
            updates.setdefault(id(update.optimizer.optimizer), []).append(update)
        for gradients in step.gradients:
            norms = {
                id(tensor): norm for tensor, norm in zip(gradients.tensors, gradients.norms, strict=False)
            }
            for update in updates.get(id(gradients.optimizer.optimizer), ()):
                update.gradient = norms.get(id(update.tensor))
                update.skipped = gradients.skipped

    def _look_closer(self, step: Step) -> None:
        """Audit the next step as well, for a sample that did not change, to compare all of it, and for a streak."""
        closer = self.optimizers.closer
        for update in step.updates:
            if update.change != 0.0 or not update.gradient:
                closer.discard(id(update.tensor))
            elif not update.exact:
                closer.add(id(update.tensor))
                self._armed = max(self._armed, 1)
        if self.history.is_waiting:
            self._armed = max(self._armed, 1)

    def _asked(self, fact: str, value: object, *, structural: bool = True) -> Iterable[tuple[str, Said]]:
        for check in self._checks[fact]:
            if check.rule in self._off or (check.of_structure and not structural):
                continue
            try:
                yield from [(check.rule, said) for said in check.function(value)]
            except Exception as error:  # noqa: BLE001 - a check never stops the run
                keep(error)
                self._off.add(check.rule)
                message = f"the check of {check.rule} raised {type(error).__name__}: {oneline(error)}"
                yield "TA000", Suspicion(NOWHERE, message, subject=check.rule)

    def _open(self, said: list[tuple[str, Said]], step: int) -> None:
        opened = self.incidents.add(said, step)
        if not opened:
            return
        for incident in opened:
            if incident.suspicion.shows_elsewhere:
                incident.scopes = tuple(self._took_part)
        self._schedule.suspect()
        if self.settings.every_n_steps != 0 and any(incident.suspicion.cause for incident in opened):
            self._armed = _ARMED
        try:
            self._on_incidents(opened)
        except AuditFailed as failure:
            self._failure = failure

    def _fail(self) -> None:
        """Raise what a finding is to stop the run with; asked where a step is over, as findings also come elsewhere."""
        failure, self._failure = self._failure, None
        if failure is not None and self.started:
            raise failure

    def audit_model(self, module: nn.Module, caller: Place) -> None:
        """Ask about a model now, because the user does."""
        model = self.model(module, caller)
        self.audit("model", model)
        if (found := self.barrier.run(asked, model)) is not None:
            self.audit("static", found)

    def audit_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """Ask about an optimizer now, because the user does."""
        facts = self.optimizers.facts(optimizer)
        self.audit("optimizer", facts)
        self.audit("init", facts)

    def audit(self, fact: str, value: object) -> None:
        """Ask the checks of one fact now, as `Auditor.audit_static` does."""
        self.ask(fact, value)
        self._fail()

    def ask(self, fact: str, value: object, step: int | None = None) -> None:
        """Ask the checks of one fact now, in the middle of a step: a finding that is to stop the run does so at its end.

        `step` is the one that the fact is of, by default that which goes on.
        """
        self._open(list(self._asked(fact, value)), self.window.index if step is None else step)

    def open(self, said: Iterable[tuple[str, Suspicion]]) -> None:
        """Keep what checks said elsewhere, such as in a copy of the process; each comes with its rule."""
        self._open(list(said), self.window.index)

    def fail(self, what: str, subject: str) -> None:
        """Tell of a part of the tool that was switched off as it failed."""
        self._open([("TA000", Suspicion(NOWHERE, what, subject=subject))], self.window.index)

    def audit_now(self) -> None:
        """Audit the step that has begun, or is to begin, in full, whatever `every_n_steps` says."""
        self._wake()
        if self.started and self.window.step is None:
            self.window.step = self._audited_step(self.window.index, closer=True)
            self._follow_window()

    def audit_next(self) -> None:
        """Audit the step after this one in full, unless `every_n_steps` says that none is."""
        if self.settings.every_n_steps != 0:
            self._armed = max(self._armed, 1)

    def begins_phase(self) -> None:
        """A phase may begin: audit the next step, if the run and not its user decides which steps are audited."""
        if self.settings.every_n_steps is None and self.settings.schedule is None:
            self.audit_next()

    # -- what goes wrong --------------------------------------------------------------------------------------

    def _raised(self, name: str, error: Exception) -> None:
        if isinstance(error, AuditFailed):
            raise error
        if isinstance(error, torch.OutOfMemoryError):
            self._miss("what the memory of the device did not suffice for")
        elif isinstance(error, (MemoryError, RecursionError)):
            self._miss(f"what the run left too little room for (`{type(error).__name__}`)")
        elif is_users(error):
            self._miss(f"what code of the run raised `{type(error).__name__}` for when it was looked at")
        else:
            self._observer_failed(name, error)

    def _observer_failed(self, name: str, error: Exception) -> None:
        self._failures[name] = self._failures.get(name, 0) + 1
        message = f"the observer `{name}` raised {type(error).__name__}: {oneline(error)}"
        due = self._failure
        self._open([("TA000", Suspicion(NOWHERE, message, subject=name))], self.window.index)
        self._failure = due  # that an observer fails is not the run's fault
        if self._failures[name] == _PATIENCE:
            self._miss(f"anything from step {self.window.index} on: the observer `{name}` kept failing")
            self.stop()

    def _miss(self, what: str) -> None:
        self.not_seen[what] = self.not_seen.get(what, 0) + 1


def _scheduled(settings: Settings) -> StepSchedule:
    if settings.schedule is not None:
        return Looked.load(settings.schedule)
    if settings.every_n_steps is not None:
        return Period(settings.every_n_steps, settings.gradients_every_n_steps or 0)
    if settings.comparable:
        return _comparable(settings, RECORDED)
    return Budget(settings.overhead, settings.start_step, gradients=settings.gradients_every_n_steps)


def _comparable(settings: Settings, every: int) -> StepSchedule:
    gradients = settings.gradients_every_n_steps
    return Comparable(every, 1 if gradients is None else gradients, settings.start_step)


def machine() -> Machine:
    """The hardware of this process. The capability is there once the run itself uses CUDA."""
    found = accelerator()
    if found is None:
        return Machine(None)
    in_use = found.type == "cuda" and torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return Machine(found.type, torch.cuda.get_device_capability() if in_use else None)


def script() -> str:
    """The file that Python runs, empty in an interactive session."""
    return getattr(sys.modules.get("__main__"), "__file__", None) or ""
