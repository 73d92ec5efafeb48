"""TA402: weight decay shrinks normalisation weights and biases that should be excluded."""

from collections import Counter
from collections.abc import Iterator

from ta_lint.events.decay import DecayGroup, HasGroups, HeldParameter, Role
from ta_lint.events.suspicion import Refutation, Said, Sight, Suspicion, Unobserved

KEYWORDS = ("weight_decay", ("parameters", "named_parameters"))

STRONG = 0.05
"""From here on decoupled decay of everything is reported: recipes with that much (GPT-3 and LLaMA 0.1, DeiT 0.05)
leave out norms and biases. With AdamW's default, 0.01, and a learning rate of 3e-4, 100,000 steps shrink a weight by a
quarter, and nearly every script has it."""
EXEMPT = frozenset({Role.NORM, Role.BIAS})
"""What recipes do not decay."""


def check_optimizer(optimizer: HasGroups) -> Iterator[Said]:
    exclusions = [group for group in optimizer.decays if _is_exclusion(group)]
    excludes = bool(exclusions)
    decayed = [group for group in optimizer.decays if group.decay or (group.decay is None and excludes)]
    if not decayed:
        return
    filtered = all(group.parameters for group in exclusions) and excludes
    shrunk = [one for group in decayed for one in _shrunk(group, excludes=excludes, filtered=filtered)]
    if trained := [one for one in shrunk if one.trainable]:
        strong = "strong weight decay also shrinks norm weights and biases: put these in a group without it"
        missed = "norm weights or biases are decayed, as the no-decay group lacks them: pick by layer type, not name"
        yield Suspicion(optimizer.place, missed if excludes else strong, _evidence(trained, decayed))
    elif all(group.is_named for group in decayed):
        exempt = [one for group in decayed for one in group.parameters if one.role in EXEMPT]
        if any(one.trainable for one in exempt):
            return  # too little decay to tell
        if exempt:
            yield Unobserved(optimizer.place, f"{len(exempt)} norm weights and biases are frozen")
            return
        count = sum(len(group.parameters) for group in decayed)
        because = f"none of {count} decayed parameters is a norm weight or bias"
        numbers = {"decayed parameters": count, "norm weights or biases": 0}
        yield Refutation(optimizer.place, because, numbers, rests_on=Sight.LAYERS)


def check_init(optimizer: HasGroups) -> Iterator[Suspicion]:
    """Also mild decay, which nearly every script has: it does little."""
    if any(isinstance(said, Suspicion) for said in check_optimizer(optimizer)):
        return
    decayed = [group for group in optimizer.decays if group.decay]
    shrunk = [one for group in decayed for one in group.parameters if one.role in EXEMPT and one.trainable]
    if shrunk:
        message = "weight decay also shrinks norm weights and biases, a little: recipes leave them out"
        yield Suspicion(optimizer.place, message, _evidence(shrunk, decayed), is_note=True)


def _shrunk(group: DecayGroup, *, excludes: bool, filtered: bool) -> list[HeldParameter]:
    """The parameters of a decayed group that were meant to be left out, or that the decay is too strong for: of a network out of
    sight nobody knows them, unless its no-decay group is empty."""
    is_strong = group.is_decoupled and group.decay is not None and group.decay >= STRONG
    if not excludes and not is_strong:
        return []
    roles = EXEMPT if filtered else {*EXEMPT, Role.NETWORK}
    return [one for one in group.parameters if one.role in roles]


def _is_exclusion(group: DecayGroup) -> bool:
    """Whether a group excludes norm weights or biases from the decay; a group that its filter left empty should.

    Not one of embeddings alone: leaving those out says nothing about the others.
    """
    if group.decay != 0 or not group.is_named:
        return False
    meant = not group.parameters or any(one.role in EXEMPT and one.trainable for one in group.parameters)
    return meant and not any(one.role is Role.MATRIX for one in group.parameters)


def _evidence(shrunk: list[HeldParameter], decayed: list[DecayGroup]) -> dict[str, float | str]:
    kinds = Counter(one.role.value for one in shrunk if one.role is not None)
    return {**kinds, "first": shrunk[0].name, "weight_decay": max(group.decay or 0.0 for group in decayed)}
