"""TA521: a value's target comes from the network that learns it, and a gradient flows into the target too."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.loops.gradients import Flow
from ta_lint.facts.loops.residuals import Residual, Term
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.differentiation import differentiation
from ta_lint.facts.values.discounting import factors, is_discount
from ta_lint.syntax.edits import ProposedFix, call_method
from ta_lint.syntax.tree import Node

KEYWORDS = (("*mse*", "*huber*", "*smooth*", "square", "pow", "**"),)
AROUND = (("*gamma*", "*discount*", ".9"),)

_ON_PURPOSE = ("residual", "baird", "fullgradient")


def check(module: FileFacts) -> Iterator[Suspicion]:
    seen: set[Node] = set()
    for residual in module.residuals.all:
        for term in residual.terms:
            if term.node in seen or not _is_bootstrap(module, residual, term):
                continue
            network = _trained(module, residual, term)
            if network is not None and not _is_on_purpose(module, residual.loss, term.node):
                seen.add(term.node)
                yield _suspicion(module, residual, term, network)


def _suspicion(module: FileFacts, residual: Residual, term: Term, network: cst.Call) -> Suspicion:
    called = module.code(network.func)
    message = f"the target of `{called}` carries a gradient into `{called}` itself: detach the target"
    marked, other = term.total, residual.loss
    if not module.is_here(marked):
        return Suspicion(other, message)
    factor = next(one for one in factors(term.node) if network in module.gradients.of(one).into)
    return Suspicion(
        marked, message, ((other, "the loss"),), ProposedFix("detach it", call_method(factor, ".detach()"))
    )


def _is_bootstrap(module: FileFacts, residual: Residual, term: Term) -> bool:
    """Whether a term is a discounted value that is added to a reward."""
    parts = list(factors(term.node))
    if len(parts) < 2 or not any(map(is_discount, parts)):
        return False
    return any(
        other.sign == term.sign and other is not term and not _networks(module, other.node)
        for other in residual.terms
    )


def _trained(module: FileFacts, residual: Residual, term: Term) -> cst.Call | None:
    """The call of a network in a term with a gradient, if the other side is an output of this network."""
    if any(_is_detached_somewhere(module, side) for side in residual.sides):
        return None
    reached = {call for side in residual.sides for call in module.gradients.of(side).into}
    predictions = [
        call for other in residual.terms if other.sign != term.sign for call in _networks(module, other.node)
    ]
    return next(
        (
            call
            for call in _networks(module, term.node)
            if call in reached and any(_are_one(module, call, prediction) for prediction in predictions)
        ),
        None,
    )


def _networks(module: FileFacts, node: Node) -> list[cst.Call]:
    """The calls of networks that a gradient flows into from a value."""
    gradient = module.gradients.of(node)
    if gradient.flow is Flow.NO:
        return []
    return [call for call in gradient.into if module.gradients.runs_model(call)]


def _are_one(module: FileFacts, first: cst.Call, second: cst.Call) -> bool:
    """Whether two calls certainly are of one network."""
    loop = module.calls_in_loop
    network = loop.variable(loop.called(first))
    return network is not None and network == loop.variable(loop.called(second))


def _is_detached_somewhere(module: FileFacts, side: Node) -> bool:
    """Whether a setting chooses between a target and the same without its gradient."""
    made = [origin.node for origin in module.flow.of(side).origins]
    return any(
        isinstance(one, cst.Call) and called_name(one) in differentiation().cuts.detaching for one in made
    )


def _is_on_purpose(module: FileFacts, *places: Node) -> bool:
    """Whether a function or class around one of these says that it takes the whole gradient."""
    around = [
        outer.name.value.lower().replace("_", "")
        for place in places
        for outer in module.tree.ancestors(place)
        if isinstance(outer, (cst.ClassDef, cst.FunctionDef))
    ]
    return any(word in name for name in around for word in _ON_PURPOSE)
