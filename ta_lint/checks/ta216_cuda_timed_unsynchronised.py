"""TA216: the clock is read while the device still works, so the time measured is that of the launch."""

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Kind, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.vocabulary import FLUENT
from ta_lint.syntax.edits import ProposedFix, insert_line_before
from ta_lint.syntax.tree import Node, argument, dotted, literal_text

KEYWORDS = (("time", "perf_counter", "perf_counter_ns", "monotonic"), "cuda")

_CLOCKS = frozenset(
    f"time.{name}{suffix}" for name in ("time", "perf_counter", "monotonic") for suffix in ("", "_ns")
)

# Calls that wait for the device, and calls that may.
_WAITS = frozenset(
    "all_gather all_reduce allclose any asnumpy barrier block_until_ready bool clip_grad_norm_ cpu elapsed_time equal "
    "float int item mark_step nonzero numpy print scale step_ synchronize tolist unique update wait".split()
)
# Calls that do not wait, besides those of torch.
_HARMLESS = regex(
    r"builtins\.(range|len|enumerate|zip|min|max|isinstance|getattr|hasattr|list|tuple|dict)|time\.\w+|tqdm(\.\w+)*"
)
_COMPUTES = regex(
    r"torch\.(mm|bmm|matmul|einsum|addmm|baddbmm|cdist|linalg\.\w+|nn\.functional\.(?!pad$)\w+)"
)
_METHODS_OF_MODELS = frozenset("eval load_state_dict named_parameters parameters train".split())
# Methods of tensors and optimizers that only launch work.
_LAUNCHES = frozenset(
    "abs append argmax backward clone contiguous cuda detach div exp flatten float half log matmul max mean min mm mul norm "
    "permute pow relu reshape sigmoid softmax softplus square squeeze step sum tanh to transpose unsqueeze view "
    "zero_grad".split()
)
_DEEP = 2  # helpers that are looked into


@dataclass(frozen=True, eq=False)
class _Timed:
    """Code between two readings of a clock: `difference` of what the statements `first` and `last` read."""

    difference: cst.BinaryOperation
    first: Node
    last: Node
    body: list[Node]


def check(module: FileFacts) -> Iterator[Suspicion]:
    if not _uses_cuda(module):
        return
    for operation in module.tree.all(cst.BinaryOperation):
        timed = _timed(operation, module) if isinstance(operation.operator, cst.Subtract) else None
        if timed is None or not any(_misses(body, module) for body in _bodies(timed, module)):
            continue
        code = module.code(operation)
        message = f"`{code}` misses the time of the device: call `torch.cuda.synchronize()` before reading the clock"
        yield Suspicion(operation, message, ((timed.first, "the clock begins here"),), _fix(timed, module))


def _misses(body: list[Node], module: FileFacts) -> bool:
    """Whether code gives work to the device, and does not wait for it."""
    return any(_computes(node, module) for node in body) and all(
        _only_launches(node, module, _DEEP) for node in body
    )


def _bodies(timed: _Timed, module: FileFacts) -> list[list[Node]]:
    """The code that is timed: what is between the readings, or, if a context manager hands over there, in the `with` statements that use it."""
    function = module.tree.home(timed.difference)
    if not any(module.tree.within(node, cst.Yield) for node in timed.body):
        return [timed.body]
    if not isinstance(function, cst.FunctionDef) or not _is_context_manager(function, module):
        return []
    own = [node for node in timed.body if not module.tree.within(node, cst.Yield)]
    found = [module.tree.enclosing(site, cst.With) for site in module.calls.sites(function)]
    return [
        [*own, *one.body.body]
        for one in found
        if isinstance(one, cst.With) and any(_is_made_by(item, function, module) for item in one.items)
    ]


def _is_context_manager(function: cst.FunctionDef, module: FileFacts) -> bool:
    return any(module.qualified(one.decorator) == "contextlib.contextmanager" for one in function.decorators)


def _is_made_by(item: cst.WithItem, function: cst.FunctionDef, module: FileFacts) -> bool:
    return isinstance(item.item, cst.Call) and module.calls.callee(item.item) is function


def _uses_cuda(module: FileFacts) -> bool:
    """Whether the file puts something on a GPU: `.cuda()`, or a string that names one."""
    if any(node.attr.value == "cuda" and _is_call(node, module) for node in module.tree.all(cst.Attribute)):
        return True
    texts = (literal_text(text) or "" for text in module.tree.all(cst.SimpleString))
    return any(text.partition(":")[0] == "cuda" for text in texts)


def _is_call(node: Node, module: FileFacts) -> bool:
    above = module.tree.parent[node]
    return isinstance(above, cst.Call) and above.func is node


def _timed(difference: cst.BinaryOperation, module: FileFacts) -> _Timed | None:
    """The code between the two clock readings in a difference, if they are in one block."""
    start, end = _reading(difference.right, module), _reading(difference.left, module)
    if start is None or end is None or _is_compared(difference, module):
        return None
    first, last = module.tree.statement(start), module.tree.statement(end)
    block = module.tree.block(first)
    if module.tree.block(last) is not block or not module.tree.before(first, last):
        return None
    lines = list(block.body)  # type: ignore[attr-defined]
    places = [
        next((n for n, line in enumerate(lines) if module.tree.contains(line, one)), -1)
        for one in (first, last)
    ]
    return _Timed(difference, first, last, lines[places[0] + 1 : places[1]])


def _reading(node: Node, module: FileFacts) -> cst.Call | None:
    origin = module.kinds.origin(node)
    is_clock = isinstance(origin, cst.Call) and module.qualified(origin.func) in _CLOCKS
    return origin if isinstance(origin, cst.Call) and is_clock else None


