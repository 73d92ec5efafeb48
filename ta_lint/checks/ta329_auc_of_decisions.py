"""TA329: the area under a curve is computed from decisions instead of scores."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.torch.losses import unwrapped
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.value import Frame, Origin, Path
from ta_lint.syntax.tree import Node, argument, spreads

KEYWORDS = (("roc_auc_score", "average_precision_score", "roc_curve", "precision_recall_curve"),)

_AREA = regex(
    r"sklearn\.metrics\.(\w+\.)*(roc_auc_score|average_precision_score|roc_curve|precision_recall_curve)"
)
_DECIDES = frozenset("argmax round gt ge lt le".split())
_CASTS = frozenset("int long bool astype flatten ravel reshape squeeze unsqueeze view".split())
_JOINS = frozenset(
    "numpy.array numpy.asarray numpy.concatenate numpy.hstack numpy.stack numpy.vstack torch.as_tensor torch.cat "
    "torch.concat torch.hstack torch.stack torch.tensor torch.vstack".split()
)
_CHOOSES = frozenset(("numpy.where", "torch.where"))
_DEPTH = 5


def check(module: FileFacts) -> Iterator[Suspicion]:
    for call in module.tree.all(cst.Call):
        called = module.qualified(call.func)
        if called is None or _AREA.fullmatch(called) is None or spreads(call):
            continue
        scores = argument(call, "y_score", 1)
        decisions = _decisions(scores, module) if scores is not None else []
        if decisions:
            name = called.rpartition(".")[2]
            message = f"`{name}` gets thresholded values, so it sees only one threshold: pass the scores"
            yield Suspicion(call, message, ((decisions[0], "the scores are decided here"),))


def _decisions(scores: Node, module: FileFacts) -> list[Node]:
    """The expressions that a value is, if each decides for a class: a comparison, `argmax`, a rounding; else none."""
    found: list[Node] = []
    for origin in _origins(scores, module):
        if not _decides(origin, module):
            return []
        found.append(origin.node)
    return found


def _origins(
    scores: Node, module: FileFacts, path: Path = (), frame: Frame | None = None, depth: int = _DEPTH
) -> list[Origin]:
    """The origins of scores, through calls that only change their container or join several, and lists that collect batches."""
    found: list[Origin] = []
    scores = _unwrapped(scores, module)
    for origin in module.flow.of(scores, path, frame).origins:
        inner = _unwrapped(origin.node, module)
        joined = _joined(inner, module)
        if depth and joined is not None:
            found += _origins(joined, module, (None,), origin.frame, depth - 1)
        elif depth and inner is not origin.node and origin.path in ((), (None,)):
            found += _origins(inner, module, (), origin.frame, depth - 1)
        elif depth and isinstance(origin.node, cst.List) and not path:
            found += _origins(scores, module, (None,), frame, depth - 1)
        else:
            found.append(origin)
    return found


def _joined(value: Node, module: FileFacts) -> Node | None:
    """What a call joins to one array: a list of arrays, or of numbers."""
    if not isinstance(value, cst.Call) or not value.args or value.args[0].star:
        return None
    return value.args[0].value if module.qualified(value.func) in _JOINS else None


def _unwrapped(value: Node, module: FileFacts) -> Node:
    """The value that an expression converts to another type: `mask` of `mask.long().numpy()`."""
    value = unwrapped(value, module.names)
    while isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute):
        if value.func.attr.value not in _CASTS:
            break
        value = unwrapped(value.func.value, module.names)
    return value


def _decides(origin: Origin, module: FileFacts) -> bool:
    node = origin.node
    if isinstance(node, cst.Comparison):
        return True
    if not isinstance(node, cst.Call):
        return False
    if module.qualified(node.func) in _CHOOSES:
        return len(node.args) == 3 and all(module.number(arg.value) is not None for arg in node.args[1:])
    if called_name(node) == "max":
        return origin.path == (1,) and len(node.args) > 1
    return called_name(node) in _DECIDES
