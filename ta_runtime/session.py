"""A session: watches the steps of a run, asks the checks, and keeps the incidents.

The main path is `stepped`: a step has ended, its numbers are on their way, and those of an earlier one are here.
Whatever goes wrong in here stays in here; the run goes on as it would have.
"""

import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial, wraps
from typing import Any

import torch
from torch import nn

from ta_lint.core.errors import oneline
from ta_runtime import checks
from ta_runtime.facts import Machine, Model, Refutation, Run, Step, Suspicion, Told
from ta_runtime.history import History
from ta_runtime.incidents import Incident, Incidents
from ta_runtime.names import Names
from ta_runtime.observers import construction, observers
from ta_runtime.observers.backwards import Backwards
from ta_runtime.observers.compilers import Compilers, traced
from ta_runtime.observers.forwards import Forwards
from ta_runtime.observers.loaders import LoaderObserver
from ta_runtime.observers.observer import Observer
from ta_runtime.observers.optimizers import Optimizers
from ta_runtime.observers.patching import OWN_WORK, Undo, remove_waiting
from ta_runtime.places import NOWHERE, Place
from ta_runtime.registers import BUILT, Register
from ta_runtime.settings import Settings
from ta_runtime.sources import of_class
from ta_runtime.window import Window

_ARMED = 2
"""Steps that are audited after a new incident, to see it from close up."""
_IN_FLIGHT = 4
"""Steps whose numbers may be on their way at once; of more, the newest is not looked at."""
_THOROUGH = 4
"""The first audits, and of those after them each so-manieth, also look at what hardly changes from one to the next."""
_OF_CONTENTS = {"TA308", "TA313", "TA314", "TA856"}
"""The rules for which batches are hashed."""
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
    ) -> None:
        self.settings = settings
        self.names = Names()
        self.history = History()
        self.incidents = Incidents()
        self._machine = machine()
        self.not_seen: dict[str, int] = {}
        """What the session could not look at, and how often."""
        self.step_count = 0
        """Optimizer steps so far, of all optimizers together."""
        self.started = False
        self.paused = False
        """Whether what happens now is no part of the run."""
        self._on_incidents, self._on_judged = on_incidents, on_judged
        self._only = None if optimizers is None else {id(optimizer): optimizer for optimizer in optimizers}
        enabled = checks.enabled(settings.rules)
        self._checks = {fact: [check for check in enabled if check.fact == fact] for fact in checks.FACTS}
        self._looks = settings.record is not None or any(check.fact != "violation" for check in enabled)
        """Whether more is asked for than invariants, which a tracer sees to by itself."""
        self._off: set[str] = set()
        self._failures: dict[str, int] = {}
        self._failure: AuditFailed | None = None  # to be raised when a step is over
        self._undo = Undo()
        self._judged: Register[bool] = Register()  # models and optimizers
        self._data_parallel = False
        self._expected: dict[int, weakref.ref[torch.optim.Optimizer]] = {}
        self._armed = 0
        self._asks_soon = False
        self._audits = 0
        self._pending: deque[Window] = deque()
        self._thread = threading.get_ident()
        self.compilers = Compilers(self._compiles)
        self._settle = self.guarded(self._judge_arrived)  # when a model is built: the one before may be gone
        self.optimizers = Optimizers(self)
        self.forwards = Forwards(self)
        self.backwards = Backwards(self)
        self.loaders = LoaderObserver(self)
        self.observers = [observer(self) for observer in observers()] if self._looks else []
        self._listeners = {
            event: [getattr(observer, event) for observer in self.observers if event in vars(type(observer))]
            for event in vars(Observer)
            if not event.startswith("_")
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
        self.started = True
        self.window.began = None  # a training that ended before
        undo = self._undo
        looking = (self.backwards, self.loaders) if self._looks else ()
        try:
            undo.append(partial(construction.detach, self._settle))
            construction.attach(self._settle)
            undo += [self.optimizers.detach, self._judge_the_rest]
            self.optimizers.attach()
            for part in (self.compilers, *looking, *self.observers):
                undo.append(part.detach)
                part.attach()
            undo.append(self.forwards.detach)
            self._follow_window()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Let go of torch, and judge what is still on its way. The incidents stay."""
        if self.started:
            self.started = False
            self._undo()
        remove_waiting()

    def _judge_the_rest(self) -> None:
        optimizers = construction.optimizers()
        self.flush()
        for optimizer in optimizers:
            if self.watches(optimizer) and optimizer not in self._judged:  # it never stepped
                self._judge_optimizer(optimizer)

    def conclude(self, rank: int = 0, peers: Mapping[int, Told] | None = None) -> Told:
        """Judge the run as a whole, with what other ranks told; returns what this one tells."""
        run = self._run(over=True, rank=rank, peers=peers or {})
        step = max(self.window.index - 1, 0)
        self._open([*self._asked("progress", run), *self._asked("run", run)], step)
        return run.told

    def flush(self) -> None:
        """Judge everything that was noted, waiting for its numbers; also of a step that did not end."""
        if not self.window.empty:
            if self.window.step is not None:
                self.window.step.complete = False
            self.window.readings.send()
            self._pending.append(self.window)
            self.window = Window(self.window.index, None)
        while self._pending:
            self._tried(self._judge, self._pending.popleft())

    # -- asked by the observers -------------------------------------------------------------------------------

    @property
    def machine(self) -> Machine:
        """The hardware, as far as it can be known by now."""
        if self._machine.accelerator == "cuda" and self._machine.capability is None:
            self._machine = machine()
        return self._machine

    @property
    def in_backward(self) -> bool:
        return self.backwards.running

    @property
    def device_idle(self) -> bool | None:
        """Whether the device has finished the step before, asked without waiting; None if that step was not looked at."""
        last = self._pending[-1] if self._pending else None
        return last.readings.arrived if last is not None and last.index == self.window.index - 1 else None

    @property
    def runs_compiled(self) -> bool:
        """Whether compiled code runs on audited steps too: hooks and wrappers would become part of it."""
        return self.settings.compiled != "eager" and self.compilers.used

    def watches(self, optimizer: torch.optim.Optimizer) -> bool:
        return self._only is None or id(optimizer) in self._only

    def looks_at(self, window: Window) -> bool:
        """Whether the gradients of a window are read."""
        every = self.settings.gradients_every_n_steps
        return window.step is not None or (self._looks and every > 0 and window.index % every == 0)

    def model(self, module: nn.Module, caller: Place) -> Model:
        """The facts of a model that is called, or given."""
        self.names.add(module)
        place = BUILT.get(module) or of_class(type(module))
        if place is None:  # built before the session, or a copy
            place = caller
            BUILT.add(module, caller)
        return Model(module, place, self.names, self.machine)

    def guarded(self, method: Callable[..., Any], *, leads: bool = False) -> Callable[..., Any]:
        """An observer's method that can neither stop nor slow the run: what it raises is a finding, TA000.

        It looks away from other threads than the one that trains: the one that started the session, or the first in
        which a method that `leads` is called.
        """
        thread, tried = threading.get_ident, self._tried

        @wraps(method)
        def run(*args: Any, **kwargs: Any) -> Any:
            if not self.started or self.paused or traced():
                return None
            if thread() != self._thread:
                if not leads:
                    return None
                if self.step_count:
                    self._miss("optimizer steps in other threads than the first")
                    return None
                self._thread = thread()
            return tried(method, *args, **kwargs)

        return run

    def window_for(self, optimizer: torch.optim.Optimizer) -> Window:
        """The window in which an optimizer steps now: a new one if it has stepped in the current one already."""
        if id(optimizer) in self.window.stepped:
            over = self.window
            self._close()
            self.window.take_over(over)
        return self.window

    def tell(self, event: str, *args: object) -> None:
        """Call the method named as the event of every observer that has its own."""
        for method in self._listeners[event]:
            try:
                method(*args)
            except Exception as error:  # noqa: BLE001 - as in `_tried`, without a call for each
                self._raised(method, error)

    def stepped(self, optimizer: torch.optim.Optimizer) -> None:
        """An optimizer has stepped; with the last of those in use, the step of the run is over."""
        self.step_count += 1
        self.tell("after_step", optimizer, self.window)
        self.loaders.stepped()
        stepped = self.window.stepped
        stepped[id(optimizer)] = weakref.ref(optimizer)
        if optimizer not in self._judged:
            self._judge_optimizer(optimizer)
        expected = self._expected or {
            id(other): weakref.ref(other) for other in construction.optimizers() if self.watches(other)
        }
        if all(key in stepped or reference() is None for key, reference in expected.items()):
            self._close()
        if self._asks_soon or (self.step_count > 1 and self.step_count & (self.step_count - 1) == 0):
            self._asks_soon = False
            self._open(list(self._asked("progress", self._run(over=False))), self.window.index)
        self._fail()

    def ask_soon(self) -> None:
        """Ask about the run after this step, and not only after the next of the steps 2, 4, 8 and so on."""
        self._asks_soon = True

    def skipped(self, optimizer: torch.optim.Optimizer) -> None:
        """A GradScaler found an overflow and left the optimizer alone."""
        if self.watches(optimizer):
            self.tell("skipped", optimizer)
            self.window.forget()
            self._close()
            self._fail()

    def _run(self, *, over: bool, rank: int = 0, peers: Mapping[int, Told] | None = None) -> Run:
        run = Run(self.step_count, self.machine, self.loaders.found, self.history, rank=rank, over=over)
        run.peers = dict(peers or {})
        run.data_parallel = self._data_parallel
        run.told.batches = [loader.digests for loader in run.loaders]
        run.told.orders = [[each.shuffled_by for each in loader.passes] for loader in run.loaders]
        self.tell("report", run)
        return run

    # -- steps ------------------------------------------------------------------------------------------------

    def _close(self) -> None:
        """The step is over: send its numbers off, judge those that have arrived, and begin the next."""
        window = self.window
        window.ended = time.perf_counter()
        self.incidents.steps += 1
        self._expected = window.stepped or self._expected
        if not window.empty:
            if len(self._pending) < _IN_FLIGHT:
                window.readings.send()
                self._pending.append(window)
            else:
                self._miss("steps whose numbers had not arrived four steps later")
        self.window = self._next_window(window.index + 1)
        self.window.began = window.ended
        self._follow_window()
        self._judge_arrived(but=window)

    def _judge_arrived(self, but: Window | None = None) -> None:
        while self._pending and self._pending[0] is not but and self._pending[0].readings.arrived:
            self._judge(self._pending.popleft())

    def _next_window(self, index: int) -> Window:
        every = self.settings.every_n_steps
        armed = self._armed > 0
        audited = self._looks and (armed or (every > 0 and index % every == 0))
        self._armed = max(self._armed - 1, 0)
        return Window(index, self._audited_step(index, closer=armed) if audited else None)

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
            structural=closer or first or number & (number - 1) == 0,
        )

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
        suspicions: list[tuple[str, Suspicion | Refutation]] = []
        for gradients in window.gradients:
            suspicions += self._asked("gradients", gradients)
        step = window.step
        if step is not None:
            step.machine = self.machine
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
            suspicions += self._asked("step", step, structural=step.structural)
            self._look_closer(step)
        self._remember(window)
        self._on_judged(window)
        self._open(suspicions, window.index)

    def _remember(self, window: Window) -> None:
        """What the steps to come are compared with."""
        for gradients in window.gradients:
            if not gradients.skipped:
                key = gradients.optimizer.optimizer
                self.history.add_norm(key, gradients.before_clipping or gradients.total)
                self.history.add_loss(key, gradients.loss)
                self.history.add_gradients(gradients)
                if self.history.silence(key).is_long:
                    self.audit_next()
        if window.step is not None:
            self.history.add_updates(window.step.updates)
            self.history.add_calls(window.step.training_forwards)

    def _judge_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        self._judged.add(optimizer, True)
        self._open(list(self._asked("optimizer", self.optimizers.facts(optimizer))), self.window.index)

    def _join(self, step: Step) -> None:
        """What one part of a step says about another."""
        for gradients in step.gradients:
            norms = {
                id(tensor): norm for tensor, norm in zip(gradients.tensors, gradients.norms, strict=False)
            }
            for update in step.updates:
                if update.optimizer.optimizer is gradients.optimizer.optimizer:
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

    def _asked(
        self, fact: str, value: object, *, structural: bool = True
    ) -> Iterable[tuple[str, Suspicion | Refutation]]:
        for check in self._checks[fact]:
            if check.rule in self._off or (check.of_structure and not structural):
                continue
            try:
                yield from [(check.rule, said) for said in check.function(value)]
            except Exception as error:  # noqa: BLE001 - a check never stops the run
                self._off.add(check.rule)
                message = f"the check of {check.rule} raised {type(error).__name__}: {oneline(error)}"
                yield "TA000", Suspicion(NOWHERE, message, subject=check.rule)

    def _open(self, said: list[tuple[str, Suspicion | Refutation]], step: int) -> None:
        opened = self.incidents.add(said, step)
        if not opened:
            return
        if self.settings.every_n_steps and any(incident.suspicion.cause for incident in opened):
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

    def audit(self, fact: str, value: object) -> None:
        """Ask the checks of one fact now, as `Auditor.audit_static` does."""
        self.ask(fact, value)
        self._fail()

    def ask(self, fact: str, value: object, step: int | None = None) -> None:
        """Ask the checks of one fact now, in the middle of a step: a finding that is to stop the run does so at its end.

        `step` is the one that the fact is of, by default that which goes on.
        """
        self._open(list(self._asked(fact, value)), self.window.index if step is None else step)

    def fail(self, what: str, subject: str) -> None:
        """Tell of a part of the tool that was switched off as it failed."""
        self._open([("TA000", Suspicion(NOWHERE, what, subject=subject))], self.window.index)

    def audit_now(self) -> None:
        """Audit the step that has begun, or is to begin, in full, whatever `every_n_steps` says."""
        if self.started and self.window.step is None:
            self.window.step = self._audited_step(self.window.index, closer=True)
            self._follow_window()

    def audit_next(self) -> None:
        """Audit the step after this one in full, unless `every_n_steps` says that none is."""
        if self.settings.every_n_steps:
            self._armed = max(self._armed, 1)

    # -- what goes wrong --------------------------------------------------------------------------------------

    def _tried(self, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        OWN_WORK.depth += 1
        try:
            return method(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - the run goes on
            self._raised(method, error)
        finally:
            OWN_WORK.depth -= 1
        return None

    def _raised(self, method: Callable[..., Any], error: Exception) -> None:
        if isinstance(error, AuditFailed):
            raise error
        if isinstance(error, torch.OutOfMemoryError):
            self._miss("what the memory of the device did not suffice for")
        else:
            self._observer_failed(method.__qualname__, error)

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


def machine() -> Machine:
    """The hardware of this process, asked so that no device comes into use by it: a process forked then could not use it.

    The capability is there once the run itself uses CUDA.
    """
    accelerator = torch.accelerator.current_accelerator()
    if accelerator is None or not torch.accelerator.device_count():  # `is_available` would begin to use it
        return Machine(None)
    in_use = accelerator.type == "cuda" and torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return Machine(accelerator.type, torch.cuda.get_device_capability() if in_use else None)


def script() -> str:
    """The file that Python runs, empty in an interactive session."""
    return getattr(sys.modules.get("__main__"), "__file__", None) or ""
