"""Wrapping a function for which torch has no hook, and putting it back.

Everything that is put on torch goes through here: what several parts wrap is one stack of wrappers, of which each can go
first, and what they put on is in an `Undo`.
"""

import inspect
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache, wraps
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any, Generic, ParamSpec, TypeVar

import torch
from torch import Tensor
from torch.jit import _builtins
from torch.overrides import get_overridable_functions, handle_torch_function, has_torch_function
from torch.utils.hooks import RemovableHandle

from ta_runtime.places import as_from, caller, passed_over

_P = ParamSpec("_P")
_R = TypeVar("_R")
_W = TypeVar("_W")
Wrapper = Callable[[Callable[..., Any]], Callable[..., Any]]

_ABSENT = object()
_STACK = "_ta_runtime_stack"
"""The attribute of the outermost wrapper by which its stack is found."""


class Undo(list[Callable[[], object]]):
    """What was put on torch. A call of it takes that off: the last first, and all of it, whatever one of them raises."""

    def patch(self, owner: Any, name: str, wrapper: Wrapper) -> None:
        """Put on a `Patch`."""
        self.append(Patch(owner, name, wrapper).undo)

    def recode(self, function: Callable[..., Any], wrapper: Wrapper) -> None:
        """Put on a `Recoded`."""
        self.append(Recoded(function, wrapper).undo)

    def __call__(self) -> None:
        with ExitStack() as rest:
            for undo in self:
                rest.callback(undo)
            self.clear()


class _Stack:
    """The wrappers around one function that are on, the innermost first.

    What stands in the place of the function knows its stack, so that whoever comes next adds to it, and takes no wrapper for
    the function itself.
    """

    def __init__(self, before: object, function: Callable[..., Any]) -> None:
        self.before = before
        """What stood in the place."""
        self.function = function
        self.now = before
        """What was put there last."""
        self.run = function
        """The outermost wrapper; the function itself when all have gone, for who still has what stood there."""
        self.wrapped: list[_Wrapped] = []

    def wrap(self) -> None:
        self.run = self.function
        for each in self.wrapped:
            self.run = wraps(self.run)(_passed_over(each.wrapper(self.run)))


class _Wrapped(ABC):
    """A place of torch in which a wrapper stands, until `undo`; `wrapper(original)` gives what runs instead.

    Of several wrappers in one place each can go first, and nothing is left behind. If somebody else has wrapped ours in
    the meantime, ours stay below theirs, until a wrapper of ours finds that they are gone; so every wrapper passes calls
    straight on once its observer is detached.

    Warnings and log records from inside name the line that they name without a wrapper; one around a function in C
    calls it `from_its_line`.
    """

    def __init__(self, wrapper: Wrapper) -> None:
        _list_functions()
        self.wrapper = wrapper
        found = self._found()
        stack = self._stack_of(found)
        if stack is None or stack.now is not found:
            stack = _Stack(found, self._function())
        self._stack = stack
        stack.wrapped.append(self)
        stack.wrap()
        self._stand()

    def undo(self) -> None:
        """Nothing happens if it was done."""
        stack = self._stack
        if self in stack.wrapped:
            stack.wrapped.remove(self)
            stack.wrap()
            if self._found() is stack.now:
                self._stand()

    def _stand(self) -> None:
        stack = self._stack
        stack.now = self._standing() if stack.wrapped else stack.before
        self._put(stack.now)

    @abstractmethod
    def _found(self) -> object:
        """What stands in the place now."""

    @abstractmethod
    def _put(self, value: Any) -> None: ...

    @abstractmethod
    def _function(self) -> Callable[..., Any]:
        """What runs by what stands there now."""

    @abstractmethod
    def _standing(self) -> object:
        """What stands there, for the stack to run, and knows it."""

    @abstractmethod
    def _stack_of(self, found: Any) -> _Stack | None:
        """The stack that what stands there knows."""


class Patch(_Wrapped):
    """An attribute of a class, a module or an object replaced by a wrapper."""

    def __init__(self, owner: Any, name: str, wrapper: Wrapper) -> None:
        self._owner, self._name = owner, name
        super().__init__(wrapper)

    def _found(self) -> object:
        return vars(self._owner).get(self._name, _ABSENT)

    def _put(self, value: Any) -> None:
        if value is _ABSENT:
            delattr(self._owner, self._name)
        else:
            setattr(self._owner, self._name, value)

    def _function(self) -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(self._owner, self._name)
        if isinstance(self._owner, type) and issubclass(self._owner, Tensor):
            return _as_overridden(function)
        return function

    def _standing(self) -> object:
        run = self._stack.run
        vars(run)[_STACK] = self._stack
        return run

    def _stack_of(self, found: Any) -> _Stack | None:
        return getattr(found, _STACK, None)


class Recoded(_Wrapped):
    """A Python function that runs other code, and is itself all the while.

    It does not matter how the run came by it, and it can be compared, pickled, scripted and traced as ever. What its
    wrappers get for the original is a twin that runs the code as it was.
    """

    def __init__(self, function: Callable[..., Any], wrapper: Wrapper) -> None:
        assert isinstance(function, FunctionType)
        assert not function.__closure__
        self._recoded = function
        super().__init__(wrapper)

    def _found(self) -> object:
        return self._recoded.__code__

    def _put(self, value: Any) -> None:
        function = self._recoded
        if value is self._stack.before:
            vars(function).pop("__signature__", None)
        else:  # of its source, by which it is scripted
            function.__signature__ = _signature(function)  # type: ignore[attr-defined]
        function.__code__ = value

    def _function(self) -> Callable[..., Any]:
        return _twin(self._recoded, self._recoded.__code__)

    def _standing(self) -> object:
        code = self._recoded.__code__
        stub = _stub.__code__
        # the stack and no function: the garbage collector cannot see what a code object holds
        return passed_over(
            stub.replace(
                co_consts=tuple(self._stack if const == _HERE else const for const in stub.co_consts),
                co_name=code.co_name,
                co_filename=code.co_filename,  # its source is found by its line, and by the loader of its module
                co_firstlineno=code.co_firstlineno,
            )
        )

    def _stack_of(self, found: CodeType) -> _Stack | None:
        return next((const for const in found.co_consts if isinstance(const, _Stack)), None)


