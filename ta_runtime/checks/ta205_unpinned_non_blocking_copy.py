"""TA205: `non_blocking=True` has no effect on a batch that is not in pinned memory."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Said, Step, Suspicion, Unobserved


def check_step(step: Step) -> Iterator[Said]:
    for copy in step.copies:
        origin = copy.from_loader
        if not copy.non_blocking:
            continue
        if copy.target.type != "cuda":
            yield Unobserved(copy.place, f"the copy goes to {copy.target.type}, not to a CUDA device")
            continue
        if copy.pinned:
            yield Refutation(
                copy.place, "the batch it copies is in pinned memory", {"copies from pinned memory": 1}
            )
            continue
        loader = origin.loader() if origin is not None else None
        if origin is not None and loader is not None and not loader.pin_memory:
            message = "the copy of this batch blocks despite `non_blocking=True`: set `pin_memory=True` on the loader"
            yield Suspicion(copy.place, message, related=((origin.place, "the loader is made here"),))
