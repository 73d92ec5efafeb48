"""TA808: the handle of an asynchronous send, receive or collective is dropped, so nothing waits for it."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.layout import plain
from ta_lint.syntax.tree import argument

KEYWORDS = ("*distributed*", ("isend", "irecv", "batch_isend_irecv", "async_op"))

_ALWAYS_ASYNCHRONOUS = (
    "torch.distributed.isend",
    "torch.distributed.irecv",
    "torch.distributed.batch_isend_irecv",
)


def check(module: FileFacts) -> Iterator[Suspicion]:
    for call in module.tree.all(cst.Call):
        if _is_asynchronous(call, module) and not _is_synchronized(call, module):
            statement = module.tree.parent[call]
            name = module.code(call.func)
            if isinstance(statement, cst.Expr):
                yield Suspicion(
                    call, f"nothing waits for the result of `{name}`: keep the handle and call `wait()`"
                )
            elif (handle := _unread(statement, module)) is not None:
                yield Suspicion(call, f"nothing waits for the result of `{name}`: call `{handle}.wait()`")


def _is_asynchronous(call: cst.Call, module: FileFacts) -> bool:
    qualified = module.qualified(call.func) or ""
    if qualified in _ALWAYS_ASYNCHRONOUS:
        return True
    asynchronous = argument(call, "async_op")
    return (
        asynchronous is not None
        and qualified.startswith("torch.distributed.")
        and module.boolean(asynchronous) is True
    )


def _unread(statement: cst.CSTNode, module: FileFacts) -> str | None:
    """The variable that gets a handle and is never read."""
    if not isinstance(statement, cst.Assign) or len(statement.targets) != 1:
        return None
    target = statement.targets[0].target
    if not isinstance(target, cst.Name):
        return None
    mentions = module.names.mentions(target)
    written = all(isinstance(module.tree.parent[name], cst.AssignTarget) for name in mentions)
    return target.value if mentions and written else None


def _is_synchronized(call: cst.Call, module: FileFacts) -> bool:
    """Whether later code waits for the device, or a context manager collects the handles."""
    if any(
        "coalesc" in plain(item.item)
        for above in module.tree.ancestors(call)
        if isinstance(above, cst.With)
        for item in above.items
    ):
        return True
    later = module.tree.own(module.tree.home(call), cst.Call)
    return any(called_name(other) == "synchronize" and module.tree.before(call, other) for other in later)
