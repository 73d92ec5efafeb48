"""Watching the calls of a function for which torch has no hook.

Each function is wrapped once, however many watch it: the wrapper comes with the first and goes with the last.
"""

import inspect
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache, wraps
from types import CodeType, FunctionType, MethodType
from typing import Any

import torch
from torch import Tensor
from torch.jit import _builtins
from torch.overrides import get_overridable_functions, handle_torch_function, has_torch_function

from ta_runtime.probes.places import as_from, caller, passed_over
from ta_runtime.probes.threads import elsewhere, is_watched

_ABSENT = object()
_LAYER = "_ta_runtime_layer"
"""The attribute of a wrapper by which its layer is found."""


class Call:
    """One call of a watched function, shared by all who watch it."""

    __slots__ = ("args", "function", "kwargs", "raised", "result")

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs
        self.result: Any = None
        self.raised = True
        """Whether it raised; also while it runs."""

    def given(self, position: int, name: str, default: Any = None) -> Any:
        """An argument, by position or by name."""
        return self.args[position] if len(self.args) > position else self.kwargs.get(name, default)


End = Callable[[Call], object]
Watch = Callable[[Call], End | None]
"""Called before the function runs; what it returns is called after it, also if the function raised."""
PutOn = Callable[[Watch], Callable[[], None]]
"""Lets a place be watched, until what is returned is called."""


class _Layer:
    """The wrapper around one function, and who watches. Its wrapper knows it, so that whoever comes next finds it."""

    def __init__(self, before: object, function: Callable[..., Any]) -> None:
        self.before = before
        """What stood in the place."""
        self.now = before
        """What was put there last."""
        self.watches: tuple[Watch, ...] = ()
        """The newest first: it begins before the others, and ends after them."""
        self.elsewhere = elsewhere
        """Called in a thread that is not watched: whether they are to be told all the same."""
        self.run = _wrapper(self, function)


