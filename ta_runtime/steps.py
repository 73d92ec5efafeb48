"""Counts the steps of a run by what its optimizers do, as a session does: by torch's step hooks, and scalers that skip one."""

import weakref
from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from ta_runtime.guarding import Guard
from ta_runtime.observers import construction
from ta_runtime.observers.optimizers import calls_itself
from ta_runtime.observers.patching import Undo, removing

Optimizer = torch.optim.Optimizer
Given = tuple[tuple[Any, ...], dict[str, Any]]
"""The arguments of a step, the first of which is the optimizer."""
Before = Callable[[Optimizer, tuple[Any, ...], dict[str, Any]], Given | None]
After = Callable[[Optimizer, tuple[Any, ...], dict[str, Any]], None]


class Steps:
    """A step is over when every optimizer that is in use has stepped.

    `before` and `after` are called around each `optimizer.step()`, with the optimizer and whether it was given a
    closure; what `before` gives is called after each call of that closure; `over` when a step is over. `guard` wraps what torch calls. After `doze` steps are but counted for a while.
    """

    def __init__(
        self,
        optimizers: list[Optimizer] | None,
        before: Callable[[Optimizer, bool], Callable[[], object] | None],
        after: Callable[[Optimizer, bool], None],
        over: Callable[[], None],
        guard: Guard,
    ) -> None:
        self.index = 0
        """The step that runs, or is to begin."""
        self._given = None if optimizers is None else [weakref.ref(optimizer) for optimizer in optimizers]
        self._before, self._after, self._over = before, after, over
        self._guard = guard
        self.counted = 0
        """How often an optimizer has stepped."""
        self._called: Callable[[], object] | None = (
            None  # after each call of the closure of the step that begins
        )
        self._running: set[int] = set()
        self._nested: dict[int, int] = {}  # steps that run inside a step of the same optimizer
        self._stepped: dict[int, weakref.ref[Optimizer]] = {}
        self._expected: dict[int, weakref.ref[Optimizer]] = {}
        self._undo = Undo()
        self._alone: Callable[[], Optimizer | None] = (
            _nobody  # the optimizer in use, while its steps are but counted
        )
        self._wakes: float = 0  # the step at which that ends

    def doze(self, until: float) -> None:
        """Only count the steps before this one, as long as the one optimizer in use makes them."""
        if len(self._expected) == 1 and not self._stepped and until > self.index:
            [self._alone], self._wakes = self._expected.values(), until

    def wake(self) -> None:
        self._alone = _nobody

    def attach(self) -> None:
        self._undo.append(partial(construction.detach, _nothing))
        construction.attach(_nothing)
        before, after = self._hooks()
        self._undo.append(removing(register_optimizer_step_pre_hook(before)))
        self._undo.append(removing(register_optimizer_step_post_hook(after)))
        self._undo.patch(torch.amp.GradScaler, "step", self._scaler_step)

    def detach(self) -> None:
        self.wake()
        self._undo()

    def _hooks(self) -> tuple[Before, After]:
        """What torch calls around each step: of one that is but counted, as little as can be."""
        # traced into a compiled step, a hook would be compiled anew whenever what it sees changes
        disable: Callable[..., Callable[..., Any]] = torch.compiler.disable
        begins, ends = disable(self._guard(self._begins)), disable(self._guard(self._ends))

        def before(optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Given | None:
            if self._running or self._alone() is not optimizer:
                begins(optimizer, args, kwargs)
                called, self._called = self._called, None
                return None if called is None else _followed(args, kwargs, called)
            self._running.add(id(optimizer))
            return None

        def after(optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            index = self.index + 1
            if index >= self._wakes or self._nested or self._alone() is not optimizer:
                ends(optimizer, args, kwargs)
            else:
                self._running.clear()
                self.counted += 1
                self.index = index

        # not recursively: that would cost each call more than the call itself
        return disable(before, recursive=False), disable(after, recursive=False)

    @property
    def optimizers(self) -> list[Optimizer]:
        """Those that are watched and known, in a fixed order."""
        if self._given is not None:
            return [optimizer for reference in self._given if (optimizer := reference()) is not None]
        known = {id(optimizer): optimizer for optimizer in construction.optimizers()}
        for reference in (*self._expected.values(), *self._stepped.values()):
            if (optimizer := reference()) is not None:
                known.setdefault(id(optimizer), optimizer)
        return list(known.values())

    def _watches(self, optimizer: Optimizer) -> bool:
        return self._given is None or any(reference() is optimizer for reference in self._given)

    def _begins(self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        key = id(optimizer)
        if not self._watches(optimizer):
            return
        self.wake()
        if key in self._running:
            if calls_itself(optimizer):
                self._nested[key] = self._nested.get(key, 0) + 1
                return
            self._nested.pop(key, None)  # the step before raised
        self._running.add(key)
        if key in self._stepped:
            self._close()
        self._called = self._before(optimizer, _closure(args, kwargs))

    def _ends(self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        key = id(optimizer)
        if key not in self._running:
            return
        if self._nested.get(key):
            self._nested[key] -= 1
            return
        self._running.discard(key)
        self._after(optimizer, _closure(args, kwargs))
        self.counted += 1
        self._is_done_with(optimizer)

    def _is_done_with(self, optimizer: Optimizer) -> None:
        """With the last of those in use, the step is over."""
        self._stepped[id(optimizer)] = weakref.ref(optimizer)
        expected = self._expected or {
            id(other): weakref.ref(other) for other in self.optimizers if self._watches(other)
        }
        if all(other in self._stepped or reference() is None for other, reference in expected.items()):
            self._close()

    def _close(self) -> None:
        self.wake()
        self._expected, self._stepped = self._stepped or self._expected, {}
        self.index += 1
        self._over()

    def _scaler_step(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """A scaler that finds an overflow does not call the optimizer: no hook would tell."""
        skipped = self._guard(self._skipped)

        def step(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            count = self.counted
            result = original(scaler, optimizer, *args, **kwargs)
            if self._undo and self.counted == count:
                skipped(optimizer)
            return result

        return step

    def _skipped(self, optimizer: Optimizer) -> None:
        if self._watches(optimizer):
            if id(optimizer) in self._stepped:
                self._close()
            self._is_done_with(optimizer)


def _closure(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return any(map(callable, (kwargs.get("closure"), *args[1:2])))  # the first is the optimizer


def _followed(args: tuple[Any, ...], kwargs: dict[str, Any], called: Callable[[], object]) -> Given:
    """The arguments of a step, with a closure after each call of which another function is called."""
    is_named = "closure" in kwargs
    original = kwargs["closure"] if is_named else args[1]

    @wraps(original)
    def closure(*given: Any, **options: Any) -> Any:
        result = original(*given, **options)
        called()
        return result

    return (args, {**kwargs, "closure": closure}) if is_named else ((args[0], closure, *args[2:]), kwargs)


def _nothing() -> None:
    pass


def _nobody() -> None:
    pass
