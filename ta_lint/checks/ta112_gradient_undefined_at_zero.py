"""TA112: a loss depends on a function with an infinite gradient at zero, and its operand can be zero."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Kind, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.layout import plain
from ta_lint.syntax.tree import Node, argument

KEYWORDS = (("sqrt", "acos", "arccos", "asin", "arcsin", "pow", "**"),)
AROUND = (("*backward", "*scaler", "forward"),)

# Norms are not among them: torch defines their gradient at zero as zero.
_METHODS = frozenset({"sqrt", "acos", "arccos", "asin", "arcsin"})
_FUNCTION = regex(rf"torch\.({'|'.join(sorted(_METHODS))})")

# Functions that keep values away from zero, or from the ends of the range.
_GUARDS = frozenset(
    {"clamp", "clamp_", "clamp_min", "clip", "maximum", "nan_to_num", "relu", "softplus", "exp"}
)

# Functions that are zero where prediction equals target, or where all values are equal.
_ZEROABLE = frozenset({"var", "mse_loss", "square"})


def check(module: FileFacts) -> Iterator[Suspicion]:
    seen: set[Node] = set()
    for loss in module.gradients.losses:
        for node in module.gradients.path(loss):
            found = _rooted(module, node)
            if found is None or node in seen:
                continue
            name, operand = found
            if _can_be_zero(module, name, operand):
                seen.add(node)
                message = f"the gradient of `{module.code(node)}` is infinite or NaN at the edge of `{name}`: clamp its argument"
                yield Suspicion(node, message, related=((loss.call, "the backward pass comes from here"),))
    yield from _in_layers(module, seen)


def _in_layers(module: FileFacts, seen: set[Node]) -> Iterator[Suspicion]:
    """Roots in the `forward` of a module: gradients come through there in whatever trains it."""
    for klass in module.classes.modules():
        forward = module.classes.methods(klass).get("forward")
        for node in _operations(module, forward) if forward is not None else []:
            if node not in seen and _is_root_in_layer(module, node):
                message = f"the gradient of `{module.code(node)}` is infinite or NaN where its operand is 0: add a small `eps` to the operand"
                yield Suspicion(node, message, in_tests=False)


def _operations(module: FileFacts, function: cst.FunctionDef) -> list[Node]:
    return [*module.tree.own(function, cst.Call), *module.tree.own(function, cst.BinaryOperation)]


def _is_root_in_layer(module: FileFacts, node: Node) -> bool:
    """Whether code takes the root of a tensor that can be 0, or adds a small number to the root, which is then too late."""
    found = _rooted(module, node)
    if found is None or found[0] != "sqrt":
        return False
    if isinstance(node, cst.BinaryOperation) and not _is_tensor(module, found[1]):
        return False  # a root of sizes
    if module.gradients.is_off(node) or module.gradients.of(node).cut is not None:
        return False
    return _can_be_zero(module, *found) or (
        _has_epsilon_after(module, node) and not _is_kept_from_zero(module, module.kinds.origin(found[1]))
    )


def _is_tensor(module: FileFacts, node: Node) -> bool:
    """Whether a value certainly is a tensor: by its kind, or by arguments that only tensor methods take, `x.var(dim=1)`."""
    made = module.kinds.origin(node)
    given = [arg.keyword for arg in made.args] if isinstance(made, cst.Call) else []
    return module.kind(node) is Kind.TENSOR or any(
        keyword is not None and keyword.value in ("dim", "keepdim", "unbiased") for keyword in given
    )


def _has_epsilon_after(module: FileFacts, root: Node) -> bool:
    """Whether an epsilon is added to a root, perhaps to a part or a view of it: `x / (var.sqrt() + eps)`."""
    tree = module.tree
    while True:
        above = tree.parent[root]
        if isinstance(above, cst.Subscript) and above.value is root:
            root = above
        elif isinstance(above, cst.Attribute) and isinstance(tree.parent[above], cst.Call):
            root = tree.parent[above]
        else:
            return isinstance(above, cst.BinaryOperation) and _adds_epsilon(module, above)


def _rooted(module: FileFacts, node: Node) -> tuple[str, cst.BaseExpression] | None:
    """The function in `torch.sqrt(x)`, `x.sqrt()` or `x ** 0.5`, and `x`."""
    if isinstance(node, cst.BinaryOperation):
        root = isinstance(node.operator, cst.Power) and module.number(node.right) == 0.5
        return ("sqrt", node.left) if root else None
    if not isinstance(node, cst.Call):
        return None
    called = module.qualified(node.func)
    if called is not None and (function := _FUNCTION.fullmatch(called)):
        given = argument(node, "input", 0)
        return (function[1], given) if given is not None else None
    if isinstance(node.func, cst.Attribute) and called is None and node.func.attr.value in _METHODS:
        return node.func.attr.value, node.func.value
    return None


def _can_be_zero(module: FileFacts, name: str, operand: cst.BaseExpression) -> bool:
    """Whether an operand can reach the point of undefined gradient: its form allows it, and nothing prevents it."""
    origin = module.kinds.origin(operand)
    if _is_kept_from_zero(module, origin):
        return False
    return name != "sqrt" or _is_zeroable(module, origin)


def _is_kept_from_zero(module: FileFacts, operand: Node) -> bool:
    """Whether something keeps an operand away from zero: a function, an epsilon, or the square of a setting that is added."""
    if isinstance(operand, cst.BinaryOperation) and isinstance(operand.operator, cst.Add):
        for side in (operand.left, operand.right):
            names = module.tree.within(side, cst.Name)
            if names and all(isinstance(module.kinds.origin(name), cst.Attribute) for name in names):
                return True
    guarded = any(called_name(call) in _GUARDS for call in module.tree.within(operand, cst.Call))
    return guarded or _has_epsilon(module, operand)


def _is_zeroable(module: FileFacts, node: Node) -> bool:
    """Whether the operand of a root is a square, a distance, a variance, or a mean of them."""
    tree = module.tree
    if isinstance(node, cst.Call):
        made = module.kinds.construction(node.func)
        if made is not None and (module.qualified(made.func) or "") == "torch.nn.MSELoss":
            return True
    squares = any(
        (isinstance(part.operator, cst.Power) and module.number(part.right) == 2.0)
        or (isinstance(part.operator, cst.Multiply) and plain(part.left) == plain(part.right))
        for part in tree.within(node, cst.BinaryOperation)
    )
    powers = any(
        called_name(call) in _ZEROABLE
        or (called_name(call) == "pow" and call.args and module.number(call.args[-1].value) == 2.0)
        for call in tree.within(node, cst.Call)
    )
    return squares or powers


def _has_epsilon(module: FileFacts, node: Node) -> bool:
    """Whether a small number is added: a literal, or a variable named like an epsilon."""
    sums = (_adds_epsilon(module, part) for part in module.tree.within(node, cst.BinaryOperation))
    added = (
        call.args[-1].value
        for call in module.tree.within(node, cst.Call)
        if called_name(call) in ("add", "add_") and call.args
    )
    return any(sums) or any(_is_epsilon(module, value) for value in added)


def _adds_epsilon(module: FileFacts, part: cst.BinaryOperation) -> bool:
    if not isinstance(part.operator, cst.Add):
        return False
    return any(_is_epsilon(module, side) for side in (part.left, part.right))


def _is_epsilon(module: FileFacts, value: Node) -> bool:
    return module.number(value) is not None or "eps" in plain(value).lower()
