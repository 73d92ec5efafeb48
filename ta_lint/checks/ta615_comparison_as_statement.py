"""TA615: `p.requires_grad == False` as a statement compares and discards the result instead of assigning."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.syntax.edits import Anchor, ProposedFix, Replacement, Side
from ta_lint.syntax.tree import Node

_ATTRIBUTES = "grad|requires_grad|training|weight_decay"
_KEYS = "betas|initial_lr|lr|momentum|weight_decay"
KEYWORDS = (
    ("grad", "requires_grad", "training", "weight_decay", "betas", "initial_lr", "lr", "momentum"),
    ("==", "is"),
)

_SETTABLE = regex(_ATTRIBUTES)
_SETTING = regex(rf"[\"']({_KEYS})[\"']")


def check(module: FileFacts) -> Iterator[Suspicion]:
    for statement in module.tree.all(cst.Expr):
        compared = statement.value
        if not isinstance(compared, cst.Comparison) or len(compared.comparisons) != 1:
            continue
        target = compared.comparisons[0]
        sets = isinstance(target.operator, (cst.Equal, cst.Is)) and _is_settable(compared.left)
        if sets and not module.is_shown(statement):
            message = (
                f"`{module.code(compared.left)}` is compared, not set, which does nothing; did you mean `=`?"
            )
            yield Suspicion(compared, message, fix=_fix(module, compared, target))


def _is_settable(node: Node) -> bool:
    """Whether training code assigns this attribute or key, which only torch's objects have."""
    if isinstance(node, cst.Attribute):
        return _SETTABLE.fullmatch(node.attr.value) is not None
    if not isinstance(node, cst.Subscript) or len(node.slice) != 1:
        return False
    index = node.slice[0].slice
    key = index.value if isinstance(index, cst.Index) else None
    return isinstance(key, cst.SimpleString) and _SETTING.fullmatch(key.value) is not None


def _fix(module: FileFacts, compared: cst.Comparison, target: cst.ComparisonTarget) -> ProposedFix | None:
    if module.is_in_parentheses(compared):
        return None
    edit = Replacement(Anchor(compared.left, Side.END), Anchor(target.comparator, Side.START), " = ")
    return ProposedFix("assign", (edit,))
