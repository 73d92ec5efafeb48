"""TA811: the norm of a sharded gradient is read before the ranks combine their parts."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.edits import ProposedFix, call_method
from ta_lint.syntax.tree import Node, argument, dotted

KEYWORDS = ("fully_shard", "*norm*")

_TOTAL = regex(r"torch\.nn\.utils\.(clip_grad\.)?(clip_grad_norm_|get_total_norm)")
_NORM = regex(r"torch\.(linalg\.(vector_)?norm|norm)")
_SAME = frozenset({"data", "detach", "float", "grad"})  # attributes and methods that keep a gradient's values

_REDUCED_SINCE = (2, 10)  # since then the total norm is combined where it is computed (pytorch #165962)


def check(module: FileFacts) -> Iterator[Suspicion]:
    if not module.wrappers.sharded:
        return
    for read in module.tree.all(cst.Call):
        value = _read(read, module)
        norm = module.kinds.origin(value) if value is not None else None
        if value is None or not isinstance(norm, cst.Call):
            continue
        if (owner := _sharded(norm, module)) is not None:
            written = module.code(read.func) if called_name(read) == "item" else "float"
            message = (
                f"`{written}()` reads only this rank's part of the norm of `{owner}`: call `full_tensor()`"
            )
            related = ((norm, "the norm is computed here"),) if norm is not value else ()
            yield Suspicion(read, message, related=related, fix=_fix(read, value, module))


def _read(call: cst.Call, module: FileFacts) -> cst.BaseExpression | None:
    """The tensor that a call converts to a Python number."""
    if isinstance(call.func, cst.Attribute) and call.func.attr.value == "item" and not call.args:
        return call.func.value
    if len(call.args) == 1 and module.qualified(call.func) == "builtins.float":
        return call.args[0].value
    return None


def _fix(read: cst.Call, value: cst.BaseExpression, module: FileFacts) -> ProposedFix | None:
    """`full_tensor()`, which all ranks must call; no fix under a condition on the rank."""
    if module.ranks.guard(read) is not None:
        return None
    return ProposedFix("put the parts together first", call_method(value, ".full_tensor()"))


def _sharded(norm: cst.Call, module: FileFacts) -> str | None:
    """The sharded model whose parameters a partial norm is computed from; None for any other call."""
    called = module.qualified(norm.func)
    if called is not None and _TOTAL.fullmatch(called):
        given = argument(norm, "parameters", 0) or argument(norm, "tensors", 0)
        if given is None or not (module.targets_before(*_REDUCED_SINCE) or _is_maximum(norm, called, module)):
            return None
        return _owner(given, module)
    if called is not None and _NORM.fullmatch(called):
        return _owner_of_element(norm.args[0].value, module) if norm.args else None
    if isinstance(norm.func, cst.Attribute) and norm.func.attr.value == "norm":
        return _owner_of_element(norm.func.value, module)
    return None


def _is_maximum(norm: cst.Call, called: str, module: FileFacts) -> bool:
    """Whether a total norm is the largest entry, which stays partial in every release."""
    given = argument(norm, "norm_type", 2 if called.endswith("clip_grad_norm_") else 1)
    return given is not None and module.kinds.is_infinite(given)


def _owner(parameters: Node, module: FileFacts) -> str | None:
    """The sharded model whose parameters an expression takes."""
    origin = module.kinds.origin(parameters)
    owners = (
        dotted(call.func.value)
        for call in module.tree.within(origin, cst.Call)
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in ("parameters", "named_parameters")
    )
    return next((owner for owner in owners if owner in module.wrappers.sharded), None)


def _owner_of_element(node: Node, module: FileFacts) -> str | None:
    """The sharded model whose parameter or gradient an expression is, in a loop over them."""
    while True:
        if isinstance(node, cst.Call) and not node.args:
            node = node.func
        elif isinstance(node, cst.Attribute) and node.attr.value in _SAME:
            node = node.value
        else:
            break
    binding = module.names.definition(node) if isinstance(node, cst.Name) else None
    if binding is None or binding.how != "for" or binding.value is None:
        return None
    return _owner(binding.value, module)
