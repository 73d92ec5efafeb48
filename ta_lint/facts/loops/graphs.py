"""Where backward passes start: the calls of `backward`, and their losses."""

from functools import cached_property

import libcst as cst

from ta_lint.facts.loops.loops import is_backward
from ta_lint.syntax.tree import Tree, dotted

# Objects whose `backward` takes the loss as an argument: of accelerate, Fabric, DeepSpeed, Apex.
_ENGINES = ("accelerator", "engine", "fabric", "model", "optimizer", "self", "strategy", "trainer")


class Graphs:
    """The calls of `backward` in a file."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    @cached_property
    def starts(self) -> list[tuple[cst.Call, cst.BaseExpression]]:
        """The calls of `backward` in source order, each with the loss that it starts from.

        Calls with a gradient of their own are left out, because they do not start from a loss.
        """
        calls = [call for call in self._tree.all(cst.Call) if is_backward(call)]
        return [(call, _start(call)) for call in calls if not _has_gradient(call)]


def _start(call: cst.Call) -> cst.BaseExpression:
    """The loss that a `backward` starts from: `loss.backward()`, `accelerator.backward(loss)`."""
    assert isinstance(call.func, cst.Attribute)
    given = _positional(call)
    return given[0] if given and _is_of_engine(call) else call.func.value


def _has_gradient(call: cst.Call) -> bool:
    """Whether a `backward` takes more than a loss: `outputs.backward(gradient)`, a hand-written `backward(x, y)`."""
    keywords = {arg.keyword.value for arg in call.args if arg.keyword is not None}
    return bool(keywords & {"gradient", "grad_tensors"}) or len(_positional(call)) > _is_of_engine(call)


def _positional(call: cst.Call) -> list[cst.BaseExpression]:
    return [arg.value for arg in call.args if arg.keyword is None and not arg.star]


def _is_of_engine(call: cst.Call) -> bool:
    """Whether a `backward` takes the loss as an argument."""
    assert isinstance(call.func, cst.Attribute)
    name = (dotted(call.func.value) or "").rpartition(".")[2]
    return call.func.attr.value == "manual_backward" or name.endswith(_ENGINES)
