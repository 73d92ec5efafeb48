"""TA305: an embedding is asked for ids that its table does not have."""

from collections.abc import Iterator

from torch import nn

from ta_runtime.facts import Call, Step, Suspicion

_LOOKUPS = (nn.Embedding.forward, nn.EmbeddingBag.forward)


def check_step(step: Step) -> Iterator[Suspicion]:
    for forward in step.forwards:
        for call in forward.lookups:
            ids, size = call.inputs[0], _size(call)
            if size is None or ids.minimum is None or ids.maximum is None:
                continue
            layer = call.layer
            if ids.minimum < 0:
                message = f"ids below zero are looked up in {layer}"
            elif ids.maximum >= size:
                message = f"ids beyond the end of the table are looked up in {layer}"
            else:
                continue
            evidence = {"smallest id": int(ids.minimum), "largest id": int(ids.maximum), "table": size}
            yield Suspicion(
                forward.place, message, evidence, layer.name, related=((layer.place, "the table"),)
            )


def _size(call: Call) -> int | None:
    """Rows of the table; None for a class that may map ids first, in a `forward` of its own."""
    module = call.module
    if isinstance(module, (nn.Embedding, nn.EmbeddingBag)) and type(module).forward in _LOOKUPS:
        return module.num_embeddings
    return None
