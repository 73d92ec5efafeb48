"""TA217: `device == "cuda"` is False for every `torch.device`, so its branch never runs."""

import re
from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.syntax.edits import Edit, ProposedFix, call_method, wrap
from ta_lint.syntax.tree import Node, dotted, literal_text

KEYWORDS = ("*device*",)

# What `torch.device` takes, and what people write for it.
_DEVICE = regex(
    r"(cpu|cuda|gpu|hip|hpu|ipu|maia|meta|mps|mtia|npu|privateuseone|tpu|vulkan|xla|xpu)(:\d+)?",
    re.IGNORECASE,
)
_MOVES = frozenset({"cpu", "cuda", "detach"})

_RESULTS = {cst.Equal: "False", cst.In: "False", cst.NotEqual: "True", cst.NotIn: "True"}


def check(module: FileFacts) -> Iterator[Suspicion]:
    for comparison in module.tree.all(cst.Comparison):
        operator = comparison.comparisons[0].operator
        result = _RESULTS.get(type(operator))
        left, right = comparison.left, comparison.comparisons[0].comparator
        if result is None or len(comparison.comparisons) > 1:
            continue
        is_membership = isinstance(operator, (cst.In, cst.NotIn))
        sides = [(left, right)] if is_membership else [(left, right), (right, left)]
        for device, other in sides:
            texts = _texts(other, is_membership)
            if texts and module.devices.is_device(device) and not _suits_each(comparison, device, module):
                code = module.code(device)
                message = f"`{module.code(comparison)}` is always {result}: `{code}` is a `torch.device`, so compare `{code}.type`"
                yield Suspicion(comparison, message, fix=_fix(device, code, texts))


def _suits_each(comparison: cst.Comparison, device: cst.BaseExpression, module: FileFacts) -> bool:
    """Whether a test of `x.device` that always holds only moves `x`, which does no harm where it is in place: `x = x.cpu()`."""
    branch = module.tree.parent[comparison]
    is_certain = _RESULTS[type(comparison.comparisons[0].operator)] == "True"
    name = dotted(device.value) if isinstance(device, cst.Attribute) else None
    if not is_certain or name is None:
        return False
    if isinstance(branch, cst.IfExp):
        return dotted(branch.orelse) == name and _is_moved(branch.body, name)
    if not isinstance(branch, cst.If) or branch.orelse is not None:
        return False
    lines = [one for part in branch.body.body for one in getattr(part, "body", [part])]
    return all(
        isinstance(one, cst.Assign)
        and [dotted(target.target) for target in one.targets] == [name]
        and _is_moved(one.value, name)
        for one in lines
    )


def _is_moved(value: Node, name: str) -> bool:
    """Whether a value is a variable itself, on another device or detached."""
    while isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute):
        method = value.func.attr.value
        is_place = len(value.args) == 1 and bool(_texts(value.args[0].value, is_membership=False))
        if not (is_place if method == "to" else method in _MOVES and not value.args):
            return False
        value = value.func.value
    return dotted(value) == name


def _texts(node: Node, is_membership: bool) -> list[str]:
    """The names of devices that a value is compared with; empty if anything else is among them."""
    elements: list[Node] = [node]
    if is_membership:
        if not isinstance(node, (cst.Tuple, cst.List, cst.Set)):
            return []
        elements = [element.value for element in node.elements]
    texts = [literal_text(element) for element in elements]
    named = [text for text in texts if text is not None and _DEVICE.fullmatch(text)]
    return named if len(named) == len(texts) else []


def _fix(device: cst.BaseExpression, code: str, texts: list[str]) -> ProposedFix | None:
    """Compare the type, or the text where an index is meant."""
    with_index = {":" in text for text in texts}
    if len(with_index) > 1:
        return None
    edits: tuple[Edit, ...] = wrap(device, "str(", ")") if with_index.pop() else call_method(device, ".type")
    return ProposedFix("compare its type", edits)
