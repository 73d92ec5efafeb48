"""What was seen of a run as a whole."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ta_lint import events
from ta_runtime.facts.adapter import AdaptedModel
from ta_runtime.facts.attribute import Attribute
from ta_runtime.facts.average import SlowAverage
from ta_runtime.facts.balance import Balance
from ta_runtime.facts.checkpoint import CheckpointHistory
from ta_runtime.facts.compilation import Compilation
from ta_runtime.facts.content import Content
from ta_runtime.facts.failure import Failure
from ta_runtime.facts.initialisation import Initialisation, PaddingRow
from ta_runtime.facts.key import LoadedKeys
from ta_runtime.facts.language import Language
from ta_runtime.facts.loader import Loader
from ta_runtime.facts.loading import Loading
from ta_runtime.facts.mode import ModeHistory
from ta_runtime.facts.model import Machine
from ta_runtime.facts.normalisation import Normalisation
from ta_runtime.facts.overlap import Overlap
from ta_runtime.facts.override import Override
from ta_runtime.facts.peers import Read, Told
from ta_runtime.facts.prepared import Prepared
from ta_runtime.facts.pretrained import Pretrained
from ta_runtime.facts.reward import RewardSpread
from ta_runtime.facts.sampling import Seeds
from ta_runtime.facts.target import TargetNetwork
from ta_runtime.facts.timesteps import Timesteps

if TYPE_CHECKING:
    from ta_runtime.facts.history import History


@dataclass(slots=True, kw_only=True)
class Run(events.Run):
    """The run so far, and, if it is `over`, the whole of it: what the observers saw, each in fields of its own, besides what a dry run
    sees as well.

    What concerns one line or object of the run is described with its class; lists are in order of first sight.
    """

    steps: int
    """Optimizer steps so far, of all optimizers together."""
    machine: Machine
    loaders: list[Loader]
    history: "History"
    rank: int = 0
    told: Told = field(default_factory=Told)
    """What this rank tells the others."""
    peers: Mapping[int, Told] = field(default_factory=dict)
    """What the other ranks told, where it was gathered."""
    data_parallel: bool = False
    """Whether a model was one that ranks share to see more data: then each should see its own."""
    modes: ModeHistory = field(default_factory=ModeHistory)
    seeds: Seeds = field(default_factory=Seeds)
    reads: list[Read] = field(default_factory=list)
    contents: list[Content] = field(default_factory=list)
    attributes: list[Attribute] = field(default_factory=list)
    initialisations: list[Initialisation] = field(default_factory=list)
    padding_rows: list[PaddingRow] = field(default_factory=list)
    loadings: list[Loading] = field(default_factory=list)
    loaded_keys: list[LoadedKeys] = field(default_factory=list)
    checkpoints: CheckpointHistory = field(default_factory=CheckpointHistory)
    slow_averages: list[SlowAverage] = field(default_factory=list)
    balances: list[Balance] = field(default_factory=list)
    prepared: Prepared = field(default_factory=Prepared)
    overlaps: list[Overlap] = field(default_factory=list)
    overrides: list[Override] = field(default_factory=list)
    adapted_models: list[AdaptedModel] = field(default_factory=list)
    normalisations: list[Normalisation] = field(default_factory=list)
    compilations: list[Compilation] = field(default_factory=list)
    targets: list[TargetNetwork] = field(default_factory=list)
    timesteps: list[Timesteps] = field(default_factory=list)
    pretrained: list[Pretrained] = field(default_factory=list)
    rewards: list[RewardSpread] = field(default_factory=list)
    language: Language = field(default_factory=Language)
    failure: Failure | None = None

    def steps_without_gradient(self, parameters: frozenset[int]) -> int:
        """The steps that were looked at of an optimizer that holds some of these, by id; 0 if one ever had a gradient."""
        usages = self.history.usages.values()
        if any(not usage.used.isdisjoint(parameters) for usage in usages):
            return 0
        return max((usage.steps for usage in usages if usage.parameters & parameters), default=0)
