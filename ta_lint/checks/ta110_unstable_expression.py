"""TA110: an expression overflows or loses digits where a single torch function does not."""

import re
from collections.abc import Iterator
from dataclasses import replace

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Kind, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.outputs import Output
from ta_lint.syntax.edits import ProposedFix, replace_with_atom
from ta_lint.syntax.layout import plain
from ta_lint.syntax.tree import Node, argument, evaluated

KEYWORDS = (("exp", "log"),)

_FUNCTIONAL = "torch.nn.functional."

_OVERFLOWS = "overflows where `exp` does"

# Added to 1, a smaller number loses at least three of float32's seven digits.
_SMALL = 1e-3

# Integers: `exp` of their logarithm minus one keeps all its digits.
_COUNTS = frozenset({"torch.arange", "torch.bincount", "torch.randint"})


# What gives no more than 1 and no less than -1.
_WAVES = frozenset({"cos", "sin", "tanh"})
_NEAR_ZERO = frozenset(
    {"torch.cosine_similarity", f"{_FUNCTIONAL}cosine_similarity", f"{_FUNCTIONAL}tanh"}
).union(f"torch.{name}" for name in _WAVES)

_MAGNITUDES = frozenset({"abs", "absolute", "norm", "square"})

_CUTS = frozenset({"ceil", "clamp", "clamp_min", "clip", "floor", "round"})

# Names of such integers, which small numbers do not have.
_COUNTED = regex(
    r"coord|count|degree|dist|dur|floor|freq|len|num|pos(_|\b|ition)|size|steps?\b|\bn_", re.IGNORECASE
)


def check(module: FileFacts) -> Iterator[Suspicion]:
    found: dict[Node, list[Suspicion]] = {}
    for suspicion in _unstable(module):
        found.setdefault(module.tree.statement(suspicion.node), []).append(suspicion)
    yield from (_of_statement(suspicions, module) for suspicions in found.values())


def _of_statement(found: list[Suspicion], module: FileFacts) -> Suspicion:
    """The one suspicion about a statement: its first expression, with the others as related places and one fix for all."""
    first, *others = found
    related = tuple((one.node, one.message.partition("` ")[2]) for one in others)
    first = replace(first, is_note=all(one.is_note for one in found))
    outer = [
        one
        for one in found
        if not any(other is not one and module.tree.contains(other.node, one.node) for other in found)
    ]
    fixes = [one.fix for one in outer if one.fix is not None]
    if not fixes:
        return replace(first, related=related)
    edits = tuple(edit for fix in fixes for edit in fix.edits)
    imports = tuple(dict.fromkeys(line for fix in fixes for line in fix.imports))
    return replace(first, related=related, fix=replace(fixes[0], edits=edits, imports=imports))


def _unstable(module: FileFacts) -> Iterator[Suspicion]:
    """All expressions of the file that have a stable form."""
    for node in module.tree.all(cst.Call, cst.BinaryOperation):
        if (argument_of_log := _given(module, node, "log")) is not None:
            yield from _logarithm(module, node, argument_of_log)
        elif isinstance(node, cst.BinaryOperation) and _is_minus_one(node):
            exponent = _given(module, node.left, "exp")
            if exponent is not None and not _is_count(module, exponent) and not _is_coarse(module, node):
                why = "loses the digits of a small `x`"  # in the loss alone: its gradient is that of `expm1`
                yield replace(_use(module, node, "torch.expm1", why, module.verbatim(exponent)), is_note=True)


def _logarithm(module: FileFacts, call: cst.Call, operand: cst.BaseExpression) -> Iterator[Suspicion]:
    """The suspicion about a logarithm whose operand has a combined function."""
    output = module.outputs.picked(operand) or _factor(module, operand)
    if output is not None and output.is_probability and not _is_of_bounded(module, output.node):
        stable = "log_softmax" if output.name == "softmax" else "logsigmoid"
        yield _use(
            module,
            call,
            _FUNCTIONAL + stable,
            f"is infinite where `{output.name}` rounds to 0",
            _arguments(module, operand) if output.node is operand else None,
        )
        return
    origin = module.kinds.origin(operand)
    here = origin is operand
    if isinstance(origin, cst.Call) and (exponent := _summed(module, origin)) is not None:
        over = _over(module, origin, exponent) if here else None
        yield _use(module, call, "torch.logsumexp", _OVERFLOWS, over)
    elif _is_sum_of_exponentials(module, origin):
        yield _use(module, call, "torch.logsumexp", _OVERFLOWS, None)
    elif isinstance(operand, cst.BinaryOperation):
        yield from _logarithm_with_one(module, call, operand)


