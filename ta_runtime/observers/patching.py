"""Wrapping a function for which torch has no hook, and putting it back."""

import inspect
from collections.abc import Callable, Iterator
from functools import cache, wraps
from types import FunctionType, MethodType
from typing import Any, Generic, TypeVar

import torch
from torch.jit import _builtins
from torch.overrides import handle_torch_function, has_torch_function

from ta_runtime.places import as_from, caller, passed_over

_W = TypeVar("_W")
_ABSENT = object()


class Patch:
    """An attribute of a class or module replaced by a wrapper, until `undo`.

    `wrapper(original)` gives the replacement. If somebody else has wrapped ours in the meantime, it stays below
    theirs; so every wrapper passes calls straight on once its observer is detached.

    Warnings and log records from inside name the line that they name without a wrapper; one around a function in C
    calls it `from_its_line`.
    """

    def __init__(
        self, owner: Any, name: str, wrapper: Callable[[Callable[..., Any]], Callable[..., Any]]
    ) -> None:
        self._owner = owner
        self._name = name
        self._own = vars(owner).get(name, _ABSENT)
        original = getattr(owner, name)
        self._replacement = wraps(original)(_passed_over(wrapper(original)))
        setattr(owner, name, self._replacement)

    def undo(self) -> None:
        if vars(self._owner).get(self._name) is not self._replacement:
            return
        if self._own is _ABSENT:
            delattr(self._owner, self._name)
        else:
            setattr(self._owner, self._name, self._own)


class Recoded:
    """A Python function that runs other code, until `undo`, and is itself all the while.

    It does not matter how the run came by it, and it can be compared, pickled, scripted and traced as ever.
    `wrapper(original)` gives what runs instead; `original` is a twin that runs the code as it was.
    """

    def __init__(
        self, function: Callable[..., Any], wrapper: Callable[[Callable[..., Any]], Callable[..., Any]]
    ) -> None:
        assert isinstance(function, FunctionType)
        assert not function.__closure__
        self._function = function
        self._code = code = function.__code__
        twin = FunctionType(code, function.__globals__, function.__name__, function.__defaults__)
        twin.__kwdefaults__ = function.__kwdefaults__
        stub = _stub.__code__
        run = _passed_over(wrapper(twin))
        self._replacement = passed_over(
            stub.replace(
                co_consts=tuple(run if const == _RUNS else const for const in stub.co_consts),
                co_name=code.co_name,
                co_filename=code.co_filename,  # its source is found by its line, and by the loader of its module
                co_firstlineno=code.co_firstlineno,
            )
        )
        signature = _signature(function)
        function.__code__ = self._replacement
        function.__signature__ = signature  # type: ignore[attr-defined]  # of its source, by which it is scripted

    def undo(self) -> None:
        if self._function.__code__ is self._replacement:
            self._function.__code__ = self._code
            vars(self._function).pop("__signature__", None)


class Shared(Generic[_W]):
    """The watchers of several sessions, which share what is wrapped for them: it is on while there is one.

    Their audited steps begin and end in any order; a wrapper of each could not be taken off below one that came later.
    `put_on()` returns what takes the wrappers off again.
    """

    def __init__(self, put_on: Callable[[], list[Callable[[], object]]]) -> None:
        self._put_on = put_on
        self._undo: list[Callable[[], object]] = []
        self._watchers: list[_W] = []

    def __iter__(self) -> Iterator[_W]:
        """Those that are there now, also if one leaves in the meantime."""
        return iter(tuple(self._watchers))

    def __len__(self) -> int:
        return len(self._watchers)

    def join(self, watcher: _W) -> None:
        if watcher not in self._watchers:
            self._watchers.append(watcher)
        if not self._undo:
            self._undo = self._put_on()

    def leave(self, watcher: _W) -> None:
        if watcher not in self._watchers:
            return
        self._watchers.remove(watcher)
        while self._undo and not self._watchers:
            self._undo.pop()()


def from_its_line(function: Callable[..., Any]) -> Callable[..., Any]:
    """What a wrapper is around; one in C is called as if by the line that called the wrapper, in whose name it warns."""
    if isinstance(function, (FunctionType, MethodType)):
        return function

    def call(*args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling() or (frame := caller()) is None:
            return function(*args, **kwargs)
        return as_from(frame, function, args, kwargs)

    return call


def _passed_over(wrapper: Callable[..., Any]) -> Callable[..., Any]:
    assert isinstance(wrapper, FunctionType)
    wrapper.__code__ = passed_over(wrapper.__code__)
    return wrapper


@cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


_RUNS = "what runs instead"


def _stub(*args: Any, **kwargs: Any) -> Any:
    run: Any = "what runs instead"  # a constant, in place of which the replacement is put
    return run(*args, **kwargs)


def overridden(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a tensor subclass, a mode or a tracer among the arguments runs the function in its own way."""
    return bool(has_torch_function((*args, *kwargs.values())))


def as_overridden(original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The call as the subclass or mode wants it.

    A function of torch written in Python looks itself up by name to tell a subclass which function it is: it would
    name our wrapper, which tables of functions do not know and which would end up in traced graphs.
    """
    return handle_torch_function(original, (*args, *kwargs.values()), *args, **kwargs)


def standing_in(
    original: Callable[..., Any], wrapper: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> Callable[..., Any]:
    """What can be put in the place of a function of torch that is written in C; make it once and for all.

    TorchScript knows such functions by identity. So it must know this one too, also after the patch: a module that was
    imported in the meantime may have it by name.
    """
    replacement = wraps(original)(_passed_over(wrapper(original)))
    if (operator := _builtins._find_builtin(original)) is not None:  # type: ignore[no-untyped-call]
        _builtins._register_builtin(replacement, operator)
    return replacement
