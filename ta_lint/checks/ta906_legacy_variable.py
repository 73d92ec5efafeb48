"""TA906: `Variable(x)` has been a tensor since PyTorch 0.4, one that is cut off from its graph."""

import re
from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import Module, Suspicion
from ta_lint.facts.edits import Anchor, Fix, Replacement, Side, is_atom, unwrap
from ta_lint.facts.tree import Node, argument, is_name, spreads

NEEDS = (r"autograd", r"\bVariable\b")

_REQUIRES_GRAD, _VOLATILE = 1, 2  # Variable(data, requires_grad=False, volatile=False)

# What makes a tensor of numbers, which has no graph unless it is asked for one.
_FRESH = re.compile(
    r"torch\.(arange|empty|eye|from_numpy|full|linspace|logspace|multinomial|normal|ones|rand|randint|randn|randperm|"
    r"tensor|zeros|(empty|full|ones|rand|randint|randn|zeros)_like)"
)
_CUTS = frozenset("detach new new_empty new_full new_ones new_tensor new_zeros".split())

# Methods whose result has the graph of the tensor itself, and of nothing that they are given.
_KEEPS = frozenset(
    "clone contiguous cpu cuda double expand fill_ flatten float half index_select int long normal_ permute random_ "
    "repeat reshape round sign squeeze t to transpose type uniform_ unsqueeze view zero_".split()
)
_DEPTH = 8


def check(module: Module) -> Iterator[Suspicion]:
    for call in module.calls_to("torch.autograd.Variable", "torch.autograd.variable.Variable"):
        if call.args and not spreads(call) and not module.fallbacks.around(call):
            yield Suspicion(call, _message(call), fix=_dropped(call, module))


def _message(call: cst.Call) -> str:
    if _asks(argument(call, "volatile", _VOLATILE)):
        return "`volatile` has had no effect since PyTorch 0.4: `torch.no_grad()` does what it did"
    return "`Variable` has been a tensor since PyTorch 0.4, and only detaches what it is given"


def _asks(flag: Node | None) -> bool:
    return flag is not None and not is_name(flag, "False")


def _dropped(call: cst.Call, module: Module) -> Fix | None:
    """What is wrapped, detached where it may have a graph, and with a gradient of its own where it gets one."""
    data = call.args[0]
    requires_grad = argument(call, "requires_grad", _REQUIRES_GRAD)
    if data.keyword is not None or _asks(argument(call, "volatile", _VOLATILE)):
        return None
    if _asks(requires_grad) and not is_name(requires_grad, "True"):
        return None
    suffix = "" if _has_no_graph(data.value, module) else ".detach()"
    if _asks(requires_grad):  # of a name this would change the tensor that is wrapped
        suffix = (suffix if isinstance(data.value, cst.Call) else ".detach()") + ".requires_grad_()"
    title = f"write `{suffix}` instead" if suffix else "drop it"
    if not suffix:
        return Fix(title, unwrap(call, data.value))
    before, after = ("", suffix) if _holds_together(data.value, module) else ("(", f"){suffix}")
    return Fix(
        title,
        (
            Replacement(Anchor(call, Side.START), Anchor(data.value, Side.START), before),
            Replacement(Anchor(data.value, Side.END), Anchor(call, Side.END), after),
        ),
    )


def _holds_together(node: Node, module: Module) -> bool:
    head = node.func if isinstance(node, cst.Call) else node
    return is_atom(node) and "\n" not in module.verbatim(head)


def _has_no_graph(node: Node, module: Module, depth: int = _DEPTH) -> bool:
    """Whether a tensor certainly has no graph and asks for no gradient: fresh, cut off, or of a loader's batch."""
    if depth == 0:
        return False
    if isinstance(node, cst.Name) and module.loaders.pass_of(node) is not None:
        return True
    node = module.kinds.origin(node)
    if isinstance(node, cst.Attribute):
        return node.attr.value == "data"
    if isinstance(node, cst.Subscript):
        return _has_no_graph(node.value, module, depth - 1)
    if not isinstance(node, cst.Call) or any(
        arg.keyword is not None and "grad" in arg.keyword.value for arg in node.args
    ):
        return False
    qualified = module.qualified(node.func)
    if qualified is not None:
        return _FRESH.fullmatch(qualified) is not None
    if not isinstance(node.func, cst.Attribute):
        return False
    method = node.func.attr.value
    return method in _CUTS or (method in _KEEPS and _has_no_graph(node.func.value, module, depth - 1))
