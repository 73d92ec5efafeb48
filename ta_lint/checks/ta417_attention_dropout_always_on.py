"""TA417: `scaled_dot_product_attention` applies `dropout_p` in evaluation too."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Kind, Suspicion
from ta_lint.syntax.edits import ProposedFix, insert_after, wrap
from ta_lint.syntax.tree import Node, argument, dotted

_FUNCTION = "torch.nn.functional.scaled_dot_product_attention"
KEYWORDS = ("scaled_dot_product_attention",)


_CALLERS_DEEP = 3


def check(module: FileFacts) -> Iterator[Suspicion]:
    if module.is_test:
        return
    for call in module.calls_to(_FUNCTION):
        probability = argument(call, "dropout_p", 4)
        if probability is None or not _is_always_on(module, call) or not _drops(module, probability):
            continue
        given = module.code(probability)
        message = f"`scaled_dot_product_attention` drops with `dropout_p={given}` in evaluation too"
        in_module = module.modes.always_on(call)
        yield Suspicion(call, message, fix=_fix(module, probability) if in_module else None)


def _is_always_on(module: FileFacts, call: cst.Call, depth: int = _CALLERS_DEEP) -> bool:
    """Whether a call runs in every mode: in a method of a module, or in a function that only such methods call."""
    if module.modes.always_on(call):
        return True
    function = module.tree.home(call)
    if depth == 0 or not isinstance(function, cst.FunctionDef) or module.modes.asks(function):
        return False
    sites = module.calls.sites(function) if module.tree.is_at_top(function) else []
    return bool(sites) and all(_is_always_on(module, site, depth - 1) for site in sites)


def _drops(module: FileFacts, probability: Node, depth: int = _CALLERS_DEEP) -> bool:
    """Whether this is a nonzero number, what a constructor was given, the `p` of a dropout layer, or always one of these."""
    origin = module.kinds.origin(probability)
    if (number := module.number(origin)) is not None:
        return number > 0
    if module.modes.asks(origin):
        return False
    if isinstance(origin, cst.IfExp):
        return _drops(module, origin.body, depth) and _drops(module, origin.orelse, depth)
    if isinstance(origin, cst.Param) and not module.kinds.is_setting(origin):
        return depth > 0 and _is_given(module, origin, depth - 1)
    name = dotted(origin) or ""
    if name.startswith("self.") and name.endswith(".p") and isinstance(origin, cst.Attribute):
        return module.kind(origin.value) is Kind.MODULE
    return module.kinds.is_setting(origin)


def _is_given(module: FileFacts, parameter: cst.Param, depth: int) -> bool:
    """Whether each known call gives a parameter such a probability, in every mode."""
    function = module.tree.parent[module.tree.parent[parameter]]
    given = module.calls.given(parameter)
    if given is None or not isinstance(function, cst.FunctionDef):
        return False
    sites = module.calls.sites(function)
    return all(_is_always_on(module, site) for site in sites) and all(
        _drops(module, value, depth) for value in given
    )


def _fix(module: FileFacts, probability: cst.BaseExpression) -> ProposedFix:
    ending = " if self.training else 0.0"
    binds = isinstance(probability, (cst.Name, cst.Attribute, cst.Call, cst.Float, cst.Integer))
    binds = binds or module.is_in_parentheses(probability)
    edits = (insert_after(probability, ending),) if binds else wrap(probability, "(", f"){ending}")
    return ProposedFix("drop in training alone", edits)
