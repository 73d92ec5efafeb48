"""TA906: since PyTorch 0.4, `Variable(x)` returns a plain tensor that is cut off from the graph."""

from collections.abc import Callable, Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.names import Binding
from ta_lint.syntax.edits import Anchor, ProposedFix, Replacement, Side, is_atom, unwrap
from ta_lint.syntax.tree import Node, argument, is_name, spreads

KEYWORDS = ("autograd", "Variable")

_REQUIRES_GRAD, _VOLATILE = 1, 2  # Variable(data, requires_grad=False, volatile=False)
_PARAMETERS = ("requires_grad", "volatile")

# Functions that create a tensor from numbers, without a graph unless one is requested.
_FRESH = regex(
    r"torch\.(arange|empty|eye|from_numpy|full|linspace|logspace|multinomial|ones|rand|randint|randn|randperm|"
    r"tensor|zeros|(empty|full|ones|rand|randint|randn|zeros)_like)"
)
_CUTS = frozenset("detach new new_empty new_full new_ones new_tensor new_zeros".split())

# Methods whose result has the graph of the tensor, and of none of their arguments.
_KEEPS = frozenset(
    "clone contiguous cpu cuda double expand fill_ flatten float half index_select int long normal_ permute random_ "
    "repeat reshape round sign squeeze t to transpose type uniform_ unsqueeze view zero_".split()
)

# Methods that return the tensor itself if there is nothing to do.
_MAY_RETURN_SELF = frozenset("contiguous cpu cuda double flatten float half int long reshape to type".split())

# Attributes that are not shared between two tensors with the same data.
_OF_ONE_TENSOR = frozenset("data grad register_hook requires_grad".split())
_DEPTH = 8

# In-place methods after which a tensor has no graph that it did not have before.
_FILLS = frozenset("detach_ fill_ normal_ random_ requires_grad_ resize_ uniform_ zero_".split())


class _Variables:
    """What the file does to the tensor of each variable; computed once for all mentions of a variable."""

    def __init__(self, module: FileFacts) -> None:
        self._module = module
        self._asked: dict[Binding, bool] = {}
        self._written: dict[Binding, bool] = {}

    def is_asked(self, name: cst.Name) -> bool:
        """Whether the file reads a variable's gradient state or changes it in place."""
        return self._any(name, self._asked, _asks_for_state)

    def is_written(self, name: cst.Name) -> bool:
        """Whether the file writes into a variable's tensor, which may add a graph."""
        return self._any(name, self._written, _writes)

    def _any(
        self, name: cst.Name, known: dict[Binding, bool], does: Callable[[cst.Name, FileFacts], bool]
    ) -> bool:
        first = next(iter(self._module.names.bindings(name)), None)
        if first is None:
            return False
        if first not in known:
            known[first] = any(does(mention, self._module) for mention in self._module.names.mentions(name))
        return known[first]


def check(module: FileFacts) -> Iterator[Suspicion]:
    variables = _Variables(module)
    for call in module.calls_to("torch.autograd.Variable", "torch.autograd.variable.Variable"):
        if call.args and not spreads(call) and not module.fallbacks.around(call):
            yield Suspicion(call, _message(call), fix=_dropped(call, module, variables))


def _message(call: cst.Call) -> str:
    if _asks(argument(call, "volatile", _VOLATILE)):
        return "`volatile` has had no effect since PyTorch 0.4: `torch.no_grad()` does what it did"
    return "`Variable` has been a tensor since PyTorch 0.4, so this only detaches its argument"


def _asks(flag: Node | None) -> bool:
    return flag is not None and not is_name(flag, "False")


def _dropped(call: cst.Call, module: FileFacts, variables: _Variables) -> ProposedFix | None:
    """The wrapped value without `Variable`: detached if it may have a graph, and with `requires_grad_` if requested."""
    data = call.args[0]
    requires_grad = argument(call, "requires_grad", _REQUIRES_GRAD)
    if data.keyword is not None or _asks(argument(call, "volatile", _VOLATILE)):
        return None
    if any(arg.keyword is not None and arg.keyword.value not in _PARAMETERS for arg in call.args[1:]):
        return None
    if _asks(requires_grad) and not is_name(requires_grad, "True"):
        return None
    held = _held(data.value)
    is_bare = _has_no_graph(data.value, module, variables) and not _is_shared(call, held, module, variables)
    suffix = "" if is_bare else ".detach()"
    if _asks(requires_grad):  # in place, on a shared tensor only after `detach`
        suffix = (suffix if held is None else ".detach()") + ".requires_grad_()"
    title = f"write `{suffix}` instead" if suffix else "drop it"
    unsafe = not _is_plain_tensor(data.value, module)
    if not suffix:
        return ProposedFix(title, unwrap(call, data.value), unsafe=unsafe)
    before, after = ("", suffix) if _holds_together(data.value, module) else ("(", f"){suffix}")
    return ProposedFix(
        title,
        (
            Replacement(Anchor(call, Side.START), Anchor(data.value, Side.START), before),
            Replacement(Anchor(data.value, Side.END), Anchor(call, Side.END), after),
        ),
        unsafe=unsafe,
    )


