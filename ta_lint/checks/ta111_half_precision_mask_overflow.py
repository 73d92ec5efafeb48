"""TA111: a mask contains a number beyond half precision, in a file or project that uses half precision."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.edits import ProposedFix, replace
from ta_lint.syntax.tree import Node, argument, dotted

KEYWORDS = (("*mask*", "*bias*", "float16", "half"), ("float16", "half", "masked_fill", "masked_fill_"))

_LARGEST = 65520.0  # the smallest number that rounds to infinity
_KEEPS = frozenset("bool expand int long reshape unsqueeze view".split())
_DEPTH = 5
_HALVES = frozenset({"torch.float16", "torch.half"})


# Calls that convert a model, or its results, to half precision.
_TO_HALF = (
    *("fp16", "GradScaler", ".half()", "torch.float16", "torch.half"),
    *("precision=16", 'precision="16', "precision='16", '"16-mixed"', "'16-mixed'"),
)


def check(module: FileFacts) -> Iterator[Suspicion]:
    yield from _fills(module)
    if not _runs_half(module):
        return
    for product in module.tree.all(cst.BinaryOperation):
        if not isinstance(product.operator, cst.Multiply):
            continue
        for literal, mask in ((product.left, product.right), (product.right, product.left)):
            number = module.number(literal)
            if number is not None and abs(number) >= _LARGEST and _is_mask(module, mask):
                cure = _within(number)
                message = f"`{module.code(literal)}` is infinite in half precision, whose limit is 65504: use `{cure}`"
                yield Suspicion(product, message, fix=_fix(literal, number))


def _fills(module: FileFacts) -> Iterator[Suspicion]:
    """Scores that are filled with a number that half precision refuses, in a project that uses it."""
    fills = [
        (call, given)
        for call in module.tree.all(cst.Call)
        if called_name(call) in ("masked_fill", "masked_fill_")
        and (given := argument(call, "value", 1)) is not None
        and (module.number(given) or 0.0) <= -_LARGEST
    ]
    if not fills or not _is_near_half(module):
        return
    for call, given in fills:
        if isinstance(call.func, cst.Attribute) and not _is_full(module, call.func.value):
            if _fills_itself(call, call.func.value):
                continue
            if isinstance(module.tree.home(call), cst.Module) and not _is_half_here(module):
                continue  # no code of another file runs this
            message = f"`{module.code(given)}` raises in half precision, whose limit is 65504: use `torch.finfo(dtype).min`"
            yield Suspicion(call, message, is_note=not _is_in_model(module, call), in_tests=False)


def _is_in_model(module: FileFacts, call: cst.Call) -> bool:
    """Whether a call is in a module, which runs as its model does; a beam search may get scores in float32."""
    klass = module.tree.enclosing(call, cst.ClassDef)
    return isinstance(klass, cst.ClassDef) and module.classes.derives(klass, "torch.nn.Module")


def _is_near_half(module: FileFacts) -> bool:
    """Whether this file or one around it uses half precision. Autocast does unless `bfloat16` is mentioned, which has
    the range of float32.
    """
    if module.is_nearby(*_TO_HALF):
        return True
    return module.is_nearby("autocast") and not module.is_nearby("bfloat16")


def _fills_itself(call: cst.Call, filled: Node) -> bool:
    """Whether a mask is filled where it is 0 itself, so that its type is that of a mask: `mask.masked_fill(mask == 0, -1e9)`."""
    condition = argument(call, "mask", 0)
    compared = condition.left if isinstance(condition, cst.Comparison) else None
    return compared is not None and dotted(filled) is not None and dotted(compared) == dotted(filled)


def _is_half_here(module: FileFacts) -> bool:
    """Whether the text of this file mentions half precision."""
    return any(word in module.source.text for word in (*_TO_HALF, "autocast"))


def _is_full(module: FileFacts, scores: Node) -> bool:
    """Whether scores are turned into float32, or a mask is filled that is made here."""
    parts = module.parts.of(scores)
    names = {name.value for part in parts for name in module.tree.within(part, cst.Name)}
    return not names.isdisjoint({"float", "float32", "zeros", "zeros_like", "ones", "full"})


def _runs_half(module: FileFacts) -> bool:
    """Whether a file converts tensors or modules to half precision; a mention in a comparison does not count."""
    tree = module.tree
    for call in tree.all(cst.Call):
        if called_name(call) == "half" and isinstance(call.func, cst.Attribute) and not call.args:
            return True
        if any(_may_be_half(arg.value) and module.qualified(arg.value) in _HALVES for arg in call.args):
            return True
    return False


def _may_be_half(node: Node) -> bool:
    """Whether an expression is a plain name, which may stand for anything, or ends in the name of half precision."""
    return type(node) is cst.Name or (type(node) is cst.Attribute and node.attr.value in ("float16", "half"))


def _is_mask(module: FileFacts, node: Node) -> bool:
    """Whether a factor is a mask that may be in half precision: `(1.0 - mask)` or `mask`, but not `mask.float()`."""
    if _is_made_of_truths(module, node):
        return True
    names = [name.value for name in module.tree.within(node, cst.Name)]
    if "float" in names or "float32" in names:
        return False
    return any("mask" in name.lower() for name in names) and dotted(node) != "self"


def _is_made_of_truths(module: FileFacts, node: Node) -> bool:
    """Whether a value is a comparison, or a mask, as a number in half precision, or in the type of a tensor that may be, whatever it is called:
    `(steps >= lengths).half()`, `1 - (ids != 0)[:, None].to(hidden.dtype)`.
    """
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Subtract):
        node = node.right if module.number(node.left) == 1 else node
    cast = module.kinds.origin(node)
    if not isinstance(cast, cst.Call) or not isinstance(cast.func, cst.Attribute):
        return False
    name, given = cast.func.attr.value, [arg.value for arg in cast.args]
    is_half = any(_is_type_of_tensor(one) or module.qualified(one) in _HALVES for one in given)
    halves = name == "half" if not given else name == "type_as" or (name in ("to", "type") and is_half)
    return halves and _holds_truths(module, cast.func.value)


def _holds_truths(module: FileFacts, node: Node) -> bool:
    """Whether a value is a comparison, or what is called a mask before it gets another name: `bias = mask[:, None].to(scores.dtype)`."""
    made = _reshaped(module, node)
    named = made.name if isinstance(made, cst.Param) else made
    is_called_so = isinstance(named, cst.Name) and "mask" in named.value.lower()
    return is_called_so or isinstance(made, cst.Comparison)


def _is_type_of_tensor(node: Node) -> bool:
    return isinstance(node, cst.Attribute) and node.attr.value == "dtype"


def _reshaped(module: FileFacts, node: Node) -> Node:
    """The value that an expression has the numbers of, in another shape or whole: `keep` of `keep[:, None].long()`."""
    for _ in range(_DEPTH):
        inner = module.kinds.origin(node)
        if isinstance(inner, cst.Call) and called_name(inner) in _KEEPS:
            inner = inner.func
        if not isinstance(inner, (cst.Attribute, cst.Subscript)):
            return inner
        node = inner.value
    return node


def _within(number: float) -> str:
    return "-1e4" if number < 0 else "1e4"


def _fix(literal: Node, number: float) -> ProposedFix | None:
    """A number within half precision, and far below attention scores."""
    if not isinstance(literal, (cst.UnaryOperation, cst.Float, cst.Integer)):
        return None
    return ProposedFix("use a number that half precision holds", (replace(literal, _within(number)),))
