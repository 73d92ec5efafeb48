"""TA603: `optimizer.step`, `loss.backward`, `model.eval`: a statement names a method without calling it."""

import re
from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Kind, Suspicion
from ta_lint.syntax.edits import ProposedFix, insert_after
from ta_lint.syntax.tree import Node, dotted

KEYWORDS = (
    tuple(
        "backward barrier cpu cuda destroy_process_group empty_cache eval ipc_collect manual_backward "
        "reset_peak_memory_stats step synchronize train unscale_ update zero_grad".split()
    ),
)

_FUNCTIONS = frozenset(
    "torch.cuda.empty_cache torch.cuda.ipc_collect torch.cuda.reset_peak_memory_stats torch.cuda.synchronize "
    "torch.distributed.barrier torch.distributed.destroy_process_group torch.mps.empty_cache torch.mps.synchronize "
    "torch.xpu.empty_cache torch.xpu.synchronize".split()
)

# No library has a property of one of these names that is read for its side effect.
_ALWAYS_METHODS = frozenset({"backward", "manual_backward", "zero_grad"})

_NEED_ARGUMENTS = frozenset({"manual_backward", "unscale_"})

_MODULE_NAME = regex(
    r"(model|net|network|module|(^|_)(backbone|encoder|decoder|transformer|vae|classifier|generator|discriminator|"
    r"critic|actor|policy|student|teacher|net[dg]))\d*$",
    re.IGNORECASE,
)
_SCHEDULER_NAME = regex(r"sched", re.IGNORECASE)


def check(module: FileFacts) -> Iterator[Suspicion]:
    if module.source.path.endswith(".pyi"):
        return
    for statement in module.tree.all(cst.Expr):
        value = statement.value
        if (
            isinstance(value, cst.Attribute)
            and _does_something(value, module)
            and not _is_probe(statement, module)
            and not module.is_shown(statement)
        ):
            message = f"`{module.code(value)}` is not called and does nothing: add `()`"
            yield Suspicion(value, message, fix=_called(value, module))


def _called(value: cst.Attribute, module: FileFacts) -> ProposedFix | None:
    """The call, if it certainly needs no arguments."""
    name = value.attr.value
    if name in _NEED_ARGUMENTS or (name == "step" and not _steps_without_arguments(value.value, module)):
        return None
    return ProposedFix("call it", (insert_after(value, "()"),))


def _steps_without_arguments(receiver: cst.BaseExpression, module: FileFacts) -> bool:
    """Whether `step()` takes no arguments: a gradient scaler takes an optimizer, `ReduceLROnPlateau` the metric."""
    if module.kinds.is_scaler(receiver):
        return False
    made = module.kinds.construction(receiver)
    qualified = module.qualified(made.func) if made is not None else None
    is_scheduler = qualified is not None and not qualified.endswith(".ReduceLROnPlateau")
    return is_scheduler or module.kinds.is_optimizer(receiver)


def _does_something(attribute: cst.Attribute, module: FileFacts) -> bool:
    """Whether the attribute is a method or function with an effect when called."""
    receiver, name = attribute.value, attribute.attr.value
    if module.qualified(attribute) in _FUNCTIONS or name in _ALWAYS_METHODS:
        return True
    if name in ("cpu", "cuda", "eval", "train"):
        return _is(receiver, Kind.MODULE, _MODULE_NAME, module) or _is_own_method(attribute, module)
    if name == "step":
        is_scheduler = _is(receiver, Kind.SCHEDULER, _SCHEDULER_NAME, module)
        return is_scheduler or module.kinds.is_optimizer(receiver) or module.kinds.is_scaler(receiver)
    return name in ("update", "unscale_") and module.kinds.is_scaler(receiver)


def _is_own_method(attribute: cst.Attribute, module: FileFacts) -> bool:
    """`self.eval` in a module class, or in a class that defines this method itself."""
    klass = module.tree.enclosing(attribute, cst.ClassDef)
    if klass is None or dotted(attribute.value) != "self":
        return False
    own = module.classes.methods(klass).get(attribute.attr.value)
    return not own.decorators if own is not None else module.classes.derives(klass, "torch.nn.Module")


def _is(receiver: Node, kind: Kind, name: re.Pattern[str], module: FileFacts) -> bool:
    known = module.kind(receiver)
    named = receiver.value if isinstance(receiver, cst.Subscript) else receiver
    last = (dotted(named) or "").rpartition(".")[2]
    return known is kind or (known is None and name.search(last) is not None)


def _is_probe(statement: cst.Expr, module: FileFacts) -> bool:
    """Whether the attribute is read in a `try` to test if it exists."""
    for above in module.tree.ancestors(statement):
        if isinstance(above, cst.Try) and above.handlers and module.tree.contains(above.body, statement):
            return module.tree.block(statement) is above.body
    return False
