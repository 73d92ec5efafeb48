"""Watching the calls of a function for which torch has no hook.

A function of Python runs other code meanwhile, and is itself all the while; anything else is stood in for by what passes for it.
That is put on once, however many watch: it comes with the first and goes with the last.
"""

import inspect
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache, wraps
from operator import attrgetter
from pickle import PicklingError
from pydoc import locate
from types import CodeType, FunctionType, MethodType
from typing import Any, Self, SupportsIndex

import torch
from torch import Tensor
from torch.jit import _builtins
from torch.overrides import get_overridable_functions, handle_torch_function, has_torch_function

from ta_runtime.probes.places import as_from, caller, is_library, passed_over
from ta_runtime.probes.threads import elsewhere, is_watched
from ta_runtime.probes.work import leave_out

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
Elsewhere = Callable[[], bool]
"""Asked in a thread that is not watched: whether who watches is told all the same."""
PutOn = Callable[[Watch], Callable[[], None]]
"""Lets a place be watched, until what is returned is called."""


class _Layer:
    """What runs in a place instead of its function, and who watches. What stands there knows it, so that whoever comes next finds it."""

    def __init__(self, before: object, function: Callable[..., Any], called: Callable[..., Any]) -> None:
        """`called` runs the function."""
        self.before = before
        """What stood in the place."""
        self.now = before
        """What was put there last."""
        self.watches: tuple[Watch, ...] = ()
        """The newest first: it begins before the others, and ends after them."""
        self.elsewhere: Elsewhere = elsewhere
        self.function = function
        self.stand_in: StandIn | None = None
        self.run = _running(self, from_its_line(called))


def _running(layer: _Layer, called: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling() or not layer.watches or not (is_watched() or layer.elsewhere()):
            return called(*args, **kwargs)
        call = Call(called, args, kwargs)
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

    return wraps(called)(_passed_over(run))


def _finish(ends: list[End], call: Call) -> None:
    """Each is called, whatever another raises."""
    try:
        while ends:
            ends.pop()(call)
    finally:
        if ends:
            call.raised = True
            _finish(ends, call)


class StandIn:
    """Stands in the place of what has no code to change, such as a function in C, and passes for it.

    Functions of torch are keys of tables, and are pickled, named and asked what they are, some of them long after
    they were taken from their place. So this equals its original, and is pickled as that.
    """

    def __init__(self, layer: _Layer) -> None:
        function, names = layer.function, vars(self)
        for name in ("__doc__", "__module__", "__name__", "__qualname__"):
            names[name] = getattr(function, name, None)  # as its class has them too
        self._original, self._run = function, layer.run
        names[_LAYER] = layer

    @property
    def __class__(self) -> Any:  # what `isinstance` looks at
        return type(self._original)

    @__class__.setter
    def __class__(self, kind: Any) -> None:
        raise TypeError("a function keeps its class")

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._run(*args, **kwargs)
        except BaseException as error:
            leave_out(error)
            raise

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["_original"], name)

    def __dir__(self) -> list[str]:
        return dir(self._original)

    def __repr__(self) -> str:
        return repr(self._original)

    def __eq__(self, other: object) -> bool:
        return bool(self._original == original(other))

    def __hash__(self) -> int:
        return hash(self._original)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        function = self._original
        reduced = (
            function.__qualname__ if isinstance(function, FunctionType) else function.__reduce_ex__(protocol)
        )
        if not isinstance(reduced, str):
            return reduced
        try:  # a name, under which pickle looks whether it finds this
            if attrgetter(reduced)(sys.modules[function.__module__]) is self:
                return reduced
        except (AttributeError, KeyError):
            raise PicklingError(
                f"Can't pickle {function!r}: not found as {function.__module__}.{reduced}"
            ) from None
        return locate, (f"{function.__module__}.{reduced}",)


class _Binding(StandIn):
    """Passes for what binds to the object of whose class it is an attribute."""

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)


def original(function: object) -> Any:
    """What a stand-in stands for, and anything else as it is."""
    return function._original if type(function) in (StandIn, _Binding) else function  # type: ignore[attr-defined]


