"""TA523: softmax over the batch before a loss or argmax over classes: a sample's scores depend on the others."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.outputs import Output
from ta_lint.syntax.tree import Node, argument, spreads

KEYWORDS = (("softmax", "log_softmax", "Softmax", "LogSoftmax"),)

_LOSSES = (
    ("torch.nn.NLLLoss", "torch.nn.functional.nll_loss"),
    ("torch.nn.CrossEntropyLoss", "torch.nn.functional.cross_entropy"),
)
_CHOICE = regex(r"torch\.(argmax|max|topk)")
_CHOICES = {"argmax": 0, "max": 0, "topk": 1}
_FUNCTIONS = frozenset({"softmax", "log_softmax"})


def check(module: FileFacts) -> Iterator[Suspicion]:
    seen: set[Node] = set()
    for output, use in _used_by_class(module):
        if output.name not in _FUNCTIONS or output.node in seen or not _is_over_the_first(output, module):
            continue
        seen.add(output.node)
        message = f"`{output.name}` over dimension 0 mixes the samples of the batch: use `dim=1`"
        if module.is_here(output.node):
            yield Suspicion(output.node, message, ((use, "the classes are along dimension 1 here"),))
        else:
            yield Suspicion(use, message, ((output.node, f"`{output.name}` is applied here"),))


def _used_by_class(module: FileFacts) -> Iterator[tuple[Output, cst.Call]]:
    """The input of a loss or a choice whose classes are certainly along dimension 1."""
    for criterion, function in _LOSSES:
        for call, output in module.loss_inputs(criterion, function):
            if _takes_a_batch(call, module):
                yield output, call
    for call in module.tree.all(cst.Call):
        chosen = _chosen(call, module)
        output_of = module.outputs.of(chosen) if chosen is not None else None
        if output_of is not None:
            yield output_of, call


def _chosen(call: cst.Call, module: FileFacts) -> Node | None:
    """`x` of `x.argmax(1)`, `torch.max(x, dim=1)` and `x.topk(5, 1)`."""
    if spreads(call):
        return None
    called = module.qualified(call.func)
    operand: Node | None
    if called is not None:
        found = _CHOICE.fullmatch(called)
        if found is None:
            return None
        operand, dim = argument(call, "input", 0), argument(call, "dim", _CHOICES[found[1]] + 1)
    elif isinstance(call.func, cst.Attribute) and call.func.attr.value in _CHOICES:
        operand, dim = call.func.value, argument(call, "dim", _CHOICES[call.func.attr.value])
    else:
        return None
    return operand if dim is not None and module.kinds.number(dim) == 1 else None


def _is_over_the_first(output: Output, module: FileFacts) -> bool:
    """Whether an activation says that it is over dimension 0, and is not of pairs of samples."""
    call = output.node
    if not isinstance(call, cst.Call):
        return False
    called = module.qualified(call.func) or ""
    is_layer = called in ("torch.nn.Softmax", "torch.nn.LogSoftmax")
    dim = argument(call, "dim", 1 if called and not is_layer else 0)
    return dim is not None and module.kinds.number(dim) == 0 and not _is_of_pairs(call, module)


def _is_of_pairs(call: cst.Call, module: FileFacts) -> bool:
    """Whether a softmax is of a product of two tensors: of each sample with each other one, either way is right."""
    operands = [
        *(arg.value for arg in call.args[:1]),
        *([call.func.value] if isinstance(call.func, cst.Attribute) else []),
    ]
    origins = [origin.node for operand in operands for origin in module.flow.of(operand).origins]
    return any(
        (isinstance(part, cst.BinaryOperation) and isinstance(part.operator, cst.MatrixMultiply))
        or (
            isinstance(part, cst.Attribute)
            and part.attr.value in ("mm", "matmul", "einsum", "t", "T", "cdist")
        )
        for origin in origins
        for part in module.tree.within(origin, cst.BinaryOperation, cst.Attribute)
    )


def _takes_a_batch(call: cst.Call, module: FileFacts) -> bool:
    """Whether a loss certainly is of a batch: by a shape that the source shows, or in a loop over a loader that makes batches."""
    given, target = argument(call, "input", 0), argument(call, "target", 1)
    if given is None or target is None:
        return False
    shape, labels = module.shapes.shape(given), module.shapes.shape(target)
    if shape is not None or labels is not None:
        return (shape is not None and len(shape) > 1) or (labels is not None and len(labels) == 1)
    return any(
        all(_makes_batches(loader.given("batch_size")) for loader in one.loaders)
        for one in module.loaders.passes
        if one.loaders and module.tree.contains(one.loop, call)
    )


def _makes_batches(size: cst.BaseExpression | None) -> bool:
    return isinstance(size, (cst.Integer, cst.Name, cst.Attribute)) and not (
        isinstance(size, cst.Name) and size.value == "None"
    )
