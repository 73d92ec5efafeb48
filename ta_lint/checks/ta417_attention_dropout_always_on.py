"""TA417: `scaled_dot_product_attention` applies `dropout_p` in evaluation too."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.syntax.edits import ProposedFix, insert_after, wrap
from ta_lint.syntax.tree import argument

_FUNCTION = "torch.nn.functional.scaled_dot_product_attention"
KEYWORDS = ("scaled_dot_product_attention",)


def check(module: FileFacts) -> Iterator[Suspicion]:
    for call in module.calls_to(_FUNCTION):
        probability = argument(call, "dropout_p", 4)
        if probability is None or not module.dropping.is_always_on(call):
            continue
        if not module.dropping.drops(probability):
            continue
        given = module.code(probability)
        message = f"`scaled_dot_product_attention` applies `dropout_p={given}` in evaluation too: use 0 unless `self.training`"
        in_module = module.modes.always_on(call)
        yield Suspicion(call, message, fix=_fix(module, probability) if in_module else None)


def _fix(module: FileFacts, probability: cst.BaseExpression) -> ProposedFix:
    ending = " if self.training else 0.0"
    binds = isinstance(probability, (cst.Name, cst.Attribute, cst.Call, cst.Float, cst.Integer))
    binds = binds or module.is_in_parentheses(probability)
    edits = (insert_after(probability, ending),) if binds else wrap(probability, "(", f"){ending}")
    return ProposedFix("drop in training alone", edits)
