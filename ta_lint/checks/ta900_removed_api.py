"""TA900: an API that torch has removed raises when it is used."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.torch.symbols import keywords
from ta_lint.facts.values.kinds import Kind
from ta_lint.syntax.edits import ProposedFix, replace
from ta_lint.syntax.tree import Node, dotted, whole_index

# Operations on a scalar that keep its value.
_SAME = frozenset("clone contiguous cpu cuda data detach double float half numpy".split())

KEYWORDS = ((*keywords("removed"), "data", "item", "next", "*loss*"),)


def check(module: FileFacts) -> Iterator[Suspicion]:
    for use in module.api.uses:
        symbol = use.symbol
        if not symbol.removed or module.targets_before(*symbol.removed):
            continue
        instead = f", in favor of {use.instead}" if use.instead else ""
        yield Suspicion(
            use.node,
            f"`{use.name}` was removed in torch {symbol.removed}{instead}",
            related=tuple((name, "used here") for name in module.api.mentions(use)),
            fix=module.renaming.fix(use),
        )
    yield from _indexed_numbers(module)
    if not module.targets_before(1, 13):
        yield from _next_of_loaders(module)


def _indexed_numbers(module: FileFacts) -> Iterator[Suspicion]:
    """Losses and sums, which have had no dimension since torch 0.4, and raise when indexed since 0.5."""
    for part in module.tree.all(cst.Subscript):
        if whole_index(part) is None or not _is_in_sight(part, module) or module.fallbacks.around(part):
            continue
        number = _whole(part.value)
        if module.shapes.shape(number) != ():
            continue
        code = module.verbatim(number)
        above = module.tree.parent[part]
        taken = isinstance(above, cst.Attribute) and above.attr.value == "item"
        fix = ProposedFix("take the number", (replace(part, code if taken else f"{code}.item()"),))
        message = f"`{module.code(part)}` indexes a number, which raises since torch 0.5: use `{code}.item()`"
        yield Suspicion(part, message, fix=fix)


def _is_in_sight(part: cst.Subscript, module: FileFacts) -> bool:
    """Whether an index is before `.item()`, after `.data`, or on something named like a loss."""
    above = module.tree.parent[part]
    if isinstance(above, cst.Attribute) and above.attr.value == "item":
        return True
    if "loss" in (dotted(part.value) or "").rpartition(".")[2].lower():
        return True
    number = _whole(part.value)
    return any(name.value == "data" for name in module.tree.within(part.value, cst.Name)) and not any(
        name.value == "data" for name in module.tree.within(number, cst.Name)
    )


def _whole(node: Node) -> Node:
    """`loss` in `loss.data.cpu().numpy()`."""
    while True:
        called = node.func if isinstance(node, cst.Call) and not node.args else None
        if isinstance(node, cst.Attribute) and node.attr.value == "data":
            node = node.value
        elif isinstance(called, cst.Attribute) and called.attr.value in _SAME - {"data"}:
            node = called.value
        else:
            return node


def _next_of_loaders(module: FileFacts) -> Iterator[Suspicion]:
    for call in module.tree.all(cst.Call):
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "next" or call.args:
            continue
        made = module.kinds.origin(call.func.value)
        if not isinstance(made, cst.Call) or module.fallbacks.around(call):
            continue
        loader: Node | None = None
        if module.qualified(made.func) == "builtins.iter" and len(made.args) == 1:
            loader = made.args[0].value
        elif isinstance(made.func, cst.Attribute) and made.func.attr.value == "__iter__":
            loader = made.func.value
        if loader is None or module.kind(loader) is not Kind.DATALOADER:
            continue
        code = f"next({module.verbatim(call.func.value)})"
        message = f"`{module.code(call.func)}` was removed in torch 1.13, in favor of `{code}`"
        yield Suspicion(call, message, fix=ProposedFix(f"write `{code}`", (replace(call, code),)))
