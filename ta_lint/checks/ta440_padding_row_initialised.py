"""TA440: an initialiser fills an embedding with `padding_idx`, and nothing sets the padding row to zero again."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.events import suspicion as said
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Said
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.tree import Node, argument, dotted, is_name

KEYWORDS = ("Embedding", ("*uniform*", "*normal*", "*orthogonal*"))

_FILL = regex(r"(xavier|kaiming)_(normal|uniform)_?|(trunc_)?normal_?|uniform_?|orthogonal_?")
_INIT = "torch.nn.init."
_WRITES = frozenset({"copy_", "from_pretrained", "load_state_dict", "_fill_padding_idx_with_zero"})


def check(module: FileFacts) -> Iterator[Suspicion]:
    padded = [call for call in module.calls_to("torch.nn.Embedding") if _is_padded(module, call)]
    if not padded or _is_zeroed(module):
        return
    for call in module.tree.all(cst.Call):
        filled = _filled(module, call)
        if filled is None:
            continue
        for made in padded:
            if _is_weight_of(module, filled, made):
                message = f"`{module.code(call.func)}` also fills the row of `padding_idx`, which never trains: zero that row again"
                yield Suspicion(call, message, ((made, "its row of padding is zero here"),))
                break


def check_run(run: Run) -> Iterator[Said]:
    """Where a loop over all parameters comes by the weights of the embedding."""
    for filled in run.paddings_filled:
        message = (
            f"`{filled.code}` also fills the row of `padding_idx`, which never trains: zero that row again"
        )
        made = ((filled.made, "its row of padding is zero here"),)
        yield said.Suspicion(filled.place, message, related=made)


def _is_padded(module: FileFacts, call: cst.Call) -> bool:
    index = argument(call, "padding_idx", 2)
    if index is None or argument(call, "_weight") is not None:
        return False
    return not all(_is_none(module, value) for value in module.calls_in_loop.values(index))


def _is_none(module: FileFacts, value: Node) -> bool:
    """Whether a value is None, or an attribute that this project sets to None alone."""
    origin = module.kinds.origin(value)
    if isinstance(origin, cst.Param):
        return origin.default is not None and is_name(origin.default, "None")
    if not isinstance(origin, cst.Attribute):
        return is_name(origin, "None")
    name = origin.attr.value
    values = [
        assign.value
        for root in (module.tree.root, *(module.names.beside(name) or ()))
        for assign in module.tree.within(root, cst.Assign)
        if any((dotted(one.target) or "").endswith(f".{name}") for one in assign.targets)
    ]
    own = [one for one in values if not (isinstance(one, cst.Name) and one.value == name)]  # handed on
    return bool(own) and all(is_name(one, "None") for one in own)


def _filled(module: FileFacts, call: cst.Call) -> Node | None:
    """The tensor that a call fills at random: of `init.normal_(weight)` and `weight.data.normal_()`."""
    name = called_name(call) or ""
    if _FILL.fullmatch(name) is None:
        return None
    qualified = module.qualified(call.func) or ""
    filled: Node | None
    if qualified.startswith(_INIT):
        filled = argument(call, "tensor", 0)
    elif isinstance(call.func, cst.Attribute) and name.endswith("_") and not qualified:
        filled = call.func.value
    else:
        return None
    while isinstance(filled, cst.Attribute) and filled.attr.value == "data":
        filled = filled.value
    return filled


def _is_weight_of(module: FileFacts, filled: Node, made: cst.Call) -> bool:
    """Whether a tensor is certainly the weight of an embedding, or, in turn, of all parameters or layers of its class."""
    if isinstance(filled, cst.Attribute) and filled.attr.value == "weight":
        layer = filled.value
        if module.kinds.construction(layer) is made:
            return True
        return isinstance(layer, cst.Name) and _is_any_embedding(module, layer, filled, made)
    if not isinstance(filled, cst.Name):
        return False
    for loop in module.tree.loops(filled):
        if isinstance(loop, cst.For) and isinstance(loop.iter, cst.Call):
            names = [name.value for name in module.tree.within(loop.target, cst.Name)]
            if filled.value in names[-1:] and module.kinds.takes_parameters(loop, filled.value):
                return _is_own(module, loop.iter, made) and not _asks_for_names(module, loop, names)
    return False


def _asks_for_names(module: FileFacts, loop: cst.For, names: list[str]) -> bool:
    """Whether a loop over named parameters treats some of them by their name."""
    return len(names) > 1 and any(name.value == names[0] for name in module.tree.within(loop.body, cst.Name))


def _is_own(module: FileFacts, call: cst.Call, made: cst.Call) -> bool:
    """Whether `self.parameters()`, or `model.parameters()`, is of the class that makes an embedding in its constructor."""
    owner = module.tree.enclosing(made, cst.ClassDef)
    if owner is None or not isinstance(call.func, cst.Attribute):
        return False
    receiver = call.func.value
    if is_name(receiver, "self"):
        return module.tree.enclosing(call, cst.ClassDef) is owner
    return module.kinds.class_of(receiver) is owner


def _is_any_embedding(module: FileFacts, layer: cst.Name, filled: Node, made: cst.Call) -> bool:
    """Whether `layer` is each embedding of a class in turn: in a loop over its modules, or in the function that its `apply` calls."""
    home = module.tree.home(filled)
    owner = module.tree.enclosing(made, cst.ClassDef)
    if not isinstance(home, cst.FunctionDef) or owner is None:
        return False
    tested = module.tree.enclosing(filled, cst.If)
    if tested is None or not _tests_for_embedding(module, tested.test, layer):
        return False
    loop = module.tree.enclosing(filled, cst.For)
    if loop is not None and is_name(loop.target, layer.value):
        called = loop.iter
        return (
            isinstance(called, cst.Call)
            and called_name(called) == "modules"
            and _is_own(module, called, made)
        )
    if not any(param.name.value == layer.value for param in home.params.params):
        return False
    return any(
        called_name(call) == "apply"
        and len(call.args) == 1
        and isinstance(call.func, cst.Attribute)
        and is_name(call.func.value, "self")
        and _names_function(call.args[0].value, home.name.value)
        for call in module.tree.within(owner, cst.Call)
    )


def _tests_for_embedding(module: FileFacts, test: Node, layer: cst.Name) -> bool:
    if not isinstance(test, cst.Call) or module.qualified(test.func) != "builtins.isinstance":
        return False
    if len(test.args) != 2 or not is_name(test.args[0].value, layer.value):
        return False
    kinds = test.args[1].value
    options = [one.value for one in kinds.elements] if isinstance(kinds, cst.Tuple) else [kinds]
    return any(module.qualified(one) == "torch.nn.Embedding" for one in options)


def _names_function(node: Node, name: str) -> bool:
    return is_name(node, name) or (isinstance(node, cst.Attribute) and node.attr.value == name)


def _is_zeroed(module: FileFacts) -> bool:
    """Whether the file writes to a row of some weight, or brings its own vectors."""
    for attribute in module.tree.all(cst.Attribute):
        if attribute.attr.value in _WRITES:
            return True
        if attribute.attr.value in ("weight", "data") and isinstance(
            module.tree.parent[attribute], cst.Subscript
        ):
            return True
        if attribute.attr.value == "padding_idx" and not is_name(attribute.value, "self"):
            return True  # code that knows of the rows of others
    return False
