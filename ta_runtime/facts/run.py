"""What was seen of a run as a whole."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ta_runtime.facts.loader import Loader
from ta_runtime.facts.model import Machine

if TYPE_CHECKING:
    from ta_runtime.history import History


@dataclass(slots=True)
class Run:
    """The run so far, and, if it is `over`, the whole of it."""

    steps: int
    machine: Machine
    loaders: list[Loader]
    history: "History"
    rank: int = 0
    peers: Mapping[int, list[list[str]]] = field(default_factory=dict)
    """The batch digests of the other ranks' loaders, in order of first use, where they were gathered."""
    data_parallel: bool = False
    """Whether a model was one that ranks share to see more data: then each should see its own."""
    over: bool = True