def _is_of_bounded(module: FileFacts, made: Node) -> bool:
    """Whether a softmax or sigmoid is given values near 0, of which none rounds to 0 or 1."""
    if not isinstance(made, cst.Call):
        return False
    given = argument(made, "input", 0)
    if isinstance(made.func, cst.Attribute) and called_name(made) in ("softmax", "sigmoid"):
        given = made.func.value if module.qualified(made.func) is None else given
    while isinstance(given, cst.UnaryOperation):
        given = given.expression
    origin = module.kinds.origin(given) if given is not None else None
    return isinstance(origin, cst.Call) and (
        module.qualified(origin.func) in _NEAR_ZERO
        or (module.qualified(origin.func) is None and called_name(origin) in _WAVES)
    )


def _factor(module: FileFacts, operand: cst.BaseExpression) -> Output | None:
    """The softmax or sigmoid in a product: its logarithm is infinite where a factor is 0."""
    product = module.kinds.origin(operand)
    if not isinstance(product, cst.BinaryOperation) or not isinstance(product.operator, cst.Multiply):
        return None
    found = (module.outputs.of(side) for side in (product.left, product.right))
    return next((one for one in found if one is not None and one.is_probability), None)


def _summed(module: FileFacts, node: Node) -> cst.BaseExpression | None:
    """`x` in `torch.exp(x).sum(1)`, unless its largest element was taken off."""
    summed = _given(module, node, "sum", more=True)
    exponent = _given(module, module.kinds.origin(summed), "exp") if summed is not None else None
    return exponent if exponent is not None and not _is_shifted(module, exponent) else None


def _over(module: FileFacts, summing: cst.Call, exponent: cst.BaseExpression) -> str | None:
    """The arguments of `logsumexp`, which requires the dimension."""
    summed = _given(module, summing, "sum", more=True)
    if summed is None or not module.tree.contains(summed, exponent):
        return None  # it has a name, which other code may use
    rest = summing.args if _is_method(summing, summed) else summing.args[1:]
    given = [module.verbatim(exponent), *(module.verbatim(arg).rstrip(", ") for arg in rest)]
    return ", ".join(given) if len(given) > 1 else None


def _is_sum_of_exponentials(module: FileFacts, node: Node) -> bool:
    """Whether a value adds up exponentials and numbers, among them a sum over a dimension or two exponentials."""
    terms = [module.kinds.origin(term) for term in _terms(node)]
    if len(terms) < 2:
        return False
    summed = [term for term in terms if _summed(module, term) is not None]
    single = [
        term
        for term in terms
        if (exponent := _given(module, term, "exp")) is not None and not _is_shifted(module, exponent)
    ]
    numbers = [term for term in terms if module.number(term) is not None]
    adds_exponentials = bool(summed) or len(single) > 1
    return adds_exponentials and len(summed) + len(single) + len(numbers) == len(terms)


def _terms(node: Node) -> list[Node]:
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
        return [*_terms(node.left), *_terms(node.right)]
    return [node]


def _logarithm_with_one(
    module: FileFacts, call: cst.Call, operand: cst.BinaryOperation
) -> Iterator[Suspicion]:
    """`log(1 + x)`, `log(1 + exp(x))` and `log(1 - sigmoid(x))`."""
    if isinstance(operand.operator, cst.Add):
        sides = (operand.left, operand.right)
        others = [side for side in sides if module.number(side) != 1.0]
        if len(others) != 1 or module.number(others[0]) is not None:
            return
        exponent = _given(module, others[0], "exp")
        if exponent is not None:
            if not _is_never_above_zero(module, exponent):
                code = module.verbatim(exponent)
                yield _use(module, call, f"{_FUNCTIONAL}softplus", _OVERFLOWS, code)
        elif _is_small(module, others[0]):
            code = module.verbatim(others[0])
            yield _use(module, call, "torch.log1p", "loses the digits of a small `x`", code)
    elif isinstance(operand.operator, cst.Subtract) and module.number(operand.left) == 1.0:
        output = module.outputs.of(operand.right)
        if output is not None and output.name == "sigmoid" and not _is_of_bounded(module, output.node):
            given = _arguments(module, operand.right) if output.node is operand.right else None
            negated = f"-({given})" if given is not None else None
            why = "is infinite where `sigmoid` rounds to 1"
            yield _use(module, call, f"{_FUNCTIONAL}logsigmoid", why, negated)


