"""The arguments of a function that nobody calls: guessed from annotations, defaults, what is asked of them, and names."""

import ast

from ta_lint.dryrun.machine.asked import asked_of
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.values import NONE, Class, Function, Known, Unknown, Value


def arguments(machine: Machine, function: Function, skip: int) -> dict[str, Value]:
    """A value for each parameter after the first `skip`: its default, or what its annotation, its use or its name says."""
    parameters = function.node.args
    every = [*parameters.posonlyargs, *parameters.args][skip:] + parameters.kwonlyargs
    given: dict[str, Value] = {}
    for one in every:
        default = function.defaults.get(one.arg)
        if isinstance(default, Known | Class | Function) and default != NONE:
            given[one.arg] = default
        else:
            given[one.arg] = (
                machine.program.guess(machine, one.arg, _words(one.annotation), asked_of(function, one.arg))
                or default
                or Unknown(f"the argument {one.arg}")
            )
    return given


def _words(annotation: ast.expr | None) -> str:
    """The text of an annotation."""
    return "" if annotation is None else ast.unparse(annotation)
