"""Steps of optimizers, by torch's global hooks; clearing, schedulers, and steps that a gradient scaler leaves out."""

import sys
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial, wraps
from types import FrameType
from typing import Any

import torch
from torch import nn
from torch.amp import GradScaler
from torch.optim import lr_scheduler
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from ta_runtime.probes import registers, threads
from ta_runtime.probes.patching import Call, End, Watch, attribute, watching
from ta_runtime.probes.undo import Undo, removing

Optimizer = torch.optim.Optimizer
_Given = tuple[tuple[Any, ...], dict[str, Any]]

_STEP = "Optimizer.profile_hook_step.<locals>.wrapper"


class StepCall(Call):
    """A step; the first of its arguments is the optimizer."""

    __slots__ = ("after_closure",)

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.function = Optimizer.step
        self.args, self.kwargs = args, kwargs
        self.result, self.raised = None, True
        self.after_closure: list[Callable[[], object]] | None = None

    def follow_closure(self, called: Callable[[], object]) -> None:
        """Have a function called after each call of the closure."""
        self.after_closure = [*(self.after_closure or ()), called]

    @property
    def has_closure(self) -> bool:
        """Whether it was given a function that computes the gradients."""
        return callable(self.kwargs.get("closure")) or any(map(callable, self.args[1:2]))


# -- the hooks ----------------------------------------------------------------------------------------------------

_watches: tuple[Watch, ...] = ()
_open: dict[int, list[tuple[Watch, End]]] = {}  # what is to be called after the steps that run, by optimizer
_nested: dict[int, int] = {}  # steps that run inside a step of the same optimizer
_hooks = Undo()
_count = 0  # steps that have run


def _watch_steps(watch: Watch) -> Callable[[], None]:
    global _watches
    _watches = (*_watches, watch)
    _plan()
    return partial(_leave, watch)


def _leave(watch: Watch) -> None:
    global _watches
    _watches = tuple(each for each in _watches if each is not watch)
    for ends in _open.values():
        ends[:] = [(each, end) for each, end in ends if each is not watch]
    _plan()


