"""TA419: `[layer] * n`, or a loop that appends it n times, repeats one layer, with shared weights."""

import re
from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.syntax.edits import ProposedFix, replace
from ta_lint.syntax.tree import Node

KEYWORDS = (("*", "ModuleList", "Sequential"),)

# Words for deliberate sharing of one instance.
_SHARED = regex(r"shar|\btie|tied|tying|same|recurren|recursive|reus|universal|albert", re.IGNORECASE)

_NO_WEIGHTS = regex(r"nn\.\w*Dropout[123]?d?")
_GROWS = frozenset({"append", "add_module", "insert", "register_module"})
_HOLDERS = frozenset({"torch.nn.ModuleList", "torch.nn.Sequential"})


def check(module: FileFacts) -> Iterator[Suspicion]:
    for product in module.tree.all(cst.BinaryOperation):
        if isinstance(product.operator, cst.Multiply) and (layer := _repeated(module, product)) is not None:
            message = (
                f"this repeats one `{layer}`, so all copies share weights: build each in a comprehension"
            )
            yield Suspicion(product, message, fix=_fix(module, product))
    for listed in module.tree.all(cst.ListComp, cst.GeneratorExp):
        if (layer := _of_one(module, listed)) is not None:
            yield Suspicion(
                listed,
                f"this repeats one `{layer}`, so all copies share weights: build each in a comprehension",
            )
    for call in module.tree.all(cst.Call):
        if (layer := _given_again(module, call) or _of_repeat(module, call)) is not None:
            yield Suspicion(
                call,
                f"this repeats one `{layer}`, so all copies share weights: build each in a comprehension",
            )


def _given_again(module: FileFacts, call: cst.Call) -> str | None:
    """The layer that a loop adds to a container in each pass, and that was created before the loop."""
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value not in _GROWS or not call.args:
        return None
    given, loops = call.args[-1].value, module.tree.loops(call)
    holder = module.kinds.construction(call.func.value)
    if not loops or not isinstance(given, cst.Name) or holder is None:
        return None
    if module.qualified(holder.func) not in _HOLDERS or module.tree.contains(loops[0], holder):
        return None
    made = module.kinds.construction(given)
    anew = (binding.node for binding in module.names.bindings(given))
    if made is None or any(module.tree.contains(loop, node) for loop in loops for node in (made, *anew)):
        return None
    ends = any(True for _ in module.tree.own(loops[0], cst.Break, cst.Return))
    return _with_weights(module, module.layers.made(made), call) if not ends else None


def _of_repeat(module: FileFacts, call: cst.Call) -> str | None:
    """The layer of `nn.Sequential(*itertools.repeat(layer, n))`."""
    if len(call.args) != 2 or module.qualified(call.func) != "itertools.repeat" or not _is_held(module, call):
        return None
    given = call.args[0].value
    if (made := module.kinds.construction(given)) is not None:
        return _with_weights(module, module.layers.made(made), call)
    is_given = isinstance(module.kinds.origin(given), cst.Param)
    return _with_weights(module, module.code(given), call) if is_given else None


def _with_weights(module: FileFacts, layer: str | None, use: Node) -> str | None:
    """A layer that has weights, and that is not shared on purpose."""
    has = layer is not None and not _NO_WEIGHTS.fullmatch(layer) and not _is_meant(module, use)
    return layer if has else None


def _repeated(module: FileFacts, product: cst.BinaryOperation) -> str | None:
    """The layer with weights in a multiplied list."""
    listed = _list_of(product)
    if listed is None or module.number(_times(product)) == 1:
        return None
    for element in listed.elements:
        made = module.layers.made(element.value)
        held = module.kinds.construction(element.value) if made is None else None
        layer = made or (module.layers.made(held) if held is not None and _is_held(module, product) else None)
        if layer is not None and not _NO_WEIGHTS.fullmatch(layer) and not _is_meant(module, product):
            return layer
    return None


def _of_one(module: FileFacts, listed: cst.ListComp | cst.GeneratorExp) -> str | None:
    """The outer variable that a comprehension repeats as an element of a layer container."""
    if not isinstance(listed.elt, cst.Name) or not _is_held(module, listed) or _is_meant(module, listed):
        return None
    bindings = module.names.bindings(listed.elt)
    if not bindings or module.names.is_bound_in(listed.elt, listed):
        return None
    made = module.kinds.construction(listed.elt)
    if made is None:
        return module.code(listed.elt) if all(binding.how == "param" for binding in bindings) else None
    layer = module.layers.made(made)
    return layer if layer is not None and not _NO_WEIGHTS.fullmatch(layer) else None


def _list_of(product: cst.BinaryOperation) -> cst.List | None:
    return next((side for side in (product.left, product.right) if isinstance(side, cst.List)), None)


def _times(product: cst.BinaryOperation) -> Node:
    return product.right if isinstance(product.left, cst.List) else product.left


def _is_held(module: FileFacts, node: Node) -> bool:
    """Whether a list goes into an `nn.ModuleList` or `nn.Sequential`."""
    arg = module.tree.parent[node]
    call = module.tree.parent[arg] if isinstance(arg, cst.Arg) else None
    return isinstance(call, cst.Call) and module.qualified(call.func) in _HOLDERS


def _is_meant(module: FileFacts, node: Node) -> bool:
    """Whether the statement, its comments, a condition around it or the class say that the layer is shared."""
    line = module.tree.parent[module.tree.statement(node)]
    klass = module.tree.enclosing(node, cst.ClassDef)
    texts = [klass.name.value] if klass is not None else []
    texts += [
        module.code(above.test)
        for above in module.tree.ancestors(node)
        if isinstance(above, cst.If) and module.tree.contains(above.body, node)
    ]
    if isinstance(line, cst.SimpleStatementLine):
        texts += [module.verbatim(line), *module.places.comments(line)]
    return any(map(_SHARED.search, texts))


def _fix(module: FileFacts, product: cst.BinaryOperation) -> ProposedFix | None:
    """`[nn.Linear(8, 8) for _ in range(n)]`, if the layer is created in place."""
    listed = _list_of(product)
    if listed is None or len(listed.elements) != 1 or not isinstance(listed.elements[0].value, cst.Call):
        return None
    layer, times = module.verbatim(listed.elements[0].value), module.verbatim(_times(product))
    return ProposedFix(
        "make a layer for each place", (replace(product, f"[{layer} for _ in range({times})]"),)
    )
