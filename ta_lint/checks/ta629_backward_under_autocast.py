"""TA629: a backward pass runs inside of `autocast`, which torch advises against."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.core.protocol import Action
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.vocabulary import PREPARER_NAMES
from ta_lint.syntax.tree import argument, dotted

KEYWORDS = ("*backward", "autocast")

_AUTOCAST = regex(r"torch\.(\w+\.)*autocast")


def check(module: FileFacts) -> Iterator[Suspicion]:
    if module.is_test:
        return
    for backward in module.order.events(Action.BACKWARD):
        block = _autocast(module, backward.call)
        if block is not None and not _is_off(module, block):
            message = f"`{module.code(backward.call)}` runs under `{module.code(block)}`, which is for forward passes"
            yield Suspicion(backward.call, message, ((block, "the block begins here"),))


def _autocast(module: FileFacts, call: cst.Call) -> cst.Call | None:
    """The innermost autocast around a call, in its function."""
    home = module.tree.home(call)
    for above in module.tree.ancestors(call):
        if above is home:
            return None
        for item in reversed(above.items) if isinstance(above, cst.With) else ():
            if isinstance(item.item, cst.Call) and _is_autocast(module, item.item):
                return item.item
    return None


def _is_autocast(module: FileFacts, call: cst.Call) -> bool:
    qualified = module.qualified(call.func)
    if qualified is not None:
        return _AUTOCAST.fullmatch(qualified) is not None
    receiver = call.func.value if isinstance(call.func, cst.Attribute) else call.func
    return called_name(call) == "autocast" and (dotted(receiver) or "").rpartition(".")[2] in PREPARER_NAMES


def _is_off(module: FileFacts, block: cst.Call) -> bool:
    enabled = argument(block, "enabled")
    return enabled is not None and module.boolean(enabled) is False
