"""TA525: one term of a loss is a mean over all elements, another a sum."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.events import suspicion as said
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Said
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.loops.summing import returned_losses, weighted_terms
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.tree import Node

KEYWORDS = ("*sum*",)
AROUND = (("*backward", "training_step"),)

_ONLY_SUM = "this sum grows with the batch, the mean that it is added to does not: use one reduction"
_SMALL = 1e-3
"""Weights below it make up for a sum, as their authors know."""


def check(module: FileFacts) -> Iterator[Suspicion]:
    seen: set[Node] = set()
    for loss in _losses(module):
        terms = weighted_terms(module.flow, module.number, loss)
        means = [term for term in terms if _is_mean(module, term.made)]
        for term in terms if means else ():
            beside = [mean for mean in means if mean.stands_beside(term)]
            if beside and term.made not in seen and term.weight >= _SMALL and _is_sum(module, term.made):
                seen.add(term.made)
                yield from _suspicion(module, term.made, beside[0].made)


def check_run(run: Run) -> Iterator[Said]:
    """What only running the program shows, such as a loss in a module of its own."""
    for mixed in run.mixed_sums:
        if mixed.weight >= 1:  # a smaller one may divide by the batch, as a number like `6 / 32` does
            yield said.Suspicion(mixed.total, _ONLY_SUM, related=((mixed.mean, "the mean"),))


def _suspicion(module: FileFacts, total: Node, mean: Node) -> Iterator[Suspicion]:
    if not module.is_here(total):
        return
    message = f"this sum grows with the batch, and `{module.code(mean)}` does not: use one reduction for both"
    if len(message) > 100:
        message = _ONLY_SUM
    yield Suspicion(total, message, ((mean, "the mean"),) if module.is_here(mean) else ())


def _losses(module: FileFacts) -> Iterator[Node]:
    for loss in module.gradients.losses:
        yield loss.value
    yield from returned_losses(module.tree, module.classes)


def _is_mean(module: FileFacts, made: Node) -> bool:
    return isinstance(made, cst.Call) and module.losses.is_mean(made)


def _is_sum(module: FileFacts, made: Node) -> bool:
    """Whether a call adds up all that a network computes for a batch, with nothing in it that is a mean."""
    if not isinstance(made, cst.Call):
        return False
    summed = made if module.losses.is_sum(made) else _summed(module, made)
    if summed is None or not module.gradients.reaches_network(summed):
        return False
    return not any(
        called_name(call) == "mean"
        for part in module.parts.of(summed)
        for call in module.tree.within(part, cst.Call)
    )


def _summed(module: FileFacts, call: cst.Call) -> Node | None:
    """`x` of `x.sum()` and `torch.sum(x)`: of all elements."""
    called = module.qualified(call.func)
    if called == "torch.sum":
        return call.args[0].value if len(call.args) == 1 else None
    is_method = called is None and isinstance(call.func, cst.Attribute) and not call.args
    return call.func.value if is_method and call.func.attr.value == "sum" else None  # type: ignore[attr-defined]
