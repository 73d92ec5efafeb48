"""Losses: which calls give the mean over a batch, and which the sum."""

from collections.abc import Callable

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts.loops.calls_in_loop import CallsInLoop
from ta_lint.facts.values.flow import ValueFlow
from ta_lint.facts.values.kinds import Kinds
from ta_lint.facts.values.names import Names
from ta_lint.syntax.tree import Node, argument, literal_text, spreads

_FUNCTION = regex(
    r"torch\.nn\.functional\.(\w*_loss|cross_entropy|binary_cross_entropy(_with_logits)?|kl_div)"
)
_CRITERION = regex(r"torch\.nn\.\w+Loss")

# Methods that leave a number what it is.
_SAME_NUMBER = frozenset(
    "clone cpu detach double flatten float item numpy ravel reshape squeeze to tolist unsqueeze view".split()
)
_SAME_NUMBER_FUNCTIONS = frozenset({"builtins.float", "torch.clone"})


class MeanLosses:
    """Queries about the losses of a file."""

    def __init__(self, names: Names, kinds: Kinds, flow: ValueFlow, calls_in_loop: CallsInLoop) -> None:
        self._names = names
        self._kinds = kinds
        self._flow = flow
        self._calls_in_loop = calls_in_loop

    def means(self, value: Node) -> list[cst.Call]:
        """The calls that give a value, if each certainly gives the mean of a batch: `loss`, `loss.item()`; else none."""
        origins = [origin.node for origin in self._flow.of(unwrapped(value, self._names)).origins]
        calls = [unwrapped(node, self._names) for node in origins]
        means = [call for call in calls if isinstance(call, cst.Call) and self.is_mean(call)]
        return means if len(means) == len(origins) else []

    def is_mean(self, call: cst.Call) -> bool:
        """Whether a call certainly gives the mean over a batch, as losses do by default."""
        return self._reduces(call, _averages)

    def is_sum(self, call: cst.Call) -> bool:
        """Whether a call of a loss certainly gives the sum over a batch."""
        return self._reduces(call, _adds_up)

    def _reduces(self, call: cst.Call, how: Callable[[cst.Call], bool]) -> bool:
        if spreads(call):
            return False
        called = self._names.qualified(call.func)
        if called is not None:
            return _FUNCTION.fullmatch(called) is not None and how(call)
        made = [self._kinds.construction(value) for value in self._calls_in_loop.values(call.func)]
        return bool(made) and all(one is not None and self._is_criterion(one) and how(one) for one in made)

    def _is_criterion(self, made: cst.Call) -> bool:
        called = self._names.qualified(made.func) or ""
        return _CRITERION.fullmatch(called) is not None and not spreads(made)


def unwrapped(value: Node, names: Names) -> Node:
    """The value whose number an expression has: `loss` for `loss.detach().cpu().item()` and for `float(loss)`."""
    while isinstance(value, cst.Call):
        func = value.func
        if isinstance(func, cst.Attribute) and func.attr.value in _SAME_NUMBER:
            value = func.value
        elif len(value.args) == 1 and names.qualified(func) in _SAME_NUMBER_FUNCTIONS:
            value = value.args[0].value
        else:
            break
    return value


def _averages(call: cst.Call) -> bool:
    """Whether no argument asks for anything but a mean."""
    reduction = argument(call, "reduction")
    is_mean = reduction is None or literal_text(reduction) in ("mean", "batchmean")
    return is_mean and not any(argument(call, name) is not None for name in ("size_average", "reduce"))


def _adds_up(call: cst.Call) -> bool:
    """Whether an argument asks for the sum."""
    return literal_text(argument(call, "reduction")) == "sum"
