"""TA410: modules or parameters kept in a list, dict or tuple on `self` are not registered."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from ta_lint.events.containers import PlainContainer
from ta_lint.events.suspicion import Refutation, Said, Sight, Suspicion

if TYPE_CHECKING:
    from ta_lint.core.finding import Site
    from ta_lint.facts import FileFacts
    from ta_lint.syntax.edits import ProposedFix

KEYWORDS = ("class",)
AROUND = ("*Module*",)
ALONG = True
OF_STRUCTURE = True


class HasContainers(Protocol):
    """A step that was looked at, or all that a dry run finds."""

    @property
    def plain_containers(self) -> Sequence[PlainContainer]: ...


def check_step(step: HasContainers) -> Iterator[Said]:
    for one in step.plain_containers:
        if one.held == one.elements:
            because = f"an optimizer or module holds all {one.elements} elements"
            numbers = {"elements": one.elements, "held by an optimizer or module": one.held}
            yield Refutation(one.place, because, numbers)
        elif one.lost:
            harm = "not moved or saved" if one.trains else "not trained, moved or saved"
            element = "Parameter" if one.element.endswith("Parameter") else "Module"
            use = f"nn.{element}Dict" if one.kind == "dict" else f"nn.{element}List"
            message = f"`{one.element}` in the plain {one.kind} `self.{one.name}` is {harm}: use `{use}`"
            related = ((one.made, f"`{one.element}` is made here"),) if one.made is not None else ()
            yield Suspicion(one.place, message, {"elements": one.lost}, related=related, hides=Sight.LAYERS)


def fix(module: "FileFacts", container: "Site") -> "ProposedFix | None":
    """`nn.ModuleList` or `nn.ModuleDict` around the literal."""
    from ta_lint.facts.container_edits import registered

    return registered(module, container)
