"""What is put on torch comes off again: in any order, past the wrappers of others, and whatever raises in the middle."""

import functools
import inspect
import itertools
import random
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim.optimizer import _global_optimizer_post_hooks, register_optimizer_step_post_hook
from torch.overrides import resolve_name

from ta_runtime.probes import hub, patching
from ta_runtime.probes.listener import Listener
from ta_runtime.probes.patching import Call, Patch, Recoded, Watch
from ta_runtime.probes.places import caller, passed_over
from ta_runtime.probes.undo import Undo, remove_waiting, removing


class Door:
    def open(self) -> list[str]:
        return []


class Gate(Door):
    pass


def opened() -> list[str]:
    return []


def adding(name: str) -> Watch:
    def end(call: Call) -> None:
        call.result = [name, *call.result]

    return lambda call: end


def on_a_class(watch: Watch) -> Patch:
    return Patch(Door, "open", watch)


def on_one_that_inherits(watch: Watch) -> Patch:
    return Patch(Gate, "open", watch)


def in_code(watch: Watch) -> Recoded:
    return Recoded(opened, watch)


PUT_ON = (on_a_class, on_one_that_inherits, in_code)


def state() -> tuple[object, ...]:
    """Of the places above."""
    return Door.open, vars(Gate).get("open"), opened.__code__, dict(vars(opened))


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    before = state()
    yield
    assert state() == before


def called(put_on: Callable[[Watch], Patch | Recoded]) -> list[str]:
    return {on_a_class: Door().open, on_one_that_inherits: Gate().open, in_code: opened}[put_on]()  # type: ignore[index]


by_place = pytest.mark.parametrize("put_on", PUT_ON, ids=lambda each: each.__name__)
by_order = pytest.mark.parametrize("order", list(itertools.permutations("abc")), ids="".join)


@by_place
@by_order
def test_wrappers_come_off_in_any_order(
    put_on: Callable[[Watch], Patch | Recoded], order: tuple[str, ...]
) -> None:
    """N25: one that was not the outermost stayed for ever."""
    on = {name: put_on(adding(name)) for name in "abc"}
    assert called(put_on) == ["c", "b", "a"]
    for name in order:
        on.pop(name).undo()
        assert called(put_on) == sorted(on, reverse=True)


@by_place
def test_wrappers_come_and_go_in_a_random_order(put_on: Callable[[Watch], Patch | Recoded]) -> None:
    choose = random.Random(0)
    on: list[tuple[str, Patch | Recoded]] = []
    for number in range(200):
        if on and choose.random() < 0.5:
            on.pop(choose.randrange(len(on)))[1].undo()
        else:
            on.append((str(number), put_on(adding(str(number)))))
        assert called(put_on) == [name for name, _ in reversed(on)]
    for _, patch in on:
        patch.undo()


@by_place
def test_a_wrapper_comes_off_once(put_on: Callable[[Watch], Patch | Recoded]) -> None:
    first, second = put_on(adding("first")), put_on(adding("second"))
    first.undo()
    first.undo()
    assert called(put_on) == ["second"]
    second.undo()


def test_an_object_has_nothing_of_its_own_again() -> None:
    door = Door()
    first, second = Patch(door, "open", adding("first")), Patch(door, "open", adding("second"))
    assert door.open() == ["second", "first"]
    first.undo()
    second.undo()
    assert vars(door) == {}


# -- somebody else wraps as well --------------------------------------------------------------------------------


@pytest.fixture
def of_another() -> Callable[[], Callable[[], None]]:
    """Wraps `Door.open` as code does that knows nothing of ours; what it returns puts back what it found."""

    def wrap() -> Callable[[], None]:
        found = Door.open

        @functools.wraps(found)
        def run(door: Door) -> list[str]:
            return ["another", *found(door)]

        Door.open = run  # type: ignore[assignment, method-assign]

        def put_back() -> None:
            Door.open = found  # type: ignore[method-assign]

        return put_back

    return wrap


def test_the_wrapper_of_another_is_left_alone(of_another: Callable[[], Callable[[], None]]) -> None:
    put_back = of_another()
    first, second = on_a_class(adding("first")), on_a_class(adding("second"))
    first.undo()
    second.undo()
    assert Door().open() == ["another"]
    put_back()


def test_ours_goes_when_a_wrapper_of_another_has_gone(of_another: Callable[[], Callable[[], None]]) -> None:
    below = on_a_class(adding("below"))
    put_back = of_another()
    below.undo()
    assert Door().open() == ["another"]
    above = on_a_class(adding("above"))
    assert Door().open() == ["above", "another"]
    above.undo()
    put_back()
    on_a_class(adding("next")).undo()


def test_what_another_puts_back_takes_ours_along(of_another: Callable[[], Callable[[], None]]) -> None:
    put_back = of_another()
    over = on_a_class(adding("over"))
    put_back()
    over.undo()
    assert Door().open() == []


# -- functions of torch -----------------------------------------------------------------------------------------


def test_torch_names_a_function_that_was_wrapped_when_it_was_first_asked() -> None:
    """N25: torch lists its functions once; `log` had no name in this process, and so was in no trace."""
    before = torch.log
    torch.overrides._get_overridable_functions.cache_clear()
    patching._list_functions.cache_clear()
    wrapped = Patch(torch, "log", _nothing)
    try:
        assert resolve_name(before) == "torch.log"
    finally:
        wrapped.undo()
    assert torch.log is before


