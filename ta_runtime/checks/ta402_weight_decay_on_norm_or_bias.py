"""TA402: weight decay shrinks normalisation weights and biases that should be excluded."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from ta_runtime.facts import Optimizer, Refutation, Said, Sight, Suspicion, Unobserved

STRONG = 0.05
"""From here on decoupled decay of everything is reported: recipes with that much (GPT-3 and LLaMA 0.1, DeiT 0.05)
leave out norms and biases. With AdamW's default, 0.01, and a learning rate of 3e-4, 100,000 steps shrink a weight by a
quarter, and nearly every script has it."""

_NORM = re.compile(r"Norm(?:\d[dD])?$")
_BIAS = re.compile(r"(?:^|\.)(?:\w+_)?bias(?:_\w+)?$")

Holders = dict[int, list[tuple[str, nn.Module]]]


def check_optimizer(optimizer: Optimizer) -> Iterator[Said]:
    decayed = [group for group in optimizer.groups if group.get("weight_decay")]
    if not decayed:
        return
    holders = optimizer.names.holders()
    excludes = any(_is_exclusion(group, holders) for group in optimizer.groups)
    kinds: Counter[str] = Counter()
    first = ""
    mild = unknown = frozen = 0
    for group in decayed:
        is_meant = excludes or _is_strong(optimizer, group)
        for tensor in group["params"]:
            held = holders.get(id(tensor), ())[:1]
            unknown += not held
            for name, module in held:
                if (kind := _kind(name, module, tensor)) and is_meant:
                    kinds[kind] += 1
                    first = first or name
                mild += kind is not None and not is_meant
                frozen += not tensor.requires_grad and _named(name, module, tensor) is not None
    if kinds:
        strong = "strong weight decay also shrinks norm weights and biases: leave them out"
        missed = "norm weights or biases are decayed, as the no-decay group lacks them: pick by layer type, not name"
        decay = max(float(group["weight_decay"]) for group in decayed)
        evidence: dict[str, float | str] = {**kinds, "first": first, "weight_decay": decay}
        yield Suspicion(optimizer.place, missed if excludes else strong, evidence)
    elif not mild and not unknown:
        if frozen:
            yield Unobserved(optimizer.place, f"{frozen} norm weights and biases are frozen")
            return
        held_alone = sum(len(group["params"]) for group in decayed)
        because = f"none of {held_alone} decayed parameters is a norm weight or bias"
        numbers = {"decayed parameters": held_alone, "norm weights or biases": 0}
        yield Refutation(optimizer.place, because, numbers, rests_on=Sight.LAYERS)


def check_init(optimizer: Optimizer) -> Iterator[Suspicion]:
    """Also mild decay, which nearly every script has: it does little."""
    if any(isinstance(said, Suspicion) for said in check_optimizer(optimizer)):
        return
    holders = optimizer.names.holders()
    kinds: Counter[str] = Counter()
    for group in (group for group in optimizer.groups if group.get("weight_decay")):
        for tensor in group["params"]:
            for name, module in holders.get(id(tensor), ())[:1]:
                if kind := _kind(name, module, tensor):
                    kinds[kind] += 1
    if kinds:
        decay = max(float(group["weight_decay"]) for group in optimizer.groups)
        message = "weight decay also shrinks norm weights and biases, a little: recipes leave them out"
        yield Suspicion(optimizer.place, message, {**kinds, "weight_decay": decay}, is_note=True)


def _is_exclusion(group: dict[str, Any], holders: Holders) -> bool:
    """Whether a group excludes norm weights or biases from the decay; a group that its filter left empty should.

    Not one of embeddings alone: leaving those out says nothing about the others.
    """
    if group.get("weight_decay", 1.0):
        return False
    held = [(tensor, *holder) for tensor in group["params"] for holder in holders.get(id(tensor), ())[:1]]
    known = len(held) == len(group["params"])
    matrices = any(
        isinstance(module, (nn.Linear, _ConvNd)) and name.endswith("weight") for _, name, module in held
    )
    meant = not held or any(_kind(name, module, tensor) for tensor, name, module in held)
    return known and meant and not matrices


def _is_strong(optimizer: Optimizer, group: dict[str, Any]) -> bool:
    decoupled = "AdamW" in optimizer.kind or bool(group.get("decoupled_weight_decay"))
    return decoupled and float(group["weight_decay"]) >= STRONG


def _kind(name: str, module: nn.Module, tensor: Tensor) -> str | None:
    return _named(name, module, tensor) if tensor.requires_grad else None


def _named(name: str, module: nn.Module, tensor: Tensor) -> str | None:
    if tensor.dim() > 1:
        return None
    if _BIAS.search(name):
        return "biases"
    return "norm weights" if _NORM.search(type(module).__name__) else None
