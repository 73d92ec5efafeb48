"""TA522: a term of a loss is detached, so it trains nothing."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.loops.gradients import Flow
from ta_lint.facts.loops.summing import returned_losses, terms_of
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.edits import ProposedFix, unwrap
from ta_lint.syntax.tree import Node, dotted

KEYWORDS = (("detach", "detach_", "item", "data", "float", "numpy", "tolist", "tensor"),)
AROUND = (("*backward", "training_step"),)

_BASELINE = regex(r"\w*(baseline|old|prev|best|target|ref|teacher|running|avg|ema)\w*")


def check(module: FileFacts) -> Iterator[Suspicion]:
    seen: set[Node] = set()
    for loss in _losses(module):
        if module.gradients.of(loss).flow is Flow.NO:
            continue
        terms = terms_of(module.flow, module.names, loss)
        live = [term for term in terms if module.gradients.of(term).flow is not Flow.NO]
        cuts = {cut: term for term in terms if (cut := _cut(module, term)) is not None}
        if not live or any(_is_shown_for(module, cut, live) for cut in cuts):
            continue
        for cut, term in cuts.items():
            if cut not in seen and module.is_here(cut) and not _is_taken_off_again(module, term, live):
                seen.add(cut)
                yield _suspicion(module, cut, term)


def _losses(module: FileFacts) -> Iterator[Node]:
    """Losses: the values on which `backward` is called, and the results of a Lightning `training_step`."""
    for loss in module.gradients.losses:
        yield loss.value
    yield from returned_losses(module.tree, module.classes)


def _suspicion(module: FileFacts, cut: Node, term: Node) -> Suspicion:
    name = module.code(term)
    told = f"`{name}`" if len(name) < 30 else "this term"
    message = f"{told} is in the loss but trains nothing, as this call cuts its gradient: remove the call"
    related = ((term, "the term of the loss"),) if module.is_here(term) and term is not cut else ()
    operand = _operand(cut)
    is_method = isinstance(cut, cst.Attribute) or (
        isinstance(cut, cst.Call) and isinstance(cut.func, cst.Attribute) and operand is cut.func.value
    )
    fix = (
        ProposedFix("keep the gradient", unwrap(cut, operand)) if is_method and operand is not None else None
    )
    return Suspicion(cut, message, related, fix)


def _cut(module: FileFacts, term: Node) -> Node | None:
    """What takes the gradient of a term that a network computes, and leaves none."""
    gradient = module.gradients.of(term)
    if gradient.flow is not Flow.NO or gradient.cut is None or gradient.cut.steps:
        return None
    cut = gradient.cut.node
    operand = _operand(cut)
    if operand is None or _is_named(term) or _is_named(operand) or _is_difference(operand):
        return None
    return cut if _is_parameter(module, operand) or module.gradients.reaches_network(operand) else None


def _is_parameter(module: FileFacts, node: Node) -> bool:
    """Whether a value is the loop variable of a loop over a model's parameters."""
    loops = [origin.node for origin in module.flow.of(node).origins]
    return any(
        isinstance(loop, (cst.For, cst.CompFor))
        and isinstance(loop.iter, cst.Call)
        and called_name(loop.iter) in ("parameters", "named_parameters")
        for loop in loops
    )


def _operand(cut: Node) -> cst.BaseExpression | None:
    """`x` of `x.detach()`, `x.data` and `float(x)`."""
    if isinstance(cut, cst.Attribute):
        return cut.value
    if not isinstance(cut, cst.Call):
        return None
    if isinstance(cut.func, cst.Attribute) and not cut.args:
        return cut.func.value
    return cut.args[0].value if cut.args else None


def _is_named(node: Node) -> bool:
    """Whether a value is called like one that is subtracted to compare with."""
    return _BASELINE.fullmatch((dotted(node) or "").rpartition(".")[2]) is not None


def _is_difference(node: Node) -> bool:
    """Whether it is the second part of a straight-through estimate: `x + (y - x).detach()`."""
    return isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Subtract)


def _is_shown_for(module: FileFacts, cut: Node, live: list[Node]) -> bool:
    """Whether the gradient of a value is taken with the value of another: `a - a.detach() + b.detach()`."""
    operand = _operand(cut)
    return operand is not None and module.code(operand) in [module.code(term) for term in live]


def _is_taken_off_again(module: FileFacts, term: Node, live: list[Node]) -> bool:
    """Whether the gradient of a value comes by another term that is computed from it: `m + (x - m).exp().sum().log()`."""
    variable = dotted(term)
    return variable is not None and any(
        dotted(part) == variable for one in live for part in module.tree.within(one, cst.Name, cst.Attribute)
    )
