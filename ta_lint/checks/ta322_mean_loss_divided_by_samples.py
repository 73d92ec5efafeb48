"""TA322: the means of batches are added up and divided by the number of samples."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.edits import ProposedFix, replace_with_atom
from ta_lint.syntax.tree import Node, dotted, is_name

KEYWORDS = ("dataset", "len")


def check(module: FileFacts) -> Iterator[Suspicion]:
    for node, total, divisor in _divisions(module):
        loader = _counted(divisor, module)
        if loader is None or _is_of_single_samples(loader, module):
            continue
        added = _added(total, module)
        means = [module.losses.means(value) for value in added]
        if not means or not all(means):
            continue
        message = (
            f"`{module.code(total)}` sums batch means but divides by the number of samples: "
            "it is too small by the batch size"
        )
        yield Suspicion(
            node, message, ((added[0], "the mean of a batch is added"),), _fix(divisor, loader, module)
        )


def _divisions(module: FileFacts) -> Iterator[tuple[Node, Node, Node]]:
    """The divisions in a file: each with what is divided, and by what."""
    for operation in module.tree.all(cst.BinaryOperation):
        if isinstance(operation.operator, cst.Divide):
            yield operation, operation.left, operation.right
    for statement in module.tree.all(cst.AugAssign):
        if isinstance(statement.operator, cst.DivideAssign):
            yield statement, statement.target, statement.value


def _counted(divisor: Node, module: FileFacts) -> Node | None:
    """The loader whose samples a number counts: `loader` of `len(loader.dataset)`."""
    counted = module.kinds.origin(divisor)
    if not isinstance(counted, cst.Call) or called_name(counted) != "len" or len(counted.args) != 1:
        return None
    held = counted.args[0].value
    is_of_loader = isinstance(held, cst.Attribute) and held.attr.value == "dataset"
    return held.value if isinstance(held, cst.Attribute) and is_of_loader else None


def _is_of_single_samples(loader: Node, module: FileFacts) -> bool:
    """Whether a batch has one sample, so that its mean is that of the sample."""
    made = module.loaders.behind(loader)
    sizes = [one.given("batch_size") for one in made]
    return bool(made) and all(
        one.spreads or size is None or module.number(size) == 1 for one, size in zip(made, sizes, strict=True)
    )


def _added(total: Node, module: FileFacts) -> list[Node]:
    """All values that are added to a total, or to the list of which it is the sum, in its function."""
    is_sum = isinstance(total, cst.Call) and called_name(total) == "sum" and len(total.args) == 1
    name = dotted(total.args[0].value if isinstance(total, cst.Call) and is_sum else total)
    if name is None:
        return []
    own = module.tree.own(module.tree.home(total), cst.Call, cst.AugAssign, cst.Assign)
    return [value for node in own if (value := _appended(node, name) if is_sum else _summand(node, name))]


def _appended(node: Node, name: str) -> Node | None:
    """`value` of `name.append(value)`."""
    if not isinstance(node, cst.Call) or dotted(node.func) != f"{name}.append" or len(node.args) != 1:
        return None
    return node.args[0].value


def _summand(node: Node, name: str) -> Node | None:
    """`value` of `name += value` and `name = name + value`."""
    if isinstance(node, cst.AugAssign):
        is_sum = isinstance(node.operator, cst.AddAssign) and dotted(node.target) == name
        return node.value if is_sum else None
    if not isinstance(node, cst.Assign) or dotted(node.targets[0].target) != name:
        return None
    value = node.value
    is_sum = isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.Add)
    return (
        value.right
        if isinstance(value, cst.BinaryOperation) and is_sum and dotted(value.left) == name
        else None
    )


def _fix(divisor: Node, loader: Node, module: FileFacts) -> ProposedFix | None:
    """Divides by the number of batches, where the number of samples is not asked for by a name."""
    if not isinstance(divisor, cst.Call) or is_name(loader, "self"):
        return None
    return ProposedFix(
        "divide by the number of batches",
        (replace_with_atom(divisor.args[0].value, module.verbatim(loader)),),
    )
