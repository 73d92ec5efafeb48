"""Operations that give a new tensor and leave the old one as it is, and statements that call one and drop what it gives."""

import ast

from ta_lint.dryrun.machine.call import Call, Effect
from ta_lint.dryrun.machine.library import find
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.machine.tables import evaluate
from ta_lint.dryrun.stubs.torch.tensors import Tensor
from ta_lint.dryrun.values import BY_NAME, FALSE, External, Module, Unknown, Value
from ta_lint.events.discards import GIVE_ANOTHER

_OWNERS = frozenset({"torch", "torch.Tensor", "torch.nn.functional", "torch.special"})
_IN_PLACE = {"dropout": 3, "elu": 2, "leaky_relu": 2, "relu": 1, "silu": 1}
"""The place of `inplace` among the arguments."""


def noting_discards(name: str, effect: Effect) -> Effect:
    """What an operation does, and an event if a statement drops what it gives."""
    if name not in GIVE_ANOTHER:
        return effect

    def run(made: Call) -> Value:
        if made.node in made.machine.alone:
            _note(made)
        return effect(made)

    return run


ONLY_TENSORS = frozenset(
    "index_select log_softmax masked_fill masked_scatter permute sigmoid softmax unsqueeze view_as".split()
)
"""Methods that nothing else has that people call `to` on."""


def of_tensors(effect: Effect) -> Effect:
    """What an operation does that gets nothing but tensors. That it is one is known then, also if only its name has said so."""

    def run(made: Call) -> Value:
        if made.args and isinstance(made.args[0], Tensor):
            made.args[0].fields.pop(BY_NAME, None)
        return effect(made)

    return run


def _note(made: Call) -> None:
    call, given, owner = made.node, made.given(0, "input"), made.function.rpartition(".")[0]
    if not isinstance(call, ast.Call) or made.loose or given is None or owner not in _OWNERS:
        return
    is_method = owner == "torch.Tensor" and isinstance(call.func, ast.Attribute)
    if is_method and not isinstance(given, Tensor):
        return
    of = call.func.value if isinstance(call.func, ast.Attribute) and is_method else (*call.args, call)[0]
    in_place = made.argument(_IN_PLACE.get(made.name, 99), "inplace", False) != FALSE or "out" in made.kwargs
    asks = made.name == "type" and not call.args + call.keywords
    if not (in_place or asks or _is_made_in(made.machine, of)):
        _emit(made.machine, call, of, given, waits=made.name == "cpu")


def drop_of_unknown(machine: Machine, call: ast.expr, result: Value) -> None:
    """Say it as well if a statement calls a method that only tensors have on something that nobody knows."""
    func = call.func if isinstance(call, ast.Call) and isinstance(result, Unknown) else None
    if not isinstance(func, ast.Attribute) or func.attr not in ONLY_TENSORS:
        return
    of = func.value
    if isinstance(of, ast.Name) and isinstance(evaluate(machine, of, machine.frames[-1]), Unknown):
        _emit(machine, call, of, result, waits=False)


def _emit(machine: Machine, call: ast.expr, of: ast.expr, given: Value, *, waits: bool) -> None:
    is_tried = machine.expects(find("builtins.RuntimeError"))
    machine.emit(
        "discard", call, given, code=ast.unparse(call), of=ast.unparse(of), waits=waits, is_tried=is_tried
    )


def _is_made_in(machine: Machine, of: ast.expr) -> bool:
    """Whether a tensor is new: `torch.zeros(1).cuda()` starts up the device."""
    while isinstance(of, ast.Attribute | ast.Subscript) or (
        isinstance(of, ast.Call) and isinstance(of.func, ast.Attribute)
    ):
        of = of.func if isinstance(of, ast.Call) else of.value
    if isinstance(of, ast.Name):
        return isinstance(evaluate(machine, of, machine.frames[-1]), External | Module)
    return isinstance(of, ast.Call)
