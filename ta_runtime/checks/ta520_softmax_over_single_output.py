"""TA520: softmax or log_softmax over a layer's only output: the result is the same for every sample."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Said, Softmax, Step, Suspicion
from ta_runtime.probes.places import Place


def check_step(step: Step) -> Iterator[Said]:
    by_place: dict[Place, list[Softmax]] = {}
    for call in step.softmaxes:
        by_place.setdefault(call.place, []).append(call)
    for place, calls in by_place.items():
        largest = max(call.size for call in calls)
        if largest > 1:
            yield Refutation(place, f"it runs over {largest} values", {"largest dimension": largest})
        elif all(call.over_outputs for call in calls):
            function, result = calls[0].function, 0 if "log" in calls[0].function else 1
            message = (
                f"`{function}` over the one output of a layer is {result} for every sample: use `sigmoid`"
            )
            yield Suspicion(place, message, {"calls": len(calls), "size of the dimension": 1})
