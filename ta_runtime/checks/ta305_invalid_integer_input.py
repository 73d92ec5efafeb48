"""TA305: an embedding gets ids that its table does not have."""

from collections.abc import Iterator

from torch import nn

from ta_runtime.facts import Layer, Run, Step, Suspicion
from ta_runtime.probes.places import Place

_LOOKUPS = (nn.Embedding.forward, nn.EmbeddingBag.forward)


def check_step(step: Step) -> Iterator[Suspicion]:
    for forward in step.forwards:
        for call in forward.lookups:
            ids, rows = call.inputs[0], _rows(call.module)
            if rows is not None and ids.minimum is not None and ids.maximum is not None:
                yield from _said(forward.place, call.layer, int(ids.minimum), int(ids.maximum), rows)


def check_run(run: Run) -> Iterator[Suspicion]:
    failed = run.failure.lookup if run.failure is not None else None
    if failed is not None and _rows(failed.layer.module) is not None:
        yield from _said(failed.place, failed.layer, failed.smallest, failed.largest, failed.rows)


def _said(place: Place, layer: Layer, smallest: int, largest: int, rows: int) -> Iterator[Suspicion]:
    if smallest < 0:
        message = f"ids below zero are looked up in {layer}: map them to ids of the table"
    elif largest >= rows:
        message = f"ids beyond the end of the table are looked up in {layer}: enlarge the table"
    else:
        return
    evidence = {"smallest id": smallest, "largest id": largest, "table": rows}
    yield Suspicion(place, message, evidence, layer.name, related=((layer.place, "the table"),))


def _rows(module: nn.Module) -> int | None:
    """Rows of the table; None for a class that may map ids first, in a `forward` of its own."""
    if isinstance(module, (nn.Embedding, nn.EmbeddingBag)) and type(module).forward in _LOOKUPS:
        return module.num_embeddings
    return None
