"""TA671: an Ignite score function returns the loss itself, so the worst model is kept and training stops too early."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.torch.scores import is_better_low
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.value import Origin
from ta_lint.syntax.edits import ProposedFix, wrap
from ta_lint.syntax.tree import Node, argument, spreads

KEYWORDS = (("score_function", "EarlyStopping", "get_default_score_fn", "*val_score"),)
AROUND = ("ignite",)

# Functions of Ignite that make a score by the name of a metric: the places of that name and of the sign.
_BY_NAME = (
    (regex(r"ignite\.(\w+\.)*get_default_score_fn"), 0, 1),
    (regex(r"ignite\.(\w+\.)*add_early_stopping_by_val_score"), 3, 4),
    (regex(r"ignite\.(\w+\.)*(gen_save_best_models|save_best_model)_by_val_score"), 3, 7),
)
_SAME = frozenset({"item", "float", "round"})


def check(module: FileFacts) -> Iterator[Suspicion]:
    seen: set[Node] = set()
    for handler in module.ignite.scored:
        mode = argument(handler.call, "mode", 6)
        wants_low = module.string(mode) == "min" if mode is not None else False
        if handler.score is None or (mode is not None and module.string(mode) is None):
            continue
        for score in module.ignite.scores(handler.score):
            if score not in seen and module.is_here(score):
                seen.add(score)
                yield from _of_score(module, score, wants_low)
    for call in module.tree.all(cst.Call):
        yield from _of_name(module, call)


def _of_score(module: FileFacts, score: cst.BaseExpression, wants_low: bool) -> Iterator[Suspicion]:
    value, is_negative = _signed(module, score)
    origins = module.flow.of(value).origins
    named = {_metric(origin) for origin in origins}
    name = named.pop() if len(named) == 1 else None
    is_low = is_better_low(name) if name is not None else None
    if is_low is None or is_low == (is_negative != wants_low):
        return
    is_name_alone = isinstance(score, (cst.Name, cst.Subscript))
    fix = (
        ProposedFix("negate it", wrap(score, "-", "")) if is_name_alone and is_low and not wants_low else None
    )
    best = "lowest" if wants_low else "highest"
    message = f"this takes the worst `{name}` for the best, as the {best} score wins: negate the score"
    yield Suspicion(score, message, fix=fix)


def _signed(module: FileFacts, score: Node) -> tuple[Node, bool]:
    """What a score is made of, and whether with a minus."""
    is_negative = False
    while True:
        match score:
            case cst.UnaryOperation(operator=cst.Minus(), expression=value):
                score, is_negative = value, not is_negative
            case cst.BinaryOperation(left=left, operator=cst.Multiply(), right=right):
                sides = [(left, right), (right, left)]
                found = [(value, module.number(factor)) for factor, value in sides if module.number(factor)]
                if len(found) != 1:
                    return score, is_negative
                score, is_negative = found[0][0], is_negative != ((found[0][1] or 0) < 0)
            case cst.Call() if called_name(score) in _SAME:
                inner = score.args[0].value if score.args else getattr(score.func, "value", score)
                if inner is score or not isinstance(inner, cst.BaseExpression):
                    return score, is_negative
                score = inner
            case cst.Name():
                origins = module.flow.of(score).origins
                if len(origins) != 1 or origins[0].path or isinstance(origins[0].node, (cst.Name, cst.Param)):
                    return score, is_negative
                score = origins[0].node
            case _:
                return score, is_negative


def _metric(origin: Origin) -> str | None:
    """The name of a metric of an engine: `loss` for `engine.state.metrics["loss"]`."""
    path = origin.path
    is_metric = len(path) >= 3 and path[-3] == "state" and path[-2] in ("metrics", "output")
    return path[-1] if is_metric and isinstance(path[-1], str) else None


def _of_name(module: FileFacts, call: cst.Call) -> Iterator[Suspicion]:
    called = module.qualified(call.func) or ""
    for pattern, place, sign_at in _BY_NAME:
        if not pattern.fullmatch(called) or spreads(call):
            continue
        metric, sign = argument(call, "metric_name", place), argument(call, "score_sign", sign_at)
        name = module.string(metric) if metric is not None else None
        factor = module.number(sign) if sign is not None else 1.0
        is_low = is_better_low(name) if name is not None else None
        if name is not None and is_low is not None and factor is not None and is_low == (factor > 0):
            cure = "pass `score_sign=-1.0`" if is_low else "leave out `score_sign`"
            yield Suspicion(
                call, f"this takes the worst `{name}` for the best, as the highest score wins: {cure}"
            )