def _use(module: FileFacts, node: cst.BaseExpression, stable: str, why: str, code: str | None) -> Suspicion:
    """The suspicion that `stable` should be called, with a fix if the arguments are known."""
    last = stable.rpartition(".")[2]
    message = f"`{module.code(node)}` {why}: use `{last}`"
    spelled = module.spelled(stable, at=node)
    if code is None or spelled is None or "\n" in module.verbatim(node):
        return Suspicion(node, message)
    spelling, imports = spelled
    return Suspicion(
        node,
        message,
        fix=ProposedFix(f"use `{last}`", (replace_with_atom(node, f"{spelling}({code})"),), imports),
    )


def _given(module: FileFacts, node: Node, name: str, more: bool = False) -> cst.BaseExpression | None:
    """`x` in `torch.log(x)` and `x.log()`; with `more`, further arguments may follow."""
    if type(node) is not cst.Call or (type(node.func) is not cst.Name and called_name(node) != name):
        return None  # a plain name may be an alias
    called = module.qualified(node.func)
    if called == f"torch.{name}":
        given = argument(node, "input", 0)
        return given if more or len(node.args) == 1 else None
    is_method = called is None and isinstance(node.func, cst.Attribute) and node.func.attr.value == name
    if not is_method or not isinstance(node.func, cst.Attribute) or (node.args and not more):
        return None
    return node.func.value if module.kind(node.func.value) in (None, Kind.TENSOR, Kind.PARAMETER) else None


def _is_method(call: cst.Call, receiver: Node) -> bool:
    return isinstance(call.func, cst.Attribute) and call.func.value is receiver


def _arguments(module: FileFacts, output: Node) -> str | None:
    """The arguments of an output call, written for a function: `x, dim=1`; None for a layer."""
    if not isinstance(output, cst.Call):
        return None
    given = [module.verbatim(arg).rstrip(", ") for arg in output.args]
    if module.qualified(output.func) is not None:
        return ", ".join(given)
    if not isinstance(output.func, cst.Attribute):
        return None
    name = output.func.attr.value
    return ", ".join([module.verbatim(output.func.value), *given]) if name in ("softmax", "sigmoid") else None


def _is_minus_one(operation: cst.BinaryOperation) -> bool:
    return (
        isinstance(operation.operator, cst.Subtract)
        and isinstance(operation.right, (cst.Integer, cst.Float))
        and float(evaluated(operation.right)) == 1.0
    )


def _is_small(module: FileFacts, node: Node) -> bool:
    """Whether the source shows that a value is small: a multiple or tensor of small numbers, a squared ratio.

    Most values that get 1 added before a logarithm are large, and the logarithm is there to make them small.
    """
    origin = module.kinds.origin(node)
    if _is_squared_ratio(module, origin):
        return True
    if isinstance(origin, cst.BinaryOperation) and isinstance(origin.operator, cst.Multiply):
        for side, other in ((origin.left, origin.right), (origin.right, origin.left)):
            factor = module.number(side)
            if _is_small_number(factor) or (factor is not None and _is_squared_ratio(module, other)):
                return True
        return False
    if not isinstance(origin, cst.Call) or module.qualified(origin.func) != "torch.tensor":
        return False
    given = argument(origin, "data", 0)
    numbers = module.tree.within(given, cst.Float, cst.Integer) if given is not None else []
    return bool(numbers) and all(_is_small_number(module.number(number)) for number in numbers)


