"""TA561: the latents of an autoencoder are noised, or denoised, without its scaling factor."""

import re
from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.facts.values.value import Frame, Value
from ta_lint.syntax.edits import ProposedFix, insert_after
from ta_lint.syntax.tree import Node, argument, dotted

KEYWORDS = (("add_noise", "q_sample", "*unet*"),)
AROUND = ("latent_dist",)

_NOISES = frozenset({"add_noise", "q_sample"})
_DENOISER = regex(r"_?(\w+_)?unet(_\w+)?", re.IGNORECASE)
_DRAWS = frozenset({"sample", "mode"})

# Calls that do not change the scale of latents.
_KEEPS = frozenset(
    "clone contiguous cpu cuda detach double expand flatten float half permute repeat repeat_interleave requires_grad_ reshape "
    "squeeze to type unsqueeze view".split()
)
_DEPTH = 8


def check(module: FileFacts) -> Iterator[Suspicion]:
    reported: set[Node] = set()
    for call in module.tree.all(cst.Call):
        given = _given(call)
        if given is None:
            continue
        for latents in _latents(module, module.flow.of(given), _DEPTH) or ():
            node = latents if module.is_here(latents) else call
            if node not in reported and not _is_of_project(module, latents):
                reported.add(node)
                message = f"latents with a standard deviation near 5 go into `{module.code(call.func)}`: scale them to 1 first"
                fix = _fix(module, latents) if node is latents else None
                yield Suspicion(node, message, ((call, "what they are given to"),), fix)


def _given(call: cst.Call) -> cst.BaseExpression | None:
    """What a call noises, or denoises."""
    name = called_name(call) or ""
    if name in _NOISES:
        return argument(call, "original_samples", 0) or argument(call, "x_start", 0)
    return argument(call, "sample", 0) if _DENOISER.fullmatch(name) else None


def _latents(module: FileFacts, value: Value, depth: int) -> list[Node] | None:
    """What draws the latents that a value certainly is, with nothing but casts on the way; None for any other value."""
    if depth == 0 or not value.origins or any(_is_written(module, alias) for alias in value.aliases):
        return None
    found: list[Node] = []
    for origin in value.origins:
        node = origin.node
        inner = _kept(node)
        if _draws(module, node, origin.path, origin.frame):
            found.append(node)
        elif inner is not None and (
            behind := _latents(module, module.flow.of(inner, (), origin.frame), depth - 1)
        ):
            found += behind
        else:
            return None
    return found


def _draws(module: FileFacts, node: Node, path: tuple[object, ...], frame: Frame | None) -> bool:
    """Whether an expression is `latent_dist.sample()`, `.mode()` or `.mean`."""
    if path:
        return path[-2:] == ("latent_dist", "mean")
    is_draw = isinstance(node, cst.Call) and called_name(node) in _DRAWS
    return (
        is_draw
        and isinstance(node, cst.Call)
        and isinstance(node.func, cst.Attribute)
        and _is_distribution(module, node.func.value, frame)
    )


def _is_distribution(module: FileFacts, node: Node, frame: Frame | None) -> bool:
    origins = module.flow.of(node, (), frame).origins
    return bool(origins) and all(origin.path[-1:] == ("latent_dist",) for origin in origins)


def _kept(node: Node) -> Node | None:
    """`x` of `x.to(device)`."""
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and called_name(node) in _KEEPS:
        return node.func.value
    return None


def _is_written(module: FileFacts, variable: Node) -> bool:
    """Whether a method changes the values of a variable in place."""
    path = dotted(variable)
    return any(
        called_name(call) in ("mul_", "div_", "sub_")
        and isinstance(call.func, cst.Attribute)
        and dotted(call.func.value) == path
        for call in module.tree.own(module.tree.home(variable), cst.Call)
    )


def _encoder(module: FileFacts, latents: Node) -> Node | None:
    """`vae` of `vae.encode(images).latent_dist.sample()`."""
    encodes = (call for call in module.tree.within(latents, cst.Call) if called_name(call) == "encode")
    call = next(encodes, None)
    return call.func.value if call is not None and isinstance(call.func, cst.Attribute) else None


def _is_of_project(module: FileFacts, latents: Node) -> bool:
    encoder = _encoder(module, latents)
    return encoder is not None and module.kinds.class_of(encoder) is not None


def _fix(module: FileFacts, latents: Node) -> ProposedFix | None:
    encoder = _encoder(module, latents)
    if encoder is None or dotted(encoder) is None:
        return None
    if not isinstance(module.tree.parent[latents], (cst.Assign, cst.Return, cst.Arg)):
        return None
    factor = f" * {module.verbatim(encoder)}.config.scaling_factor"
    return ProposedFix("multiply by the factor of the autoencoder", (insert_after(latents, factor),))
