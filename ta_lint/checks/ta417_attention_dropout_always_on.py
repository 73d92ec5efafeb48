"""TA417: `scaled_dot_product_attention` applies `dropout_p` in evaluation too."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Kind, Suspicion
from ta_lint.syntax.edits import ProposedFix, insert_after, wrap
from ta_lint.syntax.tree import Node, argument, dotted

_FUNCTION = "torch.nn.functional.scaled_dot_product_attention"
KEYWORDS = ("scaled_dot_product_attention",)


def check(module: FileFacts) -> Iterator[Suspicion]:
    if module.is_test:
        return
    for call in module.calls_to(_FUNCTION):
        probability = argument(call, "dropout_p", 4)
        if probability is None or not module.modes.always_on(call) or not _drops(module, probability):
            continue
        given = module.code(probability)
        message = f"`scaled_dot_product_attention` drops with `dropout_p={given}` in evaluation too"
        yield Suspicion(call, message, fix=_fix(module, probability))


def _drops(module: FileFacts, probability: Node) -> bool:
    """Whether this is a nonzero number, an attribute of `self` that always holds one as far as the class shows, or the
    `p` of a dropout layer."""
    origin = module.kinds.origin(probability)
    if (number := module.number(origin)) is not None:
        return number > 0
    if module.modes.asks(origin):
        return False
    name = dotted(origin) or ""
    if name.startswith("self.") and name.endswith(".p") and isinstance(origin, cst.Attribute):
        return module.kind(origin.value) is Kind.MODULE
    function = module.tree.enclosing(origin, cst.FunctionDef) if isinstance(origin, cst.Param) else None
    return function is not None and function.name.value == "__init__"


def _fix(module: FileFacts, probability: cst.BaseExpression) -> ProposedFix:
    ending = " if self.training else 0.0"
    binds = isinstance(probability, (cst.Name, cst.Attribute, cst.Call, cst.Float, cst.Integer))
    binds = binds or module.is_in_parentheses(probability)
    edits = (insert_after(probability, ending),) if binds else wrap(probability, "(", f"){ending}")
    return ProposedFix("drop in training alone", edits)