def _wrapper(layer: _Layer, function: Callable[..., Any]) -> Callable[..., Any]:
    original = from_its_line(function)

    def run(*args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling() or not layer.watches or not (is_watched() or layer.elsewhere()):
            return original(*args, **kwargs)
        call = Call(original, args, kwargs)
        ends: list[End] = []
        try:
            for watch in layer.watches:
                if (end := watch(call)) is not None:
                    ends.append(end)
            call.result = call.function(*call.args, **call.kwargs)
            call.raised = False
        finally:
            if ends:
                _finish(ends, call)
        return call.result

    replacement = wraps(function)(_passed_over(run))
    if (operator := _builtins._find_builtin(function)) is not None:  # type: ignore[no-untyped-call]
        _builtins._register_builtin(replacement, operator)
    return replacement


def _finish(ends: list[End], call: Call) -> None:
    """Each is called, whatever another raises."""
    try:
        while ends:
            ends.pop()(call)
    finally:
        if ends:
            call.raised = True
            _finish(ends, call)


@cache
def _of_builtin(function: Callable[..., Any]) -> _Layer:
    """The layer around a function in C, once and for all.

    TorchScript knows such functions by identity. So it must know the wrapper too, also when that is off again: a module that
    was imported in the meantime may have it by name.
    """
    return _Layer(function, function)


class _Watched(ABC):
    """A place of torch in which a wrapper stands while anyone watches; this one does until `undo`.

    If somebody else has wrapped ours in the meantime, ours stays below theirs, until we look and find that it is gone.
    Warnings and log records from inside name the line that they name without a wrapper.
    """

    def __init__(self, watch: Watch) -> None:
        _list_functions()
        self._watch = watch
        found = self._found()
        layer = self._layer_of(found)
        if layer is None or layer.now is not found:
            function = self._function()
            is_builtin = found is function and _builtins._find_builtin(found) is not None  # type: ignore[no-untyped-call]
            layer = _of_builtin(function) if is_builtin else self._new_layer(found, function)
        self._layer: _Layer | None = layer
        layer.watches = (watch, *layer.watches)
        if len(layer.watches) == 1 or layer.now is not found:
            layer.now = self._standing(layer)
            self._put(layer, layer.now)

    def undo(self) -> None:
        """Nothing happens if it was done."""
        layer, self._layer = self._layer, None
        if layer is None:
            return
        watches = list(layer.watches)
        watches.remove(self._watch)
        layer.watches = tuple(watches)
        if not watches and self._found() is layer.now:
            layer.now = layer.before
            self._put(layer, layer.before)

    def _new_layer(self, found: Any, function: Callable[..., Any]) -> _Layer:
        return _Layer(found, function)

    @abstractmethod
    def _found(self) -> Any:
        """What stands in the place now."""

    @abstractmethod
    def _put(self, layer: _Layer, value: Any) -> None: ...

    @abstractmethod
    def _function(self) -> Callable[..., Any]:
        """What runs by what stands there now."""

    @abstractmethod
    def _standing(self, layer: _Layer) -> object:
        """What stands there, for the layer to run, and knows it."""

    @abstractmethod
    def _layer_of(self, found: Any) -> _Layer | None:
        """The layer that what stands there knows."""


class Patch(_Watched):
    """An attribute of a class, a module or an object replaced by a wrapper."""

    def __init__(
        self, owner: Any, name: str, watch: Watch, elsewhere: Callable[[], bool] = elsewhere
    ) -> None:
        self._owner, self._name = owner, name
        super().__init__(watch)
        if self._layer is not None:
            self._layer.elsewhere = elsewhere

    def _found(self) -> Any:
        return vars(self._owner).get(self._name, _ABSENT)

    def _put(self, layer: _Layer, value: Any) -> None:
        if value is _ABSENT:
            delattr(self._owner, self._name)
        else:
            setattr(self._owner, self._name, value)

    def _function(self) -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(self._owner, self._name)
        if isinstance(self._owner, type) and issubclass(self._owner, Tensor):
            return _as_overridden(function)
        return function

    def _standing(self, layer: _Layer) -> object:
        vars(layer.run)[_LAYER] = layer
        return layer.run

    def _layer_of(self, found: Any) -> _Layer | None:
        return getattr(found, _LAYER, None)


class Recoded(_Watched):
    """A Python function that runs other code, and is itself all the while.

    It does not matter how the run came by it, and it can be compared, pickled, scripted and traced as ever. What runs
    for the original is a twin with the code as it was.
    """

    def __init__(self, function: Callable[..., Any], watch: Watch) -> None:
        assert isinstance(function, FunctionType)
        assert not function.__closure__
        self._recoded = function
        super().__init__(watch)

    def _found(self) -> Any:
        return self._recoded.__code__

    def _put(self, layer: _Layer, value: Any) -> None:
        function = self._recoded
        if value is layer.before:
            vars(function).pop("__signature__", None)
        else:  # of its source, by which it is scripted
            function.__signature__ = _signature(function)  # type: ignore[attr-defined]
        function.__code__ = value
        # not public: what `torch.compile` remembers of the arguments of the code that was there
        remembered = getattr(sys.modules.get("torch._dynamo.variables.functions"), "_spec_cache", {})
        remembered.pop(function, None)

    def _function(self) -> Callable[..., Any]:
        return _twin(self._recoded, self._recoded.__code__)

    def _new_layer(self, found: Any, function: Callable[..., Any]) -> _Layer:
        return _of_code(function, found)

    def _standing(self, layer: _Layer) -> object:
        return _stub_of(layer)

    def _layer_of(self, found: CodeType) -> _Layer | None:
        return _by_stub.get(id(found))


LAYERS: list[_Layer] = []
"""Those of functions that run other code, which names them by their number."""
_by_stub: dict[int, _Layer] = {}


@cache
def _of_code(function: Callable[..., Any], code: CodeType) -> _Layer:
    """The layer around a function that runs this code, once and for all."""
    layer = _Layer(code, function)
    LAYERS.append(layer)
    return layer


def _stub(*args: Any, **kwargs: Any) -> Any:
    from ta_runtime.probes.patching import LAYERS  # it runs with the globals of another module

    return LAYERS["its number"].run(*args, **kwargs)  # type: ignore[call-overload]


@cache
def _stub_of(layer: _Layer) -> CodeType:
    """The code that runs a layer in the place of another; plain constants are all that `torch.compile` can trace."""
    stub, code, number = _stub.__code__, layer.before, LAYERS.index(layer)
    assert isinstance(code, CodeType)
    made = passed_over(
        stub.replace(
            co_consts=tuple(number if const == "its number" else const for const in stub.co_consts),
            co_name=code.co_name,
            co_filename=code.co_filename,  # its source is found by its line, and by the loader of its module
            co_firstlineno=code.co_firstlineno,
        )
    )
    _by_stub[id(made)] = layer
    return made


def attribute(owner: Any, name: str, elsewhere: Callable[[], bool] = elsewhere) -> PutOn:
    """The place that is an attribute of a class, a module or an object; `elsewhere` is asked in other threads."""
    return lambda watch: Patch(owner, name, watch, elsewhere).undo


def code(function: Callable[..., Any]) -> PutOn:
    """The place that is the code of a Python function."""
    return lambda watch: Recoded(function, watch).undo


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

    @wraps(function)
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