StandIn.__call__.__code__ = passed_over(StandIn.__call__.__code__)


def _standing_in(layer: _Layer) -> StandIn:
    made = (_Binding if hasattr(type(layer.function), "__get__") else StandIn)(layer)
    if (operator := _builtins._find_builtin(layer.function)) is not None:  # type: ignore[no-untyped-call]
        _builtins._register_builtin(made, operator)
    return made


@cache
def _of_builtin(function: Callable[..., Any]) -> _Layer:
    """The layer around a function in C, once and for all.

    TorchScript knows such functions by identity. So it must know what stands in for one too, also when that is off again: a
    module that was imported in the meantime may have it by name.
    """
    return _Layer(function, function, function)


class _Watched(ABC):
    """A place of torch in which a wrapper stands while anyone watches; this one does until `undo`.

    If somebody else has wrapped ours in the meantime, ours stays below theirs, until we look and find that it is gone.
    Warnings and log records from inside name the line that they name without a wrapper.
    """

    def __init__(self, watch: Watch, elsewhere: Elsewhere) -> None:
        _list_functions()
        self._watch = watch
        found = self._found()
        layer = self._layer_of(found)
        if layer is None or layer.now is not found:
            layer = self._new_layer(found)
        self._layer: _Layer | None = layer
        layer.elsewhere = elsewhere
        layer.watches = (watch, *layer.watches)
        if len(layer.watches) == 1 or layer.now is not found:
            layer.now = self._standing(layer)
            self._put(layer, layer.now)

    def undo(self) -> None:
        """Nothing happens if it was done; where it was cut short, the rest is done."""
        layer = self._layer
        if layer is None:
            return
        layer.watches = tuple(watch for watch in layer.watches if watch is not self._watch)
        if not layer.watches and self._found() is layer.now:
            self._put(layer, layer.before)
            layer.now = layer.before
        self._layer = None

    @abstractmethod
    def _new_layer(self, found: Any) -> _Layer: ...

    @abstractmethod
    def _found(self) -> Any:
        """What stands in the place now."""

    @abstractmethod
    def _put(self, layer: _Layer, value: Any) -> None: ...

    @abstractmethod
    def _standing(self, layer: _Layer) -> object:
        """What stands there, for the layer to run, and knows it."""

    @abstractmethod
    def _layer_of(self, found: Any) -> _Layer | None:
        """The layer that what stands there knows."""


class Patch(_Watched):
    """An attribute of a class, a module or an object in whose place another stands."""

    def __init__(self, owner: Any, name: str, watch: Watch, elsewhere: Elsewhere = elsewhere) -> None:
        self._owner, self._name = owner, name
        super().__init__(watch, elsewhere)

    def _found(self) -> Any:
        return vars(self._owner).get(self._name, _ABSENT)

    def _put(self, layer: _Layer, value: Any) -> None:
        if value is _ABSENT:
            delattr(self._owner, self._name)
        else:
            setattr(self._owner, self._name, value)

    def _new_layer(self, found: Any) -> _Layer:
        function: Callable[..., Any] = getattr(self._owner, self._name)
        if isinstance(self._owner, type) and issubclass(self._owner, Tensor):
            return _Layer(found, function, _as_overridden(function))
        is_builtin = found is function and _builtins._find_builtin(found) is not None  # type: ignore[no-untyped-call]
        return _of_builtin(function) if is_builtin else _Layer(found, function, function)

    def _standing(self, layer: _Layer) -> object:
        if layer.stand_in is None:
            layer.stand_in = _standing_in(layer)
        return layer.stand_in

    def _layer_of(self, found: Any) -> _Layer | None:
        return getattr(found, _LAYER, None)


class Recoded(_Watched):
    """A Python function that runs other code, and is itself all the while.

    It does not matter how the run came by it, and it can be compared, pickled, scripted and traced as ever. What runs
    for the original is a twin with the code as it was.
    """

    def __init__(self, function: Callable[..., Any], watch: Watch, elsewhere: Elsewhere = elsewhere) -> None:
        assert isinstance(function, FunctionType)
        self._recoded = function
        super().__init__(watch, elsewhere)

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

    def _new_layer(self, found: CodeType) -> _Layer:
        return _of_code(self._recoded, found)

    def _standing(self, layer: _Layer) -> object:
        return _stub_of(layer)

    def _layer_of(self, found: CodeType) -> _Layer | None:
        return _by_stub.get(id(found))