def _nothing(call: Call) -> None:
    pass


def test_what_calls_a_function_that_runs_other_code_is_found_behind_it() -> None:
    found: list[FrameType] = []

    def look(call: Call) -> None:
        found.append(caller())

    look.__code__ = passed_over(look.__code__)  # as the code of ours is
    on = in_code(look)
    opened()
    on.undo()
    assert found == [inspect.currentframe()]


# -- undoing ----------------------------------------------------------------------------------------------------


def test_all_is_undone_the_last_first_also_if_one_raises() -> None:
    done: list[str] = []

    def fail() -> None:
        raise RuntimeError("stuck")

    undo = Undo([lambda: done.append("first"), fail, lambda: done.append("last")])
    assert undo
    with pytest.raises(RuntimeError, match="stuck"):
        undo()
    assert done == ["last", "first"]
    assert not undo
    undo()


def test_what_was_put_on_before_an_error_is_known() -> None:
    undo = Undo()
    undo.patch(Door, "open", adding("a"))
    with pytest.raises(AttributeError):
        undo.patch(Door, "close", adding("a"))
    assert Door().open() == ["a"]
    undo()


def test_a_place_is_wrapped_once_for_all_who_watch() -> None:
    seen: list[str] = []
    plain = Door.open

    def watching(name: str) -> Watch:
        return lambda call: seen.append(name)

    first, second = on_a_class(watching("first")), on_a_class(watching("second"))
    wrapper = Door.open
    assert patching.original(wrapper) is plain
    assert Door().open() == []
    assert seen == ["second", "first"]
    first.undo()
    assert Door.open is wrapper
    second.undo()
    assert Door.open is plain


def test_who_watches_is_told_that_a_call_raised_whatever_the_others_raise() -> None:
    raised: list[bool] = []

    def fail(call: Call) -> None:
        raise RuntimeError("of ours")

    def note(call: Call) -> None:
        raised.append(call.raised)

    undo = Undo()
    undo.patch(
        Door, "open", lambda call: fail
    )  # the last that came is the first to begin, and the last to end
    undo.patch(Door, "open", lambda call: note)
    with pytest.raises(RuntimeError, match="of ours"):
        Door().open()
    undo()
    assert raised == [True]


def test_a_function_that_runs_other_code_can_be_compiled() -> None:
    """A recorded run that compiled `clip_grad_norm_` or `manual_seed` ended in an AssertionError of torch's."""
    on = in_code(_nothing)
    compiled = torch.compile(lambda x: x + len(opened()), backend="eager", fullgraph=True)
    assert compiled(torch.ones(1)) == 1
    on.undo()
    compiled = torch.compile(lambda x: x * 2 + len(opened()), backend="eager", fullgraph=True)
    assert compiled(torch.ones(1)) == 2
    torch._dynamo.reset()


def test_everyone_who_listens_hears_of_a_clipping_once() -> None:
    """The first to listen kept the others from hearing of it: TA102 was silent beside the observer of the loop."""
    heard: list[str] = []

    class Ear(Listener):
        def __init__(self, name: str) -> None:
            self.name = name

        def clip(self, call: Call) -> None:
            heard.append(self.name)

    undo = Undo()
    for name in ("first", "second"):
        undo.append(hub.subscribe(Ear(name), hub.directly))
    layer = nn.Linear(2, 2)
    layer(torch.ones(1, 2)).sum().backward()
    for _ in range(2):
        nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
    undo()
    assert heard == ["second", "first"] * 2


# -- hooks ------------------------------------------------------------------------------------------------------


def test_a_hook_that_goes_while_torch_calls_its_like_disturbs_nobody() -> None:
    """N25: torch raised out of `optimizer.step()` if a hook went while it called them and another followed."""
    before = dict(_global_optimizer_post_hooks)
    calls: list[str] = []

    def first(*_: object) -> None:
        calls.append("first")
        remove()

    remove = removing(register_optimizer_step_post_hook(first))
    second = register_optimizer_step_post_hook(lambda *_: calls.append("second"))
    optimizer = torch.optim.SGD(nn.Linear(1, 1).parameters())
    optimizer.step()
    optimizer.step()
    assert calls == ["first", "second", "second"]
    second.remove()
    remove_waiting()
    assert dict(_global_optimizer_post_hooks) == before


def test_a_hook_goes_at_once_where_torch_calls_none() -> None:
    before = dict(_global_optimizer_post_hooks)
    removing(register_optimizer_step_post_hook(lambda *_: None))()
    assert dict(_global_optimizer_post_hooks) == before


def test_a_wrapper_comes_off_where_a_timeout_cuts_that_short(monkeypatch: pytest.MonkeyPatch) -> None:
    before = Gate.open
    undo = Undo()
    undo.patch(Door, "open", adding("ours"))
    assert Gate().open() == ["ours"]
    put, cuts = Patch._put, iter([True])

    def cut(self: Patch, *args: Any) -> None:
        if next(cuts, False):
            raise TimeoutError
        put(self, *args)

    monkeypatch.setattr(Patch, "_put", cut)
    with pytest.raises(TimeoutError):
        undo()
    assert Gate.open is before
