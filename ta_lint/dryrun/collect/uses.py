"""What becomes of the outputs of the models that a program calls."""

from ta_lint.dryrun.stubs.torch.outputs import BACK, GATHERED, NUMBERS, RETURNED, USED, sources, with_fields
from ta_lint.dryrun.stubs.torch.tensors import MOST_CALLS, ModelCall, Tensor, tensors_in
from ta_lint.dryrun.values import Sequence
from ta_lint.events.event import Event


def uses_of(events: list[Event]) -> dict[ModelCall, set[str]]:
    """What becomes of the outputs of each call of a model."""
    found: dict[ModelCall, set[str]] = {}
    for event in events:
        if event.action == "returned" and event.subject is not None:
            inner = event.subject.every if isinstance(event.subject, Sequence) else ()
            every = [part for one in (event.subject, *inner) for part in with_fields(one)]
            for one in tensors_in(sources(every)):
                has_graph = one.facts.requires is not False
                becomes = NUMBERS if not has_graph else GATHERED if _is_gathered(one) else RETURNED
                for output in one.facts.outputs:
                    found.setdefault(output, set()).add(becomes)
        if event.action == USED:
            for output in event.detail["outputs"]:
                found.setdefault(output, set()).add(event.detail["how"])
            if event.detail["how"] == BACK and len(event.detail["outputs"]) >= MOST_CALLS:
                for how in found.values():  # a loss of more calls than are known
                    how.add(BACK)
    return found


def _is_gathered(tensor: Tensor) -> bool:
    """Whether a tensor was computed in several passes of a loop."""
    inner = [start.passes[-1] for start in tensor.facts.graph.starts if start.passes]
    return len(set(inner)) > len({loop for loop, _ in inner})
