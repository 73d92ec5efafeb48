"""TA412: an attribute of a module is a converted copy of a parameter that no module or optimizer has."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Said, Suspicion


def check_progress(run: Run) -> Iterator[Said]:
    for attribute in run.attributes:
        numbers: dict[str, float | int | str] = {
            "steps looked at": attribute.looks,
            "device": attribute.device,
        }
        if attribute.of_lost_parameter and not attribute.replaced:
            message = f"`self.{attribute.name}` is a copy of a parameter and never trains: keep the parameter itself"
            yield Suspicion(attribute.place, message, numbers)
        elif attribute.registered:
            because = f"`self.{attribute.name}` is a parameter of its module in all {attribute.looks} looks"
            yield Refutation(attribute.place, because, numbers)
