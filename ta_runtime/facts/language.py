"""The batches that language models of transformers are given, and the prompts from which they generate."""

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
class TokenBatches:
    """What one line gave to a language model while it trained, added up over the batches that were looked at.

    A row is attended where its mask says so, or, without a mask, where it is not padding.
    """

    place: "Place"
    model: str
    """Its class."""
    shifts: bool
    """Whether the model shifts the labels itself: a decoder of transformers does."""
    special: SpecialTokens = field(default_factory=SpecialTokens)
    batches: int = 0
    rows: int = 0
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


@dataclass(slots=True)
class Language:
    """The language models of a run, in order of first sight."""

    batches: list[TokenBatches] = field(default_factory=list)
