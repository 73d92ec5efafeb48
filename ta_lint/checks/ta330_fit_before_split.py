"""TA330: a transformer is fitted to all rows before they are split."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.torch.splits import is_for_training
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.tree import Node, dotted, is_name

KEYWORDS = (("train_test_split", "random_split", "sklearn"), ("fit", "fit_transform", "std", "max"))

_SPLITS = ("sklearn.model_selection.train_test_split", "torch.utils.data.random_split")
_FOLDS = regex(r"sklearn\.model_selection\.(\w+\.)*\w+(Fold|Split|Out)")
# Those whose `fit` looks at the values of all rows; others look at one row, or name the classes of a target.
_FITS = regex(
    r"sklearn\.(preprocessing\.(\w+\.)*(StandardScaler|MinMaxScaler|MaxAbsScaler|RobustScaler|QuantileTransformer|"
    r"PowerTransformer|KBinsDiscretizer)|decomposition\.(\w+\.)*[A-Z]\w*|impute\.(\w+\.)*[A-Z]\w*|"
    r"feature_selection\.(\w+\.)*[A-Z]\w*)"
)
# Calls that return the same rows in another container.
_CASTS = frozenset(
    "array as_tensor asarray astype DataFrame double float FloatTensor from_numpy numpy Tensor tensor TensorDataset to "
    "to_numpy values".split()
)
_METHODS = frozenset("astype double float numpy to to_numpy".split())
_SPREADS = frozenset(("std", "max"))
_DEPTH = 4
_FEW = 10  # rows, or columns, that are no part of the data


def check(module: FileFacts) -> Iterator[Suspicion]:
    reported: set[Node] = set()
    for split, rows in (*_splits(module), *_cuts(module)):
        fitted = _fitted(rows, module)
        if fitted is not None and fitted not in reported:
            reported.add(fitted)
            message = "this fits on all rows, test rows included: split first, then fit on the training part"
            yield Suspicion(fitted, message, ((split, "the rows are split here"),))


def _splits(module: FileFacts) -> Iterator[tuple[Node, Node]]:
    """The calls that split rows, also fold by fold, with these."""
    folds = (call for call in module.tree.all(cst.Call) if _is_in_folds(call, module))
    for split in (*module.calls_to(*_SPLITS), *folds):
        if split.args and split.args[0].keyword is None and not split.args[0].star:
            yield split, split.args[0].value


def _is_in_folds(call: cst.Call, module: FileFacts) -> bool:
    """Whether a call is `KFold(5).split(rows)` or the like."""
    if called_name(call) != "split" or not isinstance(call.func, cst.Attribute):
        return False
    made = module.kinds.construction(call.func.value)
    return made is not None and _FOLDS.fullmatch(module.qualified(made.func) or "") is not None


def _cuts(module: FileFacts) -> Iterator[tuple[Node, Node]]:
    """Rows that are cut in two, `rows[:count]` and `rows[count:]`: each second part, with the rows."""
    parts = [
        (one, bounds)
        for one in module.tree.all(cst.Subscript)
        if (bounds := _bounds(one, module)) is not None
    ]
    firsts = {(module.tree.home(one), dotted(one.value), upper) for one, (lower, upper) in parts if not lower}
    for one, (lower, upper) in parts:
        if not upper and (module.tree.home(one), dotted(one.value), lower) in firsts:
            yield one, one.value


def _bounds(part: cst.Subscript, module: FileFacts) -> tuple[str, str] | None:
    """Where a slice of the rows of a variable begins and ends, as it is written; None if at both, at neither, or beside a few rows."""
    cut = part.slice[0].slice
    if dotted(part.value) is None or not isinstance(cut, cst.Slice) or cut.step is not None:
        return None
    ends = [end for end in (cut.lower, cut.upper) if end is not None]
    number = module.number(ends[0]) if len(ends) == 1 else 0
    if number is not None and abs(number) < _FEW:
        return None
    lower, upper = ("" if end is None else module.code(end) for end in (cut.lower, cut.upper))
    return lower, upper


def _fitted(rows: Node, module: FileFacts, depth: int = _DEPTH) -> Node | None:
    """What was fitted to all of the rows that are split; None where one way leads to other rows."""
    if not depth or is_for_training(dotted(rows)):
        return None
    found: list[Node] = []
    for origin in module.flow.of(rows).origins:
        node = origin.node
        if node is rows and isinstance(node, cst.Name):
            return None
        fitted = _fit_of(node, module) if isinstance(node, cst.Call) else _scaled_by_hand(node, module)
        if fitted is None and (inner := _inside(node)) is not None:
            fitted = _fitted(inner, module, depth - 1)
        if fitted is None:
            return None
        found.append(fitted)
    return found[0] if found else None


def _inside(node: Node) -> Node | None:
    """The rows of an expression that puts them into another container."""
    if isinstance(node, cst.Attribute) and node.attr.value in _CASTS:
        return node.value
    if not isinstance(node, cst.Call) or called_name(node) not in _CASTS:
        return None
    if isinstance(node.func, cst.Attribute) and node.func.attr.value in _METHODS:
        return node.func.value
    return node.args[0].value if node.args else None


def _fit_of(call: cst.Call, module: FileFacts) -> Node | None:
    """The call that fits a transformer to the rows that a call returns transformed."""
    func = call.func
    if not isinstance(func, cst.Attribute) or not call.args or not _is_transformer(func.value, module):
        return None
    given = call.args[0].value
    if func.attr.value == "fit_transform":
        return None if _is_part(given, module) else call
    if func.attr.value != "transform":
        return None
    fits = [
        other
        for other in module.tree.own(module.tree.home(call), cst.Call)
        if called_name(other) == "fit"
        and isinstance(other.func, cst.Attribute)
        and dotted(other.func.value) == dotted(func.value) is not None
        and other.args
    ]
    is_alone = len(fits) == 1 and module.tree.before(fits[0], call)
    same = is_alone and dotted(fits[0].args[0].value) == dotted(given) is not None
    return fits[0] if same and not _is_part(given, module) else None


def _is_transformer(node: Node, module: FileFacts) -> bool:
    made = module.kinds.construction(node)
    return made is not None and _FITS.fullmatch(module.qualified(made.func) or "") is not None


def _is_part(rows: Node, module: FileFacts) -> bool:
    """Whether rows are a part of an earlier split, by their name or their origin."""
    if is_for_training(dotted(rows)):
        return True
    calls = [origin.node for origin in module.flow.of(rows).origins if isinstance(origin.node, cst.Call)]
    return any(module.qualified(call.func) in _SPLITS for call in calls)


def _scaled_by_hand(node: Node, module: FileFacts) -> Node | None:
    """`(x - x.mean(0)) / x.std(0)`, and the like with the range, over all rows of one variable."""
    if not isinstance(node, cst.BinaryOperation) or not isinstance(node.operator, cst.Divide):
        return None
    if not isinstance(node.left, cst.BinaryOperation) or not isinstance(node.left.operator, cst.Subtract):
        return None
    rows = dotted(node.left.left)
    spread = module.kinds.origin(node.right)
    calls = module.tree.within(spread, cst.Call)
    over_all = [
        call
        for call in calls
        if called_name(call) in _SPREADS
        and isinstance(call.func, cst.Attribute)
        and dotted(call.func.value) == rows is not None
        and _is_over_rows(call, module)
    ]
    return node if over_all and not is_for_training(rows) else None


def _is_over_rows(call: cst.Call, module: FileFacts) -> bool:
    """Whether a statistic is of all rows: without a dimension, or of the first."""
    over = [
        arg.value
        for arg in call.args
        if arg.keyword is None or is_name(arg.keyword, "axis") or is_name(arg.keyword, "dim")
    ]
    return not over or module.number(over[0]) == 0
