"""TA424: a leaf that requires a gradient is changed in place while autograd records, which raises."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.syntax.layout import plain
from ta_lint.syntax.tree import Node, argument, attribute_of_self

_FACTORIES = "tensor|zeros|ones|full|empty|rand|randn|eye|arange|linspace"

KEYWORDS = (("Parameter", "requires_grad"),)

_IN_PLACE = frozenset(
    "add_ addcdiv_ addcmul_ bernoulli_ clamp_ clamp_max_ clamp_min_ copy_ div_ exponential_ fill_ lerp_ mul_ normal_ "
    "random_ sub_ uniform_ zero_".split()
)
_FACTORY = regex(rf"torch\.({_FACTORIES})(_like)?")
_EXPECTS = regex(r"aises|suppress")


def check(module: FileFacts) -> Iterator[Suspicion]:
    for node, leaf in _changes(module):
        made = module.kinds.origin(leaf)
        if (
            isinstance(made, cst.Call)
            and _is_leaf(module, made)
            and not _follows_pass(module, made, node)
            and module.recording.records(node) is True
            and not _is_expected(module, node)
            and not _switches(module, node)
        ):
            message = f"`{module.code(node)}` changes `{module.code(leaf)}` in place, a leaf that requires a gradient"
            yield Suspicion(node, message, related=((made, "the leaf is made here"),))


def _changes(module: FileFacts) -> Iterator[tuple[Node, Node]]:
    """The variables that the file changes in place, and where: `x += 1`, `x.add_(1)`, `x[0] += 1`."""
    for statement in module.tree.all(cst.AugAssign):
        target: Node = statement.target
        while isinstance(target, cst.Subscript):
            target = target.value
        if isinstance(target, cst.Name) or attribute_of_self(target) is not None:
            # The statement rebinds the name, so its old value comes from the assignment before.
            yield statement, _before(module, statement, target)
    for call in module.tree.all(cst.Call):
        if (
            isinstance(call.func, cst.Attribute)
            and call.func.attr.value in _IN_PLACE
            and (isinstance(call.func.value, cst.Name) or attribute_of_self(call.func.value) is not None)
        ):
            yield call, call.func.value


def _switches(module: FileFacts, node: Node) -> bool:
    """Whether the function switches `requires_grad` off and on by hand."""
    home = module.tree.home(node)
    names = (found.attr.value for found in module.tree.own(home, cst.Attribute))
    return any(name in ("requires_grad", "requires_grad_") for name in names)


def _before(module: FileFacts, statement: cst.AugAssign, target: Node) -> Node:
    if not isinstance(target, cst.Name):
        return target
    bindings = [b for b in module.names.bindings(target) if b.node is not statement]
    plain = len(bindings) == 1 and bindings[0].how == "assign" and bindings[0].value is not None
    return bindings[0].value if plain and bindings[0].value is not None else target


def _is_leaf(module: FileFacts, made: cst.Call) -> bool:
    qualified = module.qualified(made.func) or ""
    if qualified == "torch.nn.Parameter":
        wanted = argument(made, "requires_grad", 1)
        return wanted is None or module.boolean(wanted) is True
    wanted = argument(made, "requires_grad")
    return _FACTORY.fullmatch(qualified) is not None and wanted is not None and module.boolean(wanted) is True


def _follows_pass(module: FileFacts, made: cst.Call, node: Node) -> bool:
    """Whether the leaf is created after the change, or on another path."""
    same = module.tree.home(made) is module.tree.home(node)
    return same and module.tree.before(node, made)


def _is_expected(module: FileFacts, node: Node) -> bool:
    """Whether the code expects the error: in a `try`, or in a block such as `pytest.raises`."""
    for above in module.tree.ancestors(node):
        if isinstance(above, cst.Try) and above.handlers and module.tree.contains(above.body, node):
            return True
        if isinstance(above, cst.With) and any(_EXPECTS.search(plain(item.item)) for item in above.items):
            return True
    return False