def _is_squared_ratio(module: FileFacts, node: Node) -> bool:
    """Whether a value is `(a / b) ** 2`, which `1 +` absorbs in float32 if `a` is less than 0.0003 of `b`."""
    power = module.kinds.origin(node)
    if not isinstance(power, cst.BinaryOperation) or not isinstance(power.operator, cst.Power):
        return False
    ratio = module.kinds.origin(power.left)
    is_ratio = isinstance(ratio, cst.BinaryOperation) and isinstance(ratio.operator, cst.Divide)
    return is_ratio and module.number(power.right) == 2.0


def _is_small_number(number: float | None) -> bool:
    return number is not None and 0 < abs(number) <= _SMALL


def _is_count(module: FileFacts, node: Node) -> bool:
    """Whether a value consists of integers, or their logarithms."""
    if _COUNTED.search(plain(node)):
        return True
    origin = module.kinds.origin(node)
    while isinstance(origin, cst.Call) and isinstance(origin.func, cst.Attribute):
        # a value that is converted to `float` was an integer
        if module.qualified(origin.func) in _COUNTS or origin.func.attr.value in (
            "bincount",
            "float",
            "long",
            "int",
        ):
            return True
        origin = module.kinds.origin(origin.func.value)
    return False


def _is_coarse(module: FileFacts, node: Node) -> bool:
    """Whether small values of an expression are clipped or rounded away, there or under the name that it gets."""
    uses = _uses(module, node)
    return _is_cut(module, node) or (bool(uses) and all(_is_cut(module, use) for use in uses))


def _uses(module: FileFacts, value: Node) -> list[cst.Name]:
    """The uses of the name that a value is assigned to, as far as they may be of this value."""
    assign = module.tree.parent[value]
    target = assign.targets[0].target if isinstance(assign, cst.Assign) else None
    if not isinstance(target, cst.Name):
        return []
    return [
        mention
        for mention in module.names.mentions(target)
        if not isinstance(module.tree.parent[mention], cst.AssignTarget)
        and any(binding.node is assign for binding in module.names.reaching(mention))
    ]


def _is_cut(module: FileFacts, node: Node) -> bool:
    statement = module.tree.statement(node)
    above = (other for other in module.tree.ancestors(node) if module.tree.contains(statement, other))
    return any(isinstance(other, cst.Call) and called_name(other) in _CUTS for other in above)


def _is_shifted(module: FileFacts, exponent: Node) -> bool:
    """Whether the largest exponent was subtracted before, which prevents overflow."""
    origin = module.kinds.origin(exponent)
    if any(_is_maximum(module, name, 1) for name in module.tree.within(origin, cst.Name)):
        return True
    if not isinstance(origin, cst.BinaryOperation) or not isinstance(origin.operator, cst.Subtract):
        return False
    return _is_maximum(module, origin.right, 3)


def _is_maximum(module: FileFacts, node: Node, deep: int) -> bool:
    """Whether something is a maximum by its name, or what it comes from is one, so many names away."""
    names = module.tree.within(node, cst.Name)
    if any("max" in name.value for name in names):
        return True
    sources = (_source(module, name) for name in names) if deep else ()
    return any(source is not None and _is_maximum(module, source, deep - 1) for source in sources)


def _is_never_above_zero(module: FileFacts, exponent: Node) -> bool:
    """Whether an exponent is a negated magnitude or square: `-x.abs()`, also where it is scaled by a number."""
    origin = module.kinds.origin(exponent)
    if not isinstance(origin, cst.UnaryOperation) or not isinstance(origin.operator, cst.Minus):
        return False
    magnitude = module.kinds.origin(origin.expression)
    while isinstance(magnitude, cst.BinaryOperation) and (module.number(magnitude.right) or 0.0) > 0:
        if not isinstance(magnitude.operator, (cst.Divide, cst.Multiply)):
            return False
        magnitude = module.kinds.origin(magnitude.left)
    return isinstance(magnitude, cst.Call) and called_name(magnitude) in _MAGNITUDES


def _source(module: FileFacts, name: cst.Name) -> Node | None:
    """A name's value, or the whole tuple it is unpacked from: `m, _ = x.max(1)`."""
    bound = module.names.definition(name)
    if bound is not None and bound.how == "unpack" and bound.value is not None:
        return bound.value
    origin = module.kinds.origin(name)
    return None if origin is name else origin
