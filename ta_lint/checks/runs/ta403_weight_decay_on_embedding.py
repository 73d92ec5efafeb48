"""TA403: weight decay shrinks the rows of an embedding, even rows that a batch does not use."""

from collections.abc import Iterator
from dataclasses import replace

from ta_lint.events.decay import HasGroups, Role
from ta_lint.events.suspicion import Refutation, Said, Sight, Suspicion, Unobserved

KEYWORDS = (("AdamW", "weight_decay"), ("parameters", "named_parameters"))
AROUND = ("Embedding",)


def check_optimizer(optimizer: HasGroups) -> Iterator[Said]:
    decayed = [group for group in optimizer.decays if group.decay]
    every = [one for group in decayed for one in group.parameters]
    embeddings = [one for one in every if one.role is Role.EMBEDDING]
    if trained := [one for one in embeddings if one.trainable]:
        evidence: dict[str, float | str] = {
            "embeddings": len(trained),
            "first": trained[0].name,
            "weight_decay": max(group.decay or 0.0 for group in decayed),
        }
        yield Suspicion(
            optimizer.place,
            "weight decay also shrinks embeddings of tokens not in the batch: give embeddings `weight_decay=0`",
            evidence,
        )
    elif all(group.is_named for group in decayed):
        if embeddings:
            yield Unobserved(optimizer.place, f"`{embeddings[0].name}` is frozen")
            return
        because = f"none of {len(every)} decayed parameters is an embedding of its own"
        numbers = {"decayed parameters": len(every), "embeddings": 0}
        yield Refutation(optimizer.place, because, numbers, rests_on=Sight.LAYERS)


def check_init(optimizer: HasGroups) -> Iterator[Suspicion]:
    """Also where the rule is off, as it is by default: nearly every script decays its embeddings, and few suffer."""
    for said in check_optimizer(optimizer):
        if isinstance(said, Suspicion):
            yield replace(said, is_note=True)
