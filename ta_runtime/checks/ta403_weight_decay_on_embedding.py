"""TA403: weight decay shrinks the rows of an embedding, even rows that a batch does not use."""

from collections.abc import Iterator
from dataclasses import replace

from torch import nn

from ta_runtime.facts import Optimizer, Refutation, Said, Sight, Suspicion, Unobserved


def check_optimizer(optimizer: Optimizer) -> Iterator[Said]:
    decayed = [group for group in optimizer.groups if group.get("weight_decay")]
    holders = optimizer.names.holders() if decayed else {}
    names: list[str] = []
    frozen: list[str] = []
    for group in decayed:
        for tensor in group["params"]:
            held = holders.get(id(tensor), [])
            # tied to a head, it is a weight as any other
            if held and all(isinstance(module, nn.Embedding) for _, module in held):
                (names if tensor.requires_grad else frozen).append(held[0][0])
    if names:
        decay = max(float(group["weight_decay"]) for group in decayed)
        evidence: dict[str, float | str] = {
            "embeddings": len(names),
            "first": names[0],
            "weight_decay": decay,
        }
        yield Suspicion(
            optimizer.place,
            "weight decay also shrinks embeddings of tokens not in the batch: give embeddings `weight_decay=0`",
            evidence,
        )
    elif all(id(tensor) in holders for group in decayed for tensor in group["params"]):
        count = sum(len(group["params"]) for group in decayed)
        if frozen:
            yield Unobserved(optimizer.place, f"`{frozen[0]}` is frozen")
            return
        because = f"none of {count} decayed parameters is an embedding of its own"
        numbers = {"decayed parameters": count, "embeddings": 0}
        yield Refutation(optimizer.place, because, numbers, rests_on=Sight.LAYERS)


def check_init(optimizer: Optimizer) -> Iterator[Suspicion]:
    """Also where the rule is off, as it is by default: nearly every script decays its embeddings, and few suffer."""
    for said in check_optimizer(optimizer):
        if isinstance(said, Suspicion):
            yield replace(said, is_note=True)