class Shared(Generic[_W]):
    """The watchers of several sessions, which share what is wrapped for them: it is on while there is one.

    Their audited steps begin and end in any order, and are many; one wrapper serves them all. `put_on` is given the `Undo`
    for what it puts on.
    """

    def __init__(self, put_on: Callable[[Undo], object]) -> None:
        self._put_on = put_on
        self._undo = Undo()
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
            try:
                self._put_on(self._undo)
            except BaseException:
                self.leave(watcher)
                raise

    def leave(self, watcher: _W) -> None:
        if watcher not in self._watchers:
            return
        self._watchers.remove(watcher)
        if not self._watchers:
            self._undo()


# -- our own work -------------------------------------------------------------------------------------------------


class _Work:
    depth = 0


OWN_WORK = _Work()
"""How deep in it the process is: what is called of torch there is no part of the run, and in no trace of it."""


def own_work(method: Callable[_P, _R]) -> Callable[_P, _R]:
    """A method that measures, and so calls torch."""

    @wraps(method)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        if torch.compiler.is_compiling():
            return method(*args, **kwargs)
        OWN_WORK.depth += 1
        try:
            return method(*args, **kwargs)
        finally:
            OWN_WORK.depth -= 1

    return run


# -- hooks --------------------------------------------------------------------------------------------------------

_WALKS = frozenset(
    {
        "Optimizer.profile_hook_step.<locals>.wrapper",
        "Module.__setattr__",
        "Module.add_module",
        "Module.register_buffer",
        "Module.register_parameter",
    }
)
"""The functions of torch that walk over a table of hooks while they call them."""

_waiting: list[RemovableHandle] = []


def removing(hook: RemovableHandle) -> Callable[[], None]:
    """Takes a hook of an optimizer's step or of a registration off, but not while torch walks over its table.

    It raises if one goes then and others follow. What waits does nothing, and goes when the next of ours does.
    """

    def remove() -> None:
        _waiting.append(hook)
        remove_waiting()

    return remove


def remove_waiting() -> None:
    """Take off the hooks that torch was walking over when they were to go, if it is not now."""
    if not _waiting:
        return
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_qualname in _WALKS:
            for hook in _waiting:
                if (table := hook.hooks_dict_ref()) is not None and hook.id in table:
                    table[hook.id] = _idle
            return
        frame = frame.f_back
    while _waiting:
        _waiting.pop().remove()


def _idle(*_: object) -> None:
    """What a hook becomes that waits to be taken off."""


# -- what torch knows of its functions ----------------------------------------------------------------------------


@cache
def _list_functions() -> None:
    """Have torch list its functions while they all are its own.

    It does so once, when somebody first asks for the name of a function: if one were wrapped then, the function itself
    would have no name in this process any more, for its tensor subclasses and modes, our traces among them.
    """
    get_overridable_functions()


@cache
def _twin(function: FunctionType, code: CodeType) -> FunctionType:
    """Made once: who remembers something of an original has it of the next audited step too."""
    twin = FunctionType(code, function.__globals__, function.__name__, function.__defaults__)
    twin.__kwdefaults__ = function.__kwdefaults__
    return twin


def from_its_line(function: Callable[..., Any]) -> Callable[..., Any]:
    """What a wrapper is around; one in C is called as if by the line that called the wrapper, in whose name it warns."""
    if isinstance(function, (FunctionType, MethodType)):
        return function

    def call(*args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling():
            return function(*args, **kwargs)
        return as_from(caller(), function, args, kwargs)

    return call


def _passed_over(wrapper: Callable[..., Any]) -> Callable[..., Any]:
    assert isinstance(wrapper, FunctionType)
    wrapper.__code__ = passed_over(wrapper.__code__)
    return wrapper


@cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


_HERE = "the stack of wrappers"


def _stub(*args: Any, **kwargs: Any) -> Any:
    ta_runtime_stack: Any = "the stack of wrappers"  # a constant, in place of which the stack is put
    return ta_runtime_stack.run(*args, **kwargs)


def _as_overridden(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of `Tensor` that is called as a subclass or mode wants it.

    A method looks itself up by name to tell them which function it is: it would name our wrapper, which their tables of
    functions do not know and which would end up in traced graphs.
    """

    call = from_its_line(method)

    def run(*args: Any, **kwargs: Any) -> Any:
        if overridden(args, kwargs):
            return handle_torch_function(method, (*args, *kwargs.values()), *args, **kwargs)
        return call(*args, **kwargs)

    return wraps(method)(_passed_over(run))


def overridden(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a tensor subclass, a mode or a tracer among the arguments runs the function in its own way."""
    return bool(has_torch_function((*args, *kwargs.values())))


def standing_in(original: Callable[..., Any], wrapper: Wrapper) -> Callable[..., Any]:
    """What can be put in the place of a function of torch that is written in C; make it once and for all.

    TorchScript knows such functions by identity. So it must know this one too, also after the patch: a module that was
    imported in the meantime may have it by name.
    """
    replacement = wraps(original)(_passed_over(wrapper(original)))
    if (operator := _builtins._find_builtin(original)) is not None:  # type: ignore[no-untyped-call]
        _builtins._register_builtin(replacement, operator)
    return replacement
