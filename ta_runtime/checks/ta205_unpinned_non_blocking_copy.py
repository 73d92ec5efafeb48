"""TA205: `non_blocking=True` has no effect on a batch that is not in pinned memory."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Step, Suspicion


def check_step(step: Step) -> Iterator[Suspicion | Refutation]:
    for copy in step.copies:
        origin = copy.from_loader
        if not copy.non_blocking or copy.target.type != "cuda":
            continue
        if copy.pinned:
            yield Refutation(copy.place, {"copies from pinned memory": 1})
            continue
        loader = origin.loader() if origin is not None else None
        if origin is not None and loader is not None and not loader.pin_memory:
            message = "the copy of this batch blocks despite `non_blocking=True`: set `pin_memory=True` on the loader"
            yield Suspicion(copy.place, message, related=((origin.place, "the loader is made here"),))