def _is_compared(node: Node, module: FileFacts) -> bool:
    """Whether a difference is a limit of time, which nobody reports."""
    statement = module.tree.statement(node)
    for above in module.tree.ancestors(node):
        if above is statement:
            return isinstance(above, (cst.While, cst.If))
        if isinstance(above, cst.Comparison):
            return True
    return False


# -- what runs between ----------------------------------------------------------------------------------------


def _computes(node: Node, module: FileFacts) -> bool:
    """Whether code gives work to the device: a model runs, a loss goes backward, or matrices are multiplied."""
    for product in module.tree.within(node, cst.BinaryOperation):
        if isinstance(product.operator, cst.MatrixMultiply) and _is_on_gpu(product.left, module):
            return True
    for call in module.tree.within(node, cst.Call):
        called = module.qualified(call.func)
        if called is not None and _COMPUTES.fullmatch(called):
            if call.args and _is_on_gpu(call.args[0].value, module):
                return True
        elif called_name(call) == "backward" or _runs_model(call, module):
            return True
    return False


def _is_on_gpu(node: Node, module: FileFacts) -> bool:
    """Whether a tensor is certainly put on a GPU where it is made."""
    origins = module.flow.of(node).origins
    return bool(origins) and all(
        isinstance(origin.node, cst.Call) and _puts_on_gpu(origin.node, module) for origin in origins
    )


def _puts_on_gpu(call: cst.Call, module: FileFacts) -> bool:
    if called_name(call) == "cuda":
        return True
    device = argument(call, "device", 0 if called_name(call) == "to" else None)
    return device is not None and "cuda" in module.device_names.of(device)


def _runs_model(call: cst.Call, module: FileFacts) -> bool:
    """Whether a call runs a model: by its kind, or as other code asks it for what only models have."""
    kind = module.kind(call.func)
    if kind is not None or module.qualified(call.func) is not None:
        return kind is Kind.MODULE
    if not isinstance(call.func, cst.Name) or module.calls.callee(call) is not None:
        return False
    if _is_set_as_model(module.kinds.origin(call.func)):
        return True
    return any(_is_asked_as_model(mention, module) for mention in module.names.mentions(call.func))


def _is_set_as_model(node: Node) -> bool:
    """Whether a value is what a method of models gives back, such as `eval()`, before or after others: `make().eval().cuda()`."""
    while (
        isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in FLUENT
    ):
        if node.func.attr.value in _METHODS_OF_MODELS:
            return True
        node = node.func.value
    return False


def _is_asked_as_model(node: Node, module: FileFacts) -> bool:
    """Whether code calls a method that only models have, also after others that give back the model: `.to("cuda").eval()`."""
    above = module.tree.parent[node]
    while isinstance(above, cst.Attribute) and above.value is node and above.attr.value in FLUENT:
        if above.attr.value in _METHODS_OF_MODELS:
            return True
        node = module.tree.parent[above]
        above = module.tree.parent[node]
    return isinstance(above, cst.Attribute) and above.attr.value in _METHODS_OF_MODELS


def _only_launches(node: Node, module: FileFacts, depth: int) -> bool:
    """Whether code certainly waits for no device, helpers included, and is not as long as a pass over a loader.

    A copy to the device waits for what was launched before it, which in a loop is all but the last pass.
    """
    for inner in module.tree.within(node, cst.For, cst.While, cst.If, cst.With):
        if isinstance(inner, cst.While) or (isinstance(inner, cst.For) and not _counts(inner, module)):
            return False
        if isinstance(inner, cst.If) and module.tree.within(inner.test, cst.Call):
            return False
        if isinstance(inner, cst.For) and any(map(_copies, module.tree.within(inner, cst.Call))):
            return False
    return all(_launches(call, module, depth) for call in module.tree.within(node, cst.Call))


def _copies(call: cst.Call) -> bool:
    return called_name(call) in ("to", "cuda") and argument(call, "non_blocking") is None


def _counts(loop: cst.For, module: FileFacts) -> bool:
    call = loop.iter
    return isinstance(call, cst.Call) and called_name(call) in ("range", "trange")


def _launches(call: cst.Call, module: FileFacts, depth: int) -> bool:
    name, called = called_name(call) or "", module.qualified(call.func)
    if name in _WAITS or _moves_to_cpu(call, name):
        return False
    if called is not None:
        return called.startswith("torch.") or _HARMLESS.fullmatch(called) is not None
    if _runs_model(call, module):
        makers = module.flow.makers(call.func)
        forwards = [module.flow.forward_of(made) for made in makers]
        return depth == 0 or all(
            one is None or _only_launches(one.body, module, depth - 1) for one in forwards
        )
    if module.kind(call.func) is Kind.CRITERION:
        return True
    callee = module.calls.callee(call)
    if callee is not None:
        return depth > 0 and _only_launches(callee.body, module, depth - 1)
    return (
        isinstance(call.func, cst.Attribute) and name in _LAUNCHES and not _is_scaler(call.func.value, module)
    )


def _is_scaler(node: Node, module: FileFacts) -> bool:
    return module.kinds.is_scaler(node)


def _moves_to_cpu(call: cst.Call, name: str) -> bool:
    return name == "to" and any(
        literal_text(arg.value) == "cpu" or "cpu" in (dotted(arg.value) or "") for arg in call.args
    )


def _fix(timed: _Timed, module: FileFacts) -> ProposedFix | None:
    spelled = module.spelled("torch.cuda.synchronize", at=timed.first)
    if spelled is None:
        return None
    code, imports = f"{spelled[0]}()", spelled[1]
    edits = tuple(insert_line_before(module.tree, statement, code) for statement in (timed.first, timed.last))
    return ProposedFix("wait for the device before the clock is read", edits, imports)
