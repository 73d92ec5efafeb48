"""TA542: the weight of a log-probability carries a gradient, so the actor's loss also trains the critic."""

import re
from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.loops.gradients import Flow
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.differentiation import differentiation
from ta_lint.facts.values.discounting import factors
from ta_lint.facts.values.value import Frame
from ta_lint.syntax.edits import ProposedFix, call_method
from ta_lint.syntax.tree import Node, dotted

KEYWORDS = (("*log_p*", "*logp*", "log_softmax", "log"),)
AROUND = (("*reward*", "*return*", "*advantage*", "*critic*", "*value*"),)

_CRITIC = regex(
    r"(\w+_)?(critic|value|baseline|v|q|qf|vf)(_?(net|network|head|fn|function|model|local|1|2))?s?",
    re.IGNORECASE,
)
_ADVANTAGE = regex(r"(\w+_)?(adv|advantage|delta|td_?err|td_?error|gae)s?(_\w+)?", re.IGNORECASE)
_DEPTH = 8


def check(module: FileFacts) -> Iterator[Suspicion]:
    for product in _products(module):
        parts = list(factors(product))
        log_probs = [part for part in parts if module.policies.is_log_probability(part)]
        if not log_probs or module.recording.records(product) is False:
            continue
        if module.gradients.of(log_probs[0]).flow is Flow.NO:
            continue
        for weight in parts:
            network = _trained(module, weight) if weight not in log_probs else None
            if network is not None:
                message = f"the actor's loss also trains `{module.code(network.func)}`: detach `{module.code(weight)}`"
                related = ((network, "what it trains"),) if module.is_here(network) else ()
                fix = ProposedFix("detach it", call_method(weight, ".detach()"))
                yield Suspicion(product, message, related, fix)
                break


def _products(module: FileFacts) -> Iterator[cst.BinaryOperation]:
    """The products of a file, each with all of its factors."""
    for product in module.tree.all(cst.BinaryOperation):
        above = module.tree.parent[product]
        if isinstance(product.operator, cst.Multiply) and not (
            isinstance(above, cst.BinaryOperation) and isinstance(above.operator, cst.Multiply)
        ):
            yield product


def _trained(module: FileFacts, weight: Node) -> cst.Call | None:
    """The call of a network into which a gradient flows through an advantage, or through the value of a critic."""
    gradient = module.gradients.of(weight)
    networks = [call for call in gradient.into if module.gradients.runs_model(call)]
    if gradient.flow is Flow.NO or not networks or _is_detached_somewhere(module, weight):
        return None
    if _is_difference(module, weight, None, _DEPTH):
        return networks[0]
    return next((call for call in networks if _named(call.func, _CRITIC)), None)


def _is_detached_somewhere(module: FileFacts, weight: Node) -> bool:
    """Whether a setting chooses between a value and the same without its gradient."""
    made = [origin.node for origin in module.flow.of(weight).origins]
    return any(
        isinstance(one, cst.Call) and called_name(one) in differentiation().cuts.detaching for one in made
    )


def _is_difference(module: FileFacts, node: Node, frame: Frame | None, depth: int) -> bool:
    """Whether a value is made of a difference of two values, or is called an advantage."""
    if depth == 0:
        return False
    value = module.flow.of(node, (), frame)
    if any(_named(alias, _ADVANTAGE) for alias in value.aliases):
        return True
    for origin in value.origins:
        made = origin.node
        if isinstance(made, cst.BinaryOperation) and isinstance(made.operator, cst.Subtract):
            sides = (made.left, made.right)
            if not any(isinstance(side, (cst.Integer, cst.Float)) for side in sides):
                return True
        if any(_is_difference(module, part, origin.frame, depth - 1) for part in _parts(made)):
            return True
    return False


def _parts(made: Node) -> list[Node]:
    """The values that decide a sign: the sides of a sum or a quotient, and the object of a method."""
    if isinstance(made, cst.BinaryOperation):
        return [made.left] if isinstance(made.operator, cst.Divide) else [made.left, made.right]
    if isinstance(made, cst.UnaryOperation):
        return [made.expression]
    if isinstance(made, cst.Call) and isinstance(made.func, cst.Attribute):
        return [made.func.value, *(arg.value for arg in made.args[:1])]
    return []


def _named(node: Node, pattern: re.Pattern[str]) -> bool:
    return pattern.fullmatch((dotted(node) or "").rpartition(".")[2]) is not None
