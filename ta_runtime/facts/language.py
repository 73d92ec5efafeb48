"""The batches that language models of transformers are given, and the prompts from which they generate."""

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ta_runtime.probes.places import Place


@dataclass(frozen=True, slots=True)
class SpecialTokens:
    """The ids of a tokenizer that begin, end and pad a row; None where it has none, or nothing tells."""

    begin: int | None = None
    end: int | None = None
    pad: int | None = None


@dataclass(slots=True)
class Markers:
    """How many rows have each special token that may frame a turn, by its text; without those that end and pad a row."""

    rows: int = 0
    """Rows that were looked at, of the models below."""
    holding: Counter[str] = field(default_factory=Counter)
    models: set[int] = field(default_factory=set)
    """Their ids; a model with adapters is the one inside."""


@dataclass(slots=True)
class Rows:
    """Rows of token ids that a model is given, added up over the calls that were looked at.

    A row is attended where its mask says so, or, without a mask, where it is not padding.
    """

    place: "Place"
    rows: int = 0
    begun: int = 0
    """Rows of which the first attended token is the begin token."""
    doubled: int = 0
    """Those of which the second one is too."""
    markers: Markers = field(default_factory=Markers)
    """Rows to train on have a marker if it is one of their first two tokens, and prompts if it is anywhere in them."""


@dataclass(slots=True)
class TokenBatches(Rows):
    """What one line gave to a language model while it trained."""

    model: str = ""
    """Its class."""
    shifts: bool = False
    """Whether the model shifts the labels itself: a decoder of transformers does."""
    tuned: bool = False
    """Whether its weights were loaded by `from_pretrained`, or adapters of PEFT are around it."""
    special: SpecialTokens = field(default_factory=SpecialTokens)
    batches: int = 0
    live: int = 0
    """Labels that are not ignored, without those of last positions."""
    live_as_same: int = 0
    """Those that are the token at their own position."""
    live_as_next: int = 0
    """Those that are the token after it."""
    labelled: int = 0
    """Rows of which the labels were compared with the end token."""
    ended: int = 0
    """Those in which the last attended token is the end token."""
    end_labels: int = 0
    """End tokens among the labels."""

    joined: int = 0
    """Rows with labels in which another text follows an end token."""
    leaking: int = 0
    """Those with a plain mask, and positions that do not begin anew: the texts attend to each other."""
    separated: bool = False
    """Whether transformers then tells texts apart by their positions: without a mask and a cache."""


@dataclass(slots=True)
class Prompts(Rows):
    """What one line let a model of transformers generate from, in the first calls of a run."""

    padded: int = 0
    """Rows with padding, of calls of a decoder with several rows."""
    padded_after: int = 0
    """Those that end in padding."""


@dataclass(slots=True)
class Language:
    """The language models of a run, in order of first sight."""

    batches: list[TokenBatches] = field(default_factory=list)
    prompts: list[Prompts] = field(default_factory=list)
