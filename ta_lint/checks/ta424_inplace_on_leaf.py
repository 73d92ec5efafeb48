"""TA424: a leaf that requires a gradient is changed in place while autograd records, which raises."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.events import suspicion as said
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Said
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.syntax.tree import Node, argument, attribute_of_self, dotted, spreads

_FACTORIES = "tensor|zeros|ones|full|empty|rand|randn|eye|arange|linspace"

KEYWORDS = (
    (
        "Parameter",
        "bias",
        "grad",
        "named_parameters",
        "parameters",
        "requires_grad",
        "requires_grad_",
        "weight",
    ),
    ("*_", "inplace", "+=", "-=", "*=", "/="),
)

_IN_PLACE = frozenset(
    "add_ addcdiv_ addcmul_ bernoulli_ clamp_ clamp_max_ clamp_min_ copy_ div_ exponential_ fill_ lerp_ mul_ normal_ "
    "random_ sub_ uniform_ zero_".split()
)
_FACTORY = regex(rf"torch\.({_FACTORIES})(_like)?")
_WEIGHTED = frozenset(f"torch.nn.{name}" for name in "Bilinear Conv1d Conv2d Conv3d Embedding Linear".split())
"""Layers that always have a weight."""
_OPTIONAL = frozenset({"affine", "bias", "elementwise_affine"})


def check(module: FileFacts) -> Iterator[Suspicion]:
    for node, leaf in _changes(module):
        made = _made(module, node, leaf)
        if (
            made is not None
            and not _follows_pass(module, made, node)
            and module.recording.records(node) is True
            and not _is_expected(module, node)
            and not _switches(module, node)
        ):
            message = f"`{module.code(node)}` changes `{module.code(leaf)}` in place, which raises for a leaf with a gradient: use `no_grad()`"
            yield Suspicion(node, message, related=((made, _said(made, module)),))


def check_run(run: Run) -> Iterator[Said]:
    """Where only running the program shows that it is a leaf, such as a parameter that a method goes over."""
    for change in run.leaf_changes:
        message = f"`{change.code}` changes a leaf with a gradient in place, which raises: use `no_grad()`"
        made = ((change.made, "the leaf is made here"),) if change.made is not None else ()
        yield said.Suspicion(change.place, message, related=made)


def _said(made: Node, module: FileFacts) -> str:
    is_test = isinstance(made, cst.Call) and module.qualified(made.func) == "builtins.isinstance"
    return "it is a layer with a weight" if is_test else "the leaf is made here"


def _changes(module: FileFacts) -> Iterator[tuple[Node, Node]]:
    """The variables that the file changes in place, and where: `x += 1`, `x.add_(1)`, `x[0] += 1`, `x[0].zero_()`."""
    for statement in module.tree.all(cst.AugAssign):
        target = _whole(statement.target)
        if dotted(target) is not None:
            yield statement, target
    for call in module.tree.all(cst.Call):
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in _IN_PLACE:
            target = _whole(call.func.value)
            if dotted(target) is not None:
                yield call, target


def _whole(target: Node) -> Node:
    """`x` in `x[0]`, a view of it."""
    while isinstance(target, cst.Subscript):
        target = target.value
    return target


def _made(module: FileFacts, node: Node, leaf: Node) -> Node | None:
    """What makes the leaf that a variable certainly is: the call of it or of its layer, or the loop over parameters."""
    if isinstance(leaf, cst.Name) or attribute_of_self(leaf) is not None:
        made = module.kinds.origin(_before(module, node, leaf))
        if attribute_of_self(made) is not None:  # `weight = self.weight`
            made = module.kinds.origin(_before(module, node, made))
        if isinstance(made, cst.Call) and _is_leaf(module, made):
            return made
    if isinstance(leaf, cst.Attribute) and attribute_of_self(leaf) is None:
        return _layer_with(leaf, module)
    return _loop_that_gives(leaf, node, module) if isinstance(leaf, cst.Name) else None


def _layer_with(parameter: cst.Attribute, module: FileFacts) -> cst.Call | None:
    """The call that makes the layer of torch whose weight or bias this is, if nothing in the file freezes parameters."""
    made = module.kinds.layer_with(parameter)
    if made is None and not module.recording.freezes(module.tree.root):
        return _tested(parameter.value, parameter, module) if parameter.attr.value == "weight" else None
    if made is None or spreads(made):
        return None
    if any(arg.keyword is not None and arg.keyword.value in _OPTIONAL for arg in made.args):
        return None  # perhaps without such a parameter
    return made if not module.recording.freezes(module.tree.root) else None


def _tested(layer: Node, use: Node, module: FileFacts) -> cst.Call | None:
    """The test of a loop variable around its use that it is a linear layer or a convolution: `isinstance(layer, nn.Linear)`.

    Arguments of a function may come from `apply`, called where recording is off.
    """
    name = dotted(layer)
    if not isinstance(layer, cst.Name) or not all(
        isinstance(binding.node, cst.For) for binding in module.names.bindings(layer)
    ):
        return None
    for above in module.tree.ancestors(use):
        test = above.test if isinstance(above, cst.If) and module.tree.contains(above.body, use) else None
        if (
            isinstance(test, cst.Call)
            and module.qualified(test.func) == "builtins.isinstance"
            and len(test.args) == 2
            and dotted(test.args[0].value) == name
        ):
            kinds = test.args[1].value
            classes = [one.value for one in kinds.elements] if isinstance(kinds, cst.Tuple) else [kinds]
            return test if all(module.qualified(one) in _WEIGHTED for one in classes) else None
    return None


def _loop_that_gives(name: cst.Name, change: Node, module: FileFacts) -> Node | None:
    """The loop over parameters in which one is changed by its own gradient: `p -= rate * p.grad`."""
    path = f"{name.value}.grad"
    if not any(dotted(one) == path for one in module.tree.within(change, cst.Attribute)):
        return None
    loops = [loop for loop in module.tree.loops(change) if isinstance(loop, cst.For)]
    return next((loop for loop in loops if module.kinds.takes_parameters(loop, name.value)), None)


def _switches(module: FileFacts, node: Node) -> bool:
    """Whether the function switches `requires_grad` off and on by hand."""
    home = module.tree.home(node)
    names = (found.attr.value for found in module.tree.own(home, cst.Attribute))
    return any(name in ("requires_grad", "requires_grad_") for name in names)


def _before(module: FileFacts, node: Node, target: Node) -> Node:
    """What a variable is before a statement that rebinds it: `x += 1` does, and so `x` has two bindings."""
    if isinstance(target, cst.Name):
        if not isinstance(node, cst.AugAssign):
            return target
        bindings = [b for b in module.names.bindings(target) if b.node is not node]
        plain = len(bindings) == 1 and bindings[0].how == "assign" and bindings[0].value is not None
        return bindings[0].value if plain and bindings[0].value is not None else target
    klass = module.tree.enclosing(target, cst.ClassDef)
    name = attribute_of_self(target)
    values = module.classes.attribute(klass, name) if klass is not None and name is not None else []
    first = [value for value in values if not isinstance(value, cst.AugAssign)]
    return first[0] if len(first) == 1 else target


def _is_leaf(module: FileFacts, made: cst.Call) -> bool:
    qualified = module.qualified(made.func) or ""
    if qualified == "torch.nn.Parameter":
        wanted = argument(made, "requires_grad", 1)
        return wanted is None or module.boolean(wanted) is True
    wanted = argument(made, "requires_grad")
    return _FACTORY.fullmatch(qualified) is not None and wanted is not None and module.boolean(wanted) is True


def _follows_pass(module: FileFacts, made: Node, node: Node) -> bool:
    """Whether the leaf is created after the change, or on another path."""
    same = module.tree.home(made) is module.tree.home(node)
    return same and module.tree.before(node, made)


def _is_expected(module: FileFacts, node: Node) -> bool:
    """Whether the code expects the error: in a `try`, or below `contextlib.suppress`."""
    for above in module.tree.ancestors(node):
        if isinstance(above, cst.Try) and above.handlers and module.tree.contains(above.body, node):
            return True
        contexts = [item.item for item in above.items] if isinstance(above, cst.With) else []
        calls = [context for context in contexts if isinstance(context, cst.Call)]
        if any(module.qualified(call.func) == "contextlib.suppress" for call in calls):
            return True
    return False
