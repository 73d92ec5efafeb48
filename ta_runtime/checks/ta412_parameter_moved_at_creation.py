"""TA412: an attribute of a module is a converted copy of a parameter that no module or optimizer has."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Suspicion


def check_progress(run: Run) -> Iterator[Suspicion | Refutation]:
    for attribute in run.attributes:
        numbers: dict[str, float | int | str] = {
            "steps looked at": attribute.looks,
            "device": attribute.device,
        }
        if attribute.of_lost_parameter and not attribute.replaced:
            message = f"`self.{attribute.name}` is a copy of a parameter and never trains: keep the parameter itself"
            yield Suspicion(attribute.place, message, numbers)
        elif attribute.registered:
            yield Refutation(attribute.place, numbers)
