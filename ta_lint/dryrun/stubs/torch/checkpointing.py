"""`torch.utils.checkpoint`: calls of which nothing is kept, and which backward makes again."""

from dataclasses import replace
from typing import Any

from ta_lint.dryrun.machine import iteration
from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.calling import call
from ta_lint.dryrun.machine.library import mapped, stub
from ta_lint.dryrun.stubs.torch.autograd import leads_to
from ta_lint.dryrun.stubs.torch.tensors import Facts, Tensor, computed, few
from ta_lint.dryrun.values import NONE, Native, Value

_OWN = frozenset("use_reentrant preserve_rng_state context_fn determinism_check debug early_stop".split())


@stub("torch.utils.checkpoint.checkpoint")
def _checkpoint(made: Call) -> Value:
    given = {name: value for name, value in made.kwargs.items() if name not in _OWN}
    return _checkpointed(made, made.argument(0, "function"), made.args[1:], given, _reentrant(made, 99))


@stub("torch.utils.checkpoint.checkpoint_sequential")
def _checkpoint_in_parts(made: Call) -> Value:
    """All parts but the last keep nothing, so their layers run again in backward."""
    layers, segments, value = (
        made.argument(0, "functions"),
        made.constant(1, "segments"),
        made.argument(2, "input"),
    )
    items, rest = iteration.collected(made.machine, layers, made.node)
    parts = [items] if rest is None else [(rest,)]
    if rest is None and isinstance(segments, int) and 1 < segments <= len(items):
        size = len(items) // segments
        parts = [items[at : at + size] for at in range(0, size * (segments - 1), size)] + [
            items[size * (segments - 1) :]
        ]
    for part in parts:
        if part is parts[-1]:
            value = _in_order(made, part, value)
        else:
            value = _checkpointed(made, _segment(part), [value], {}, _reentrant(made, 3))
    return value


def _segment(layers: tuple[Value, ...]) -> Native:
    """A function that runs these layers."""
    return Native("torch.utils.checkpoint.segment", lambda made: _in_order(made, layers, made.args[0]))


def _in_order(made: Call, layers: tuple[Value, ...], value: Value) -> Value:
    for layer in layers:
        value = call(made.machine, layer, [value], {}, made.node)
    return value


def _reentrant(made: Call, index: int) -> bool | None:
    """Whether backward begins another backward inside, which torch does if nothing else is asked for; None if nobody knows."""
    asked = made.constant(index, "use_reentrant")
    return None if asked is ... else asked is not False


def _checkpointed(
    made: Call, function: Value, args: list[Value], kwargs: dict[str, Value], reentrant: bool | None
) -> Value:
    if reentrant is False:
        result = call(made.machine, function, args, kwargs, made.node, loose=made.loose)
        return _kept_nothing_of(result, ((function, tuple(args), tuple(kwargs.items())),))
    machine = made.machine
    with machine.switched("recording", None if reentrant is None and machine.mode("recording") else False):
        result = call(machine, function, args, kwargs, made.node, loose=made.loose)
    if reentrant is None:
        return result
    facts = computed(machine, [one for one in args if isinstance(one, Tensor)], made.place).facts

    def back(inner: Call) -> Value:
        inputs = [_apart(one) for one in inner.args]
        with inner.machine.switched("recording", True):
            again = call(inner.machine, function, inputs, {}, inner.node)
            if isinstance(again, Tensor):
                call(inner.machine, again.cls.find("backward") or NONE, [again], {}, inner.node)
        return NONE

    again = ((Native("torch.utils.checkpoint.backward", back), tuple(args), ()),)
    return _kept_nothing_of(leads_to(result, facts, made), again)


def _apart(value: Value) -> Value:
    """The same numbers as a leaf of its own, which takes a gradient if they have one."""
    if not isinstance(value, Tensor):
        return value
    facts = value.facts
    requires = None if facts.requires is None and not facts.roots else bool(facts.roots or facts.requires)
    return Tensor(Facts(requires=requires, shape=facts.shape, dtype=facts.dtype), value.made)


def _kept_nothing_of(value: Value, again: tuple[Any, ...]) -> Value:
    """The result of a call that backward makes again."""

    def made_again(one: Value) -> Value:
        if not isinstance(one, Tensor) or one.facts.leaf:
            return one
        return Tensor(replace(one.facts, again=few(one.facts.again, again)), one.made, one.cls)

    return mapped(value, made_again)
