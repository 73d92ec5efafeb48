"""TA419: a container holds one layer several times instead of separate layers."""

import re
from collections.abc import Iterator
from itertools import pairwise

from torch import nn

from ta_runtime.facts import Layer, Model, Refutation, Said, Suspicion, Unobserved
from ta_runtime.probes.places import Place
from ta_runtime.probes.registers import BUILT
from ta_runtime.probes.sources import text

_SHARED = re.compile(r"shar|\btie|tied|tying|same|recurren|recursive|reus|universal|albert", re.IGNORECASE)
"""One instance on purpose, in the words of those who do it: the linter's."""


def check_model(model: Model) -> Iterator[Said]:
    for layer in model.own_layers:
        if not isinstance(layer.module, (nn.Sequential, nn.ModuleList)):
            continue
        held = [part for part in layer.module._modules.values() if part is not None and _has_weights(part)]
        if not held:
            continue
        places = [place for part in held if (place := BUILT.get(part)) is not None]
        distinct = len({id(part) for part in held})
        numbers = {"places": len(held), "distinct layers": distinct}
        if _is_multiplied([id(part) for part in layer.module._modules.values()]) and distinct < len(held):
            if not _is_meant(model, layer, places):
                kind = type(held[0]).__name__
                message = (
                    f"this repeats one `{kind}`, so all copies share weights: build each in a comprehension"
                )
                related = tuple((place, "the layer is made here") for place in dict.fromkeys(places))
                yield Suspicion(layer.place, message, numbers, related=related)
        elif len(held) == 1:
            yield Unobserved(layer.place, "it holds one layer", tuple(dict.fromkeys(places)))
        elif distinct == len(held):
            because = f"its {distinct} layers are different ones"
            yield Refutation(layer.place, because, numbers, related=tuple(dict.fromkeys(places)))


def _is_multiplied(ids: list[int]) -> bool:
    """Whether a list looks as `[layer, ...] * n` makes it: neighbours are one object, or it repeats itself throughout."""
    neighbours = any(first == second for first, second in pairwise(ids))
    periods = range(2, len(ids) // 2 + 1)
    return neighbours or any(
        len(ids) % period == 0 and ids == ids[:period] * (len(ids) // period) for period in periods
    )


def _is_meant(model: Model, layer: Layer, places: list[Place]) -> bool:
    """Whether the statements that build it, or the name of the class around it, say that the layer is shared."""
    around = type(model.module.get_submodule(layer.name.rpartition(".")[0])).__name__ if layer.name else ""
    words = " ".join([around, layer.name, *(text(place) for place in (layer.place, *places))])
    return _SHARED.search(words) is not None


def _has_weights(module: nn.Module) -> bool:
    return any(parameter.requires_grad for parameter in module.parameters())