LAYERS: list[_Layer] = []
"""Those of functions that run other code, which names them by their number."""
_by_stub: dict[int, _Layer] = {}


@cache
def _of_code(function: FunctionType, code: CodeType) -> _Layer:
    """The layer around a function that runs this code, once and for all."""
    twin = _twin(function, code)
    layer = _Layer(code, twin, twin)
    LAYERS.append(layer)
    return layer


_STUB = """
def closing_over({names}):
    def stub(*args, **kwargs):
        if False:
            ({names})
        from ta_runtime.probes.patching import LAYERS, leave_out  # it runs with the globals of another module
        try:
            return LAYERS[{number}].run(*args, **kwargs)
        except BaseException as error:
            leave_out(error)
            raise
    return stub
"""


@cache
def _stub_of(layer: _Layer) -> CodeType:
    """The code that runs a layer in the place of another; plain constants are all that `torch.compile` can trace."""
    code = layer.before
    assert isinstance(code, CodeType)
    names = "".join(
        f"free_{number}, " for number in range(len(code.co_freevars))
    )  # a function keeps its closure
    [outer] = _codes_in(compile(_STUB.format(names=names, number=LAYERS.index(layer)), "<stub>", "exec"))
    [stub] = _codes_in(outer)
    made = passed_over(
        stub.replace(
            co_freevars=code.co_freevars,
            co_name=code.co_name,
            co_qualname=code.co_qualname,
            co_filename=code.co_filename,  # its source is found by its line, and by the loader of its module
            co_firstlineno=code.co_firstlineno,
        )
    )
    _by_stub[id(made)] = layer
    return made


def _codes_in(code: CodeType) -> list[CodeType]:
    return [const for const in code.co_consts if isinstance(const, CodeType)]


def watching(owner: Any, name: str, watch: Watch, elsewhere: Elsewhere = elsewhere) -> _Watched:
    """Watch the calls of an attribute of a class, a module or an object: by its code, if it has any and is not the script's.

    `elsewhere` is asked in other threads than the one that is watched.
    """
    function = vars(owner).get(name)
    is_of_tensors = isinstance(owner, type) and issubclass(owner, Tensor)
    is_function = type(function) is FunctionType and is_library(function.__code__.co_filename)
    if is_function and not is_of_tensors:
        return Recoded(function, watch, elsewhere)
    return Patch(owner, name, watch, elsewhere)


def attribute(owner: Any, name: str, elsewhere: Elsewhere = elsewhere) -> PutOn:
    """The place that is an attribute of a class, a module or an object; `elsewhere` as for `watching`."""
    return lambda watch: watching(owner, name, watch, elsewhere).undo


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
    twin = FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    twin.__kwdefaults__ = function.__kwdefaults__
    if (wrapped := vars(function).get("__wrapped__")) is not None:  # `inspect.signature` is of that
        twin.__wrapped__ = wrapped  # type: ignore[attr-defined]
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


_TOLD = {"__iadd__": "add_", "__imul__": "mul_", "__mul__": "mul"}
"""The methods by whose names torch tells subclasses and modes of operators."""


def _as_overridden(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of `Tensor` that is called as a subclass or mode wants it.

    A method looks itself up by name to tell them which function it is: it would name our wrapper, which their tables of
    functions do not know and which would end up in traced graphs.
    """

    call = from_its_line(method)
    told = original(getattr(Tensor, _TOLD.get(method.__name__, ""), method))

    def run(*args: Any, **kwargs: Any) -> Any:
        if overridden(args, kwargs):
            return handle_torch_function(told, (*args, *kwargs.values()), *args, **kwargs)
        return call(*args, **kwargs)

    return wraps(method)(_passed_over(run))


def overridden(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a tensor subclass, a mode or a tracer among the arguments runs the function in its own way."""
    return bool(has_torch_function((*args, *kwargs.values())))
