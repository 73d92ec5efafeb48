"""TA413: a plain tensor on a module is not moved, saved or trained with the module."""

from collections.abc import Iterator

from ta_runtime.facts import Attribute, Run, Said, Suspicion, Unobserved

LOOKS = 2
"""Thorough steps at which a tensor is looked at before anything is said: something may write to it in each."""


def check_progress(run: Run) -> Iterator[Said]:
    for attribute in run.attributes:
        if (
            attribute.registered
            or attribute.replaced
            or attribute.of_lost_parameter
            or attribute.looks < LOOKS
        ):
            continue
        if (harm := _harm(attribute)) is not None:
            yield Suspicion(attribute.place, f"`self.{attribute.name}` {harm}", _numbers(attribute))
        elif attribute.model_device == "cpu":
            yield Unobserved(attribute.place, "the model stays on the CPU, so nothing is moved")


def _harm(attribute: Attribute) -> str | None:
    if attribute.learns:
        return "gets gradients but reaches no optimizer: make it an `nn.Parameter`"
    if attribute.apart:
        return "stayed on another device than the model: register it as a buffer"
    if attribute.differs:
        return "differs from the model whose state is loaded: register it as a buffer"
    if attribute.written:
        return "changes in training, but `state_dict()` skips it: register it as a buffer"
    return None


def _numbers(attribute: Attribute) -> dict[str, float | int | str]:
    return {
        "steps looked at": attribute.looks,
        "written to": attribute.written,
        "other after loading": attribute.differs,
        "device": attribute.device,
        "device of the model": attribute.model_device,
    }
