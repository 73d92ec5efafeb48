"""TA400: a convolution or linear layer has a bias that the following normalisation subtracts again."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.events import suspicion as said
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Said
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.chains import Link
from ta_lint.syntax.edits import ProposedFix, set_argument
from ta_lint.syntax.tree import argument, is_name, spreads

KEYWORDS = (
    ("*Norm1d", "*Norm2d", "*Norm3d", "SyncBatchNorm"),
    ("Linear", "LazyLinear", "Conv*", "LazyConv*"),
)

_BIASED = regex(r"torch\.nn\.(?:Lazy)?(?:Conv(?:Transpose)?[123]d|Linear)")
_CONVOLUTION = regex(r"torch\.nn\.(?:Lazy)?Conv(?:Transpose)?[123]d")
_LINEAR = regex(r"torch\.nn\.(?:Lazy)?Linear")
_NORM = regex(r"torch\.nn\.(?:(?:Lazy)?(?:Batch|Instance)Norm[123]d|SyncBatchNorm)")
_FLAT_NORM = regex(r"torch\.nn\.(?:Lazy)?BatchNorm1d")

_OF_NORMS_ALONE = regex(r"^(?!.*(?:Conv|Linear)).*Norm")


def check(module: FileFacts) -> Iterator[Suspicion]:
    if not any(_has_bias(module, call) for call, _ in module.calls_matching(_BIASED)):
        return
    seen: set[cst.Call] = set()
    for link in module.chains.links(_NORM):
        if link.first not in seen and _has_bias(module, link.first) and _is_cancelled(module, link):
            seen.add(link.first)
            layer = module.code(link.first.func)
            message = f"the bias of this `{layer}` has no effect, as the normalisation after it subtracts it: set `bias=False`"
            norm = ((link.second, f"`{module.code(link.second.func)}` subtracts the mean of each channel"),)
            yield Suspicion(link.first, message, related=norm, fix=_fix(module, link))


def check_run(run: Run) -> Iterator[Said]:
    """Where a function makes the layer, or an option selects the norm."""
    for layer in run.cancelled:
        message = f"the bias of this `{layer.kind}` has no effect, as the normalisation after it subtracts it: set `bias=False`"
        norm = ((layer.norm, "this subtracts the mean of each channel"),)
        yield said.Suspicion(layer.place, message, related=norm)


def _has_bias(module: FileFacts, call: cst.Call) -> bool:
    """Whether a layer certainly has a bias: explicitly or by default."""
    bias = _bias(module, call)
    return not spreads(call) and (bias is None or module.boolean(bias) is True)


def _bias(module: FileFacts, call: cst.Call) -> cst.BaseExpression | None:
    called = module.qualified(call.func) or ""
    return argument(call, "bias", (2 if _LINEAR.fullmatch(called) else 7) - ("Lazy" in called))


def _is_cancelled(module: FileFacts, link: Link) -> bool:
    layer, norm = module.qualified(link.first.func) or "", module.qualified(link.second.func) or ""
    if _CONVOLUTION.fullmatch(layer):
        return _NORM.fullmatch(norm) is not None
    if not _LINEAR.fullmatch(layer) or not _FLAT_NORM.fullmatch(norm):
        return False
    return _width(module, link.first, "out_features", 0 if "Lazy" in layer else 1) == _width(
        module, link.second, "num_features", 0
    )


def _width(module: FileFacts, call: cst.Call, keyword: str, position: int) -> float | str | None:
    """The number of features of a layer, or the expression for it."""
    features = argument(call, keyword, position)
    if features is None:
        return None
    number = module.number(features)
    return number if number is not None else module.code(features)


def _fix(module: FileFacts, link: Link) -> ProposedFix | None:
    """`bias=False`, where no other code reads the bias."""
    if link.mentions or any(_needs_a_layers_bias(module, read) for read in module.tree.all(cst.Attribute)):
        return None
    bias = _bias(module, link.first)
    edit = set_argument(link.first, "bias", "False", bias)
    return ProposedFix("leave the bias out", (edit,)) if edit is not None else None


def _needs_a_layers_bias(module: FileFacts, read: cst.Attribute) -> bool:
    """Whether `m.bias` is used on any of many layers, as in an initialisation, without testing if there is one."""
    if read.attr.value != "bias" or is_name(read.value, "self"):
        return False
    tests = [
        module.code(guard.test)
        for guard in module.tree.ancestors(read)
        if isinstance(guard, cst.If) and module.tree.contains(guard.body, read)
    ]
    return not any("bias" in test or _OF_NORMS_ALONE.search(test) for test in tests) and not any(
        module.tree.contains(guard.test, read)
        for guard in module.tree.ancestors(read)
        if isinstance(guard, (cst.If, cst.IfExp))
    )