def _begin(optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Given | None:
    global _runs
    key = id(optimizer)
    if _runs:  # or it raised
        _runs = False
        _open[id(_alone())] = []
    if key in _open:
        if _calls_itself(optimizer):
            _nested[key] = _nested.get(key, 0) + 1
            return None
        _nested.pop(key, None)  # the step before raised
    for rest in tuple(_resting):
        if _count >= rest.until or rest.optimizer() is not optimizer:
            rest.wake()
    threads.steps_here()
    registers.used(optimizer)
    call = StepCall(args, kwargs)
    _open[key] = ends = []
    for watch in _watches:
        if (end := watch(call)) is not None:
            ends.append((watch, end))
    return None if call.after_closure is None else _followed(args, kwargs, call.after_closure)


def _end(optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    global _count
    key = id(optimizer)
    if _nested.get(key):
        _nested[key] -= 1
        return
    ends = _open.pop(key, None)
    if ends is None:
        return
    _count += 1
    call = StepCall(args, kwargs)
    call.raised = False
    for _, end in tuple(ends):
        end(call)


# -- steps that are but counted -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Rest:
    """One who watches steps sleeps as long as this optimizer makes them, and none is the one after so many in all."""

    optimizer: Callable[[], Optimizer | None]
    until: float
    wake: Callable[[], object]


_resting: list[Rest] = []
_alone: Callable[[], Optimizer | None]  # the optimizer whose steps are but counted, where nobody is awake
_limit = 0.0
_runs = False  # whether one of these does


def count() -> int:
    """How many steps have run, of all optimizers, while somebody watched or slept."""
    return _count


def sleep(rest: Rest) -> Callable[[], None]:
    """Until what is returned is called, the hooks stay, and do next to nothing."""
    _resting.append(rest)
    _plan()
    return partial(_rested, rest)


def _rested(rest: Rest) -> None:
    _resting[:] = [
        each for each in _resting if each is not rest
    ]  # it may be ended again: a timeout cut it short
    _plan()


def _plan() -> None:
    """Put the hooks on, or take them off, and see whether they have but to count."""
    global _alone, _limit, _runs
    alone = {id(rest.optimizer()): rest.optimizer for rest in _resting}
    _alone = _nobody if _watches or len(alone) != 1 else next(iter(alone.values()))
    _limit = min((rest.until for rest in _resting), default=0)
    if not _watches and not _resting:
        _hooks()
        _open.clear()
        _nested.clear()
        _runs = False
    elif not _hooks:
        # traced into a compiled step, a hook would be compiled anew whenever what it sees changes; those that but count
        # not recursively, as that would cost each call more than the call itself
        disable: Callable[..., Callable[..., Any]] = torch.compiler.disable
        before, after = disable(_begin), disable(_end)
        hooks = _before(before), _after(after)
        _hooks.append(removing(register_optimizer_step_pre_hook(disable(hooks[0], recursive=False))))
        _hooks.append(removing(register_optimizer_step_post_hook(disable(hooks[1], recursive=False))))


def _before(begin: Callable[..., Any]) -> Callable[..., Any]:
    def before(optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Given | None:
        global _runs
        if not (threads.is_watched() or _steps_here(optimizer)):
            return None
        if _runs or _open or _count >= _limit or optimizer is not _alone():
            given: _Given | None = begin(optimizer, args, kwargs)
            return given
        _runs = True
        return None

    return before


def _after(end: Callable[..., Any]) -> Callable[..., Any]:
    def after(optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        global _runs, _count
        if not threads.is_watched():
            return
        if not _runs:
            end(optimizer, args, kwargs)
        else:
            _runs = False
            _count += 1

    return after


def _steps_here(optimizer: Optimizer) -> bool:
    """Whether the thread in which an optimizer steps is watched from here on; if it is not, its optimizers are left alone."""
    if threads.steps_here():
        return True
    if registers.left(optimizer):
        threads.share()
    return False


def _nobody() -> None:
    pass


def _calls_itself(optimizer: Optimizer) -> bool:
    """Whether `step` runs inside `step` of the same optimizer, as when a subclass calls `super().step()`.

    Looks at the stack, as a step that raised leaves the same traces.
    """
    depth = 0
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_qualname == _STEP and frame.f_locals.get("self") is optimizer:
            depth += 1
            if depth == 2:
                return True
        frame = frame.f_back
    return False


def _followed(args: tuple[Any, ...], kwargs: dict[str, Any], called: list[Callable[[], object]]) -> _Given:
    """The arguments of a step, with a closure after each call of which others are called."""
    is_named = "closure" in kwargs
    original = kwargs["closure"] if is_named else args[1]

    @wraps(original)
    def closure(*given: Any, **options: Any) -> Any:
        result = original(*given, **options)
        for each in called:
            each()
        return result

    return (args, {**kwargs, "closure": closure}) if is_named else ((args[0], closure, *args[2:]), kwargs)


def _watch_skips(watch: Watch) -> Callable[[], None]:
    """A scaler that finds an overflow does not call the optimizer: no hook would tell."""

    def begin(call: Call) -> End:
        count = _count

        def end(call: Call) -> None:
            if _count == count and not call.raised:
                watch(call)

        return end

    return watching(GradScaler, "step", begin).undo


# -- the end of a step --------------------------------------------------------------------------------------------


class EndOfStep:
    """A step is over when every optimizer that is in use has stepped; in use are those that stepped in the step before."""

    def __init__(self, first: Callable[[], Iterable[Optimizer]]) -> None:
        """`first` says which optimizers to expect in the first step."""
        self._first = first
        self._stepped: dict[int, weakref.ref[Optimizer]] = {}
        self._expected: dict[int, weakref.ref[Optimizer]] = {}
        self._missing: dict[int, weakref.ref[Optimizer]] | None = None  # of those, once one has stepped

    def is_before(self, optimizer: Optimizer) -> bool:
        """Whether an optimizer that begins to step belongs to the next step, as it has stepped in this one already."""
        return id(optimizer) in self._stepped

    def is_with(self, optimizer: Optimizer) -> bool:
        """Whether the step is over with this optimizer, which has stepped or was left out."""
        self._stepped[id(optimizer)] = weakref.ref(optimizer)
        if self._missing is None:
            first = () if self._expected else self._first()
            self._missing = self._expected | {id(other): weakref.ref(other) for other in first}
        missing = self._missing
        missing.pop(id(optimizer), None)
        while missing and next(iter(missing.values()))() is None:
            del missing[next(iter(missing))]
        return not missing

    def turn(self) -> None:
        """The next step begins."""
        self._expected, self._stepped, self._missing = self._stepped or self._expected, {}, None

    @property
    def optimizers(self) -> list[Optimizer]:
        """Those in use, in the order in which they step."""
        known = {**self._expected, **self._stepped}
        return [optimizer for reference in known.values() if (optimizer := reference()) is not None]

    @property
    def alone(self) -> Optimizer | None:
        """The only optimizer in use, between two steps."""
        if self._stepped or len(self._expected) != 1:
            return None
        [reference] = self._expected.values()
        return reference()


_SCHEDULERS = [
    kind for kind in vars(lr_scheduler).values() if isinstance(kind, type) and "step" in vars(kind)
]

PLACES = {
    "step": (_watch_steps,),
    "skip": (_watch_skips,),
    "clear": (attribute(Optimizer, "zero_grad"),),
    "clear_module": (attribute(nn.Module, "zero_grad"),),
    "schedule": tuple(attribute(kind, "step") for kind in _SCHEDULERS),
}
