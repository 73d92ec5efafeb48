"""Sees products of log-probabilities with what weighs them, on thorough steps (`facts.Step.thorough`) alone."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from torch import Tensor

from ta_runtime.facts import Product
from ta_runtime.observers.observer import ThoroughObserver
from ta_runtime.probes.backward import in_backward
from ta_runtime.probes.patching import Call, End, Watch
from ta_runtime.probes.places import caller, here, is_library

if TYPE_CHECKING:
    from ta_runtime.observers.context import Context

_MOST = 64  # products of one step
_FAR = 32  # nodes between a factor and what made it
_WHOLE = 400  # nodes of a graph that is seen whole

# What a log-probability, or an advantage, goes through and stays one: its sign, scale and shape aside.
_PASSING = frozenset(
    f"{name}Backward{number}"
    for name in (
        "Alias", "Cat", "Clamp", "ClampMax", "ClampMin", "Clone", "Exp", "Expand", "Index", "Mean", "Mul", "Neg", "Permute",
        "ReshapeAlias", "Select", "Slice", "Squeeze", "Stack", "Sum", "T", "ToCopy", "Transpose", "UnsafeView", "Unsqueeze",
        "View",
    )
    for number in (0, 1, 2)
)  # fmt: skip
_CHOOSING = frozenset({"GatherBackward0", "IndexBackward0"})
_LOGARITHMS = frozenset({"LogSoftmaxBackward0", "LogBackward0"})
_DIFFERENCE = "SubBackward0"


class Products(ThoroughObserver):
    """Watches such products for one window at a time."""

    rules = frozenset({"TA542"})

    def __init__(self, session: "Context") -> None:
        super().__init__(session)
        self._key = object()  # of nodes' metadata: other sessions have their own

    def _watches(self) -> Mapping[str, Watch]:
        return {"log_prob": self._chosen, "multiply": self._multiplied}

    def _chosen(self, call: Call) -> End:
        return self._mark

    def _mark(self, call: Call) -> None:
        """Mark the log-probability of an action that no gradient goes through."""
        action, result = call.given(1, "value"), call.result
        if (
            type(result) is Tensor
            and result.grad_fn is not None
            and not getattr(action, "requires_grad", True)
        ):
            node: Any = result.grad_fn
            node.metadata[self._key] = True

    def _multiplied(self, call: Call) -> End:
        return self._note

    def _note(self, call: Call) -> None:
        step, factors = self.session.window.step, call.args[:2]
        if step is None or in_backward() or len(step.products) == _MOST or len(factors) != 2:
            return
        if not all(type(factor) is Tensor for factor in factors) or is_library(caller().f_code.co_filename):
            return
        for one, other in (factors, factors[::-1]):
            if one.grad_fn is not None and self._is_log_probability(one.grad_fn):
                parameters = 0 if other.grad_fn is None else self._parameters(other.grad_fn)
                if other.grad_fn is None or not self._is_log_probability(other.grad_fn):
                    step.products.append(Product(here(), parameters))
                return

    def _is_log_probability(self, node: Any) -> bool:
        """Whether what a node computes is the log-probability of chosen actions, or the ratio of two."""
        way = node
        for _ in range(_FAR):
            if way is None or self._key in way.metadata or _chooses(way):
                return way is not None
            first = way.next_functions[0][0] if way.next_functions else None
            if way.name() == _DIFFERENCE:
                way = first  # of a ratio: what it was before has no graph
                continue
            if way.name() not in _PASSING or (way.name() == "MulBackward0" and _inputs(way) > 1):
                return False
            way = next((above for above, _ in way.next_functions if above is not None), None)
        return False

    def _parameters(self, node: Any) -> int | None:
        """How many parameters the graph of a difference leads to; None of anything else."""
        way = node
        while way is not None and way.name() != _DIFFERENCE:
            if way.name() not in _PASSING and way.name() != "DivBackward0":
                return None
            way = next((above for above, _ in way.next_functions if above is not None), None)
        return _leaves(node) if way is not None else None


def _inputs(node: Any) -> int:
    return sum(above is not None for above, _ in node.next_functions)


def _chooses(node: Any) -> bool:
    """Whether a node takes entries of a log-softmax, or is the logarithm of an entry."""
    inner = node.next_functions[0][0] if node.next_functions else None
    names = {node.name(), inner.name() if inner is not None else ""}
    return len(names) == 2 and not names.isdisjoint(_CHOOSING) and not names.isdisjoint(_LOGARITHMS)


def _leaves(root: Any) -> int | None:
    stack, seen, leaves = [root], {root}, 0
    while stack:
        node = stack.pop()
        variable = getattr(node, "variable", None)
        leaves += variable is not None and variable.dim() > 1
        for above, _ in node.next_functions:
            if above is not None and above not in seen:
                seen.add(above)
                stack.append(above)
        if len(seen) > _WHOLE:
            return None
    return leaves
