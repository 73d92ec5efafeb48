"""The parts of a module: what a program asks of them, and does to all of them."""

from dataclasses import replace

from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.calling import call
from ta_lint.dryrun.machine.library import WITHIN, list_of, method, once, tuple_of
from ta_lint.dryrun.machine.objects import attribute
from ta_lint.dryrun.stubs.torch import dtypes, gradients
from ta_lint.dryrun.stubs.torch.devices import moves
from ta_lint.dryrun.stubs.torch.modules import (
    ALL_PARAMETERS,
    DISTANT,
    HAS_BATCH_NORMS,
    MODULE,
    below,
    children,
    each_held,
    held,
    in_order,
    switch,
)
from ta_lint.dryrun.stubs.torch.tensors import FACTS, Tensor
from ta_lint.dryrun.stubs.torch.without_effect import SOME_MODULE
from ta_lint.dryrun.values import NONE, TRUE, Known, Object, Unknown, Value


@method(MODULE, "buffers", "named_buffers")
def _buffers(made: Call) -> Value:
    named = made.name == "named_buffers"
    return list_of((), tuple_of([Unknown("a name", "str"), Tensor()]) if named else Tensor())


def _asked(made: Call, index: int) -> tuple[list[tuple[str, Value]], Value | None]:
    """The parameters that a program asks for: also those of the parts, unless the argument at this index says no."""
    own, recurse = made.own(), made.constant(index, "recurse", True)
    made.emit("parameters", own)
    return held(own, recurse=recurse is ... or bool(recurse)).in_order()


@method(MODULE, "parameters")
def _parameters(made: Call) -> Value:
    known, rest = _asked(made, 1)
    return once(list_of([one for _, one in known], rest))


@method(MODULE, "named_parameters")
def _named_parameters(made: Call) -> Value:
    known, rest = _asked(made, 2)
    pairs = [
        tuple_of([Known(name) if name != ALL_PARAMETERS else Unknown(WITHIN, "str"), one])
        for name, one in known
    ]
    return list_of(pairs, None if rest is None else tuple_of([Unknown("a name", "str"), rest]))


@method(MODULE, "modules", "children", "named_modules", "named_children")
def _modules(made: Call) -> Value:
    own, name = made.own(), made.name
    made.emit("visit", own)
    known, rest = in_order(
        below(own) if name.endswith("modules") else children(own),
        SOME_MODULE if _has_more(own) else None,
    )
    if HAS_BATCH_NORMS in own.fields and name.endswith("children"):
        rest = _some_children(own)
    if not name.startswith("named"):
        return list_of([one for _, one in known], rest)
    pairs = [tuple_of([Known(path), one]) for path, one in known]
    return list_of(pairs, None if rest is None else tuple_of([Unknown("a name", "str"), rest]))


def _some_children(network: Object) -> Object:
    """Children of a network whose layers are out of sight, which several of them make again."""
    same = ("training", ALL_PARAMETERS, HAS_BATCH_NORMS)
    return Object(DISTANT, network.made, {name: network.fields[name] for name in same})


def _has_more(module: Object) -> bool:
    """Whether it has modules, or one below it has, of which nobody knows."""
    return held(module).open or any(ALL_PARAMETERS in one.fields for _, one, _ in below(module))


_LAYOUT = frozenset({"memory_format", "non_blocking"})


@method(
    MODULE,
    "to",
    "cuda",
    "cpu",
    "float",
    "half",
    "double",
    "bfloat16",
    "type",
    "ipu",
    "share_memory",
    "to_empty",
    "xpu",
)
def _moved(made: Call) -> Value:
    """Its parameters are elsewhere, or in another dtype."""
    moves(made)
    goes_to = made.given(1, "device") if made.name == "to" else None
    before = "the dtype from before"
    dtype: str | None = before
    if made.name in ("to", "type"):
        dtype = dtypes.asked(made, before)
    elif made.name not in ("cuda", "cpu", "ipu", "share_memory", "to_empty", "xpu"):
        dtype = dtypes.NAMES[made.name] or made.name
    is_layout = made.name == "to" and not made.args[1:] and made.kwargs.keys() <= _LAYOUT
    made.emit(
        "move", made.args[0], to=goes_to or Known(made.name), how=made.name,
        converts=dtype not in (before, None), is_layout=is_layout,
    )  # fmt: skip
    if dtype != before:
        own = held(made.own())

        def change(one: Tensor) -> None:
            if dtype != one.facts.dtype:
                made.machine.state.write(one.fields, FACTS, replace(one.facts, dtype=dtype))

        each_held(made.machine, [(one, one not in own.perhaps) for _, one in own.parameters], change)
    return made.args[0]


@method(MODULE, "apply")
def _apply(made: Call) -> Value:
    made.emit("visit", made.own())
    each_held(
        made.machine,
        [(one, sure) for _, one, sure in below(made.own())],
        lambda one: call(made.machine, made.argument(1, "fn"), [one], {}, made.node),
    )
    return made.args[0]


@method(MODULE, "requires_grad_")
def _requires_grad(made: Call) -> Value:
    wants = made.constant(1, "requires_grad", True)
    own = held(made.own())

    def change(one: Tensor) -> None:
        known = None if wants is ... else bool(wants)
        made.machine.state.write(one.fields, FACTS, replace(one.facts, requires=known))

    each_held(made.machine, [(one, one not in own.perhaps) for _, one in own.parameters], change)
    switch(made, made.args[0], on=bool(wants))
    return made.args[0]


@method(MODULE, "zero_grad")
def _zero_grad(made: Call) -> Value:
    own = made.own()
    group = held(own)
    parameters = [one for _, one in group.parameters]
    made.emit("clear", own, before=gradients.cleared(made.machine, own, parameters, complete=group.complete))
    return NONE


@method(MODULE, "register_buffer", "register_parameter", "add_module", "register_module")
def _register(made: Call) -> Value:
    name, value = made.constant(1, "name"), made.argument(2, "tensor")
    if isinstance(name, str):
        made.machine.state.write(made.own().fields, name, value)
    elif made.name != "register_buffer":
        made.machine.state.write(made.own().fields, "incomplete", TRUE)
    return NONE


@method(MODULE, "get_buffer", "get_parameter", "get_submodule")
def _get(made: Call) -> Value:
    path, value = made.constant(1, "target"), made.args[0]
    for part in path.split(".") if isinstance(path, str) and path else ():
        value = attribute(made.machine, value, part, made.node)
    return value if isinstance(path, str) else Unknown("a module")
