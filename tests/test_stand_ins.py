"""Whatever is watched passes for what it was: it has the name, the value, the pickle and the looks of the original."""

import copy
import functools
import inspect
import pickle
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import photograph
import pytest
import torch
from photograph import watched
from torch import nn
from torch.jit import _builtins
from torch.overrides import get_testing_overrides, is_tensor_method_or_property, resolve_name

from ta_runtime.probes import hub
from ta_runtime.probes.listener import Listener
from ta_runtime.probes.patching import Recoded, original
from ta_runtime.probes.undo import Undo

Function = Callable[..., Any]
NAMES = ("__name__", "__qualname__", "__module__", "__doc__")
KINDS: tuple[Callable[[object], bool], ...] = (
    inspect.isbuiltin,
    inspect.isfunction,
    inspect.ismethod,
    inspect.isroutine,
    inspect.ismethoddescriptor,
)
Everything: Any = type("Everything", (Listener,), {event: lambda self, call: None for event in hub._PLACES})
"""Listens to all that can be watched."""


def functions() -> dict[str, Any]:
    """All that stands in torch and what is watched beside it, by path."""
    found = {path: seen.value for path, seen in photograph.taken().items() if callable(seen.value)}
    of_tensors = {f"Tensor.{name}": getattr(torch.Tensor, name) for name in dir(torch.Tensor)}
    return found | {path: value for path, value in of_tensors.items() if callable(value)}


@pytest.fixture(scope="module")
def plain() -> dict[str, Any]:
    return functions()


@pytest.fixture(scope="module")
def on(plain: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The same functions while all are watched."""
    undo: Undo = hub.subscribe(Everything(), hub.directly)
    yield functions()
    undo()


def replaced(plain: dict[str, Any], on: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """What has something standing in for it, by path: the original, and that."""
    both = plain.keys() & on.keys()  # a method that a class inherits is in its own place while it is watched
    return {path: (plain[path], on[path]) for path in both if original(on[path]) is not on[path]}


def test_a_stand_in_that_was_kept_is_pickled_when_nobody_watches_any_more() -> None:
    """D5: a script may have taken a function from torch while it was watched, and saves it later."""
    undo = hub.subscribe(Everything(), hub.directly)
    kept: list[Any] = [
        torch.exp,
        torch.Tensor.exp,
        nn.functional.scaled_dot_product_attention,
        torch.autograd.backward,
    ]
    undo()  # before the first test that has all watched
    assert not any(map(watched, (torch.exp, torch.Tensor.exp, torch.autograd.backward)))
    for each in kept:
        assert pickle.loads(pickle.dumps(each)) == each
        assert copy.deepcopy(each) == each
    assert torch.equal(kept[0](torch.zeros(2)), torch.ones(2))


def test_functions_of_python_are_themselves_and_all_others_equal_their_originals(
    plain: dict[str, Any], on: dict[str, Any]
) -> None:
    """D5: what had been taken from torch before, such as the key of a table, was another function than the one there now."""
    pairs = replaced(plain, on)
    assert {"torch.exp", "Tensor.exp", "Tensor.__getitem__", "random.seed"} <= pairs.keys()
    assert not [
        path for path, (before, _) in pairs.items() if inspect.isfunction(before) and "Tensor." not in path
    ]
    assert watched(torch.autograd.backward)
    for path, (before, now) in pairs.items():
        assert watched(now), path
        assert original(now) is before or original(now) == before, path
        assert now == before == now, path
        assert hash(now) == hash(before), path
        assert {before: 1}[now] == {now: 1}[before] == len({now, before}), path


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_stand_in_is_pickled_byte_for_byte_as_its_original(
    plain: dict[str, Any], on: dict[str, Any], protocol: int
) -> None:
    """D5: `pickle` and `torch.save` of `torch.exp`, `softmax` and methods of tensors failed."""
    for path, (before, now) in replaced(plain, on).items():
        holder = ({"function": before}, (before, before))
        try:
            expected = pickle.dumps(holder, protocol)
        except (
            pickle.PicklingError
        ):  # only by its name, which now is that of the stand-in, or is of no object
            with suppress(pickle.PicklingError):
                assert pickle.loads(pickle.dumps(now, protocol)) is now, path
            continue
        if isinstance(before.__reduce_ex__(protocol), tuple):
            assert pickle.dumps(({"function": now}, (now, now)), protocol) == expected, path
        if pickle.loads(expected)[1][0] == before:
            assert pickle.loads(pickle.dumps(now, protocol)) == before, path


def test_a_stand_in_looks_like_its_original(plain: dict[str, Any], on: dict[str, Any]) -> None:
    """D5: `inspect`, `isinstance` and `torch.overrides` saw a function of Python."""
    for path, (before, now) in replaced(plain, on).items():
        assert looks(now) == looks(before), path
        assert isinstance(now, type(before)), path
        assert copy.copy(now) is now is copy.deepcopy(now), path
        assert repr(now) == repr(before), path


def looks(function: Function) -> list[object]:
    """What code asks of a function."""
    return [
        *(getattr(function, name, None) for name in NAMES),
        *(kind(function) for kind in KINDS),
        _or_error(inspect.signature, function),
        _or_error(inspect.getsource, function),
        resolve_name(function),
        function in get_testing_overrides(),
        is_tensor_method_or_property(function) if hasattr(function, "__name__") else None,
        _builtins._find_builtin(function),  # type: ignore[no-untyped-call]
        hasattr(function, "__wrapped__"),
    ]


def _or_error(asks: Callable[[Function], object], function: Function) -> object:
    try:
        return asks(function)
    except (TypeError, ValueError) as error:
        return type(error)


def test_a_function_in_c_does_not_bind_to_the_object_of_its_class(on: dict[str, Any]) -> None:
    """D5: `activation = torch.exp` in the body of a class was called with the object as its first argument."""

    class Net(nn.Module):
        activation: Any = torch.exp

    assert watched(Net.activation)
    assert torch.equal(Net().activation(torch.zeros(2)), torch.ones(2))
    bound: Any = torch.zeros(1).exp
    assert bound.__self__ is not None
    assert bound() == 1
    assert pickle.loads(pickle.dumps(bound))() == 1


def test_a_function_with_a_closure_keeps_it() -> None:
    """D5: only functions without a closure could run other code; a wrapper stood for the others."""
    factor = 3

    def scaled(value: int, *, by: int = 2) -> int:
        return value * by * factor

    seen: list[Any] = []
    recoded = Recoded(scaled, lambda call: seen.append(call.args))
    assert watched(scaled)
    assert scaled(2) == 12
    assert scaled(1, by=5) == 15
    assert inspect.getclosurevars(scaled).nonlocals == {"factor": 3}
    assert str(inspect.signature(scaled)) == "(value: int, *, by: int = 2) -> int"
    recoded.undo()
    assert scaled(2) == 12
    assert seen == [(2,), (1,)]


def test_a_function_of_the_script_that_stands_in_the_place_of_one_of_torch_stays_as_it_is() -> None:
    """D5: code that replaces a function of torch and has no signature was taken for torch's own."""
    before: Any = torch.exp

    @functools.wraps(before)
    def own(*args: Any) -> Any:
        return before(*args) + 1

    function: Any = own
    code = function.__code__
    torch.exp = function
    undo = hub.subscribe(Everything(), hub.directly)
    try:
        assert function.__code__ is code
        assert torch.equal(torch.exp(torch.zeros(1)), torch.full((1,), 2.0))
        undo()
        assert torch.exp is own
    finally:
        undo()
        torch.exp = before