def _is_plain_tensor(node: Node, module: FileFacts) -> bool:
    """Whether a value is certainly a plain tensor created from numbers here.

    `Variable` turns an instance of a subclass into a plain tensor.
    """
    node = module.kinds.origin(node)
    if isinstance(node, cst.Subscript) or (isinstance(node, cst.Attribute) and node.attr.value == "data"):
        return _is_plain_tensor(node.value, module)
    if not isinstance(node, cst.Call):
        return False
    made = module.qualified(node.func)
    if made is not None:
        return _FRESH.fullmatch(made) is not None and not made.endswith("_like")
    return isinstance(node.func, cst.Attribute) and (
        node.func.attr.value in _KEEPS | _CUTS and _is_plain_tensor(node.func.value, module)
    )


def _is_shared(call: cst.Call, held: Node | None, module: FileFacts, variables: _Variables) -> bool:
    """Whether the result must be a new object: the file uses the gradient or changes the data of only one of the two.

    Not if it is assigned to the wrapped name, or if neither is used in this way.
    """
    if not isinstance(held, cst.Name):
        return held is not None
    if _becomes(call, held, module):
        return False
    above = module.tree.parent[call]
    if isinstance(above, cst.Assign) and isinstance(target := above.targets[0].target, cst.Name):
        return variables.is_asked(held) or variables.is_asked(target)
    return not isinstance(above, (cst.Arg, cst.BinaryOperation, cst.Subscript)) or variables.is_asked(held)


def _becomes(call: cst.Call, name: cst.Name, module: FileFacts) -> bool:
    """Whether a call is assigned to a name, alone or in a tuple: `x, y = Variable(x), Variable(y)`."""
    above = module.tree.parent[call]
    if isinstance(above, cst.Assign):
        return all(is_name(target.target, name.value) for target in above.targets)
    values = module.tree.parent[above]
    assign = module.tree.parent[values]
    if not isinstance(values, cst.Tuple) or not isinstance(assign, cst.Assign) or len(assign.targets) > 1:
        return False
    targets = assign.targets[0].target
    return isinstance(targets, cst.Tuple) and any(
        value is above and is_name(target.value, name.value)
        for value, target in zip(values.elements, targets.elements, strict=False)
    )


def _asks_for_state(mention: cst.Name, module: FileFacts) -> bool:
    above = module.tree.parent[mention]
    while isinstance(above, cst.Subscript):
        above = module.tree.parent[above]
    return isinstance(above, cst.Attribute) and (
        above.attr.value.endswith("_") or above.attr.value in _OF_ONE_TENSOR
    )


def _writes(mention: cst.Name, module: FileFacts) -> bool:
    above = module.tree.parent[mention]
    is_part = isinstance(above, cst.Subscript)
    while isinstance(above, cst.Subscript):
        above = module.tree.parent[above]
    if isinstance(above, cst.AugAssign) or (is_part and isinstance(above, cst.AssignTarget)):
        return True
    method = above.attr.value if isinstance(above, cst.Attribute) else ""
    return method.endswith("_") and method not in _FILLS


def _held(node: Node) -> Node | None:
    """The variable whose own tensor an expression may be: `x` for `x.type(t)`; None for a new tensor."""
    while True:
        if isinstance(node, cst.Subscript):  # the batch may be a dictionary
            node = node.value
        elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            method = node.func.attr.value
            if method not in _MAY_RETURN_SELF and not method.endswith("_"):
                return None
            node = node.func.value
        else:
            break
    if isinstance(node, cst.Attribute):
        return None if node.attr.value == "data" else node
    return node if isinstance(node, cst.Name) else None


def _holds_together(node: Node, module: FileFacts) -> bool:
    head = node.func if isinstance(node, cst.Call) else node
    return is_atom(node) and "\n" not in module.verbatim(head)


def _has_no_graph(node: Node, module: FileFacts, variables: _Variables, depth: int = _DEPTH) -> bool:
    """Whether a tensor certainly has no graph and requires no gradient: new, detached, or from a loader's batch."""
    if depth == 0 or (isinstance(node, cst.Name) and variables.is_written(node)):
        return False
    if isinstance(node, cst.Name) and module.loaders.pass_of(node) is not None:
        return True
    node = module.kinds.origin(node)
    if isinstance(node, cst.Attribute):
        return node.attr.value == "data"
    if isinstance(node, cst.Subscript):
        return _has_no_graph(node.value, module, variables, depth - 1)
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
    return method in _CUTS or (
        method in _KEEPS and _has_no_graph(node.func.value, module, variables, depth - 1)
    )
