"""Sees squared differences with a target that a network computes, on thorough steps (`facts.Step.thorough`) alone."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from torch import Tensor

from ta_runtime.facts import Residual
from ta_runtime.observers.observer import ThoroughObserver
from ta_runtime.probes.backward import in_backward
from ta_runtime.probes.patching import Call, Watch
from ta_runtime.probes.places import caller, here, is_library

_MOST = 64  # differences of one step
_TERMS = 16  # terms of one difference
_WHOLE = 2000  # nodes of a graph that is seen whole
_LOSSES = frozenset({"mse_loss", "smooth_l1_loss", "huber_loss"})
_POWERS = frozenset({"pow", "__pow__"})

# What leaves a value what it is: its shape and type aside.
_PASSING = frozenset(
    f"{name}Backward{number}"
    for name in (
        "Alias", "Clone", "Expand", "Permute", "ReshapeAlias", "Squeeze", "T", "ToCopy", "Transpose", "UnsafeView", "Unsqueeze",
        "View",
    )
    for number in (0, 1, 2)
)  # fmt: skip


class _Term(NamedTuple):
    """A summand of a difference: the node that computes it, None of data."""

    node: Any
    sign: int


class Residuals(ThoroughObserver):
    """Watches such losses for one window at a time."""

    rules = frozenset({"TA521"})

    def _watches(self) -> Mapping[str, Watch]:
        return {"loss": self._compared, "elementary": self._raised}

    def _compared(self, call: Call) -> None:
        if call.function.__name__ in _LOSSES:
            given, target = call.given(0, "input"), call.given(1, "target")
            if type(given) is Tensor and type(target) is Tensor:
                self._note([_Term(target.grad_fn, 1), _Term(given.grad_fn, -1)])

    def _raised(self, call: Call) -> None:
        if call.function.__name__ not in _POWERS or is_library(caller().f_code.co_filename):
            return
        base, exponent = call.given(0, "input"), call.given(1, "exponent")
        if type(base) is Tensor and type(exponent) in (int, float) and exponent == 2:
            self._note([_Term(base.grad_fn, 1)])

    def _note(self, sides: list[_Term]) -> None:
        step = self.session.window.step
        if step is None or in_backward() or len(step.residuals) == _MOST:
            return
        terms = [term for side in sides for term in _terms(side)]
        learned = [term for term in terms if term.node is not None]
        if len(terms) < 2 or len(terms) > _TERMS or not learned:
            return
        shared = 0 if len(learned) == 1 else _shared(terms)
        if shared is not None:
            step.residuals.append(Residual(here(), shared))


def _terms(side: _Term) -> Iterator[_Term]:
    """The summands of a value, each with its sign."""
    pending = [side]
    found = 0
    while pending and found <= _TERMS:
        node, sign = pending.pop()
        name = node.name() if node is not None else ""
        if name in _PASSING:
            pending.append(_Term(node.next_functions[0][0], sign))
        elif name == "NegBackward0":
            pending.append(_Term(node.next_functions[0][0], -sign))
        elif name in ("AddBackward0", "SubBackward0", "RsubBackward1"):
            first, second = _inputs(node)
            if name.startswith("Rsub"):
                first, second = second, first
            pending += [_Term(first, sign), _Term(second, sign if name.startswith("Add") else -sign)]
        else:
            found += 1
            yield _Term(node, sign)


def _inputs(node: Any) -> tuple[Any, Any]:
    """The nodes of both operands; a number is none."""
    above = [one for one, _ in node.next_functions]
    return (above[0], above[1] if len(above) > 1 else None)


def _shared(terms: list[_Term]) -> int | None:
    """How many weights a target, data plus a scaled output, has in common with what it is compared with; None of other differences."""
    for term in terms:
        is_added = any(other.node is None and other.sign == term.sign for other in terms)
        if term.node is None or not is_added or not _is_scaled(term.node):
            continue
        weights = _weights(term.node)
        for other in terms:
            if other.node is None or other.sign == term.sign or weights is None:
                continue
            common = _weights(other.node)
            if common is not None and weights & common:
                return len(weights & common)
    return None


def _is_scaled(node: Any) -> bool:
    """Whether a node multiplies one value that has a graph by data, once or more, and so it stays."""
    return node.name() == "MulBackward0" and sum(one is not None for one, _ in node.next_functions) == 1


def _weights(root: Any) -> set[int] | None:
    """The ids of the weights that a graph leads to; None if it is too large to be seen whole."""
    stack, seen, found = [root], {root}, set()
    while stack:
        node = stack.pop()
        variable = getattr(node, "variable", None)
        if variable is not None and variable.dim() > 1:
            found.add(id(variable))
        for above, _ in node.next_functions:
            if above is not None and above not in seen:
                seen.add(above)
                stack.append(above)
        if len(seen) > _WHOLE:
            return None
    return found
