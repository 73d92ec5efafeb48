"""A model of PEFT: a base with adapters."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ta_runtime.probes.places import Place


@dataclass(slots=True)
class AdaptedModel:
    """The models of PEFT that one line made, and that were called to train: in training mode, with gradients on."""

    place: "Place"
    called_at: "Place"
    looks: int = 0
    """Calls in audited steps."""
    frozen: int = 0
    """Calls with adapters in the model, and no parameter of it that required a gradient."""
    trained: int = 0
    """Calls with an adapter that required a gradient."""
    random_heads: list[str] = field(default_factory=list)
    """Parts of the model outside its base whose weights were drawn in this run and required no gradient while adapters did, by name."""
    trained_heads: int = 0
    """Calls with a part outside the base that required a gradient."""
    new_rows: int = 0
    """Calls that looked up rows that a table got after it was built, where the table required no gradient."""
    trained_tables: int = 0
    """Calls in which a table that had got rows required a gradient, as a whole or in some rows."""
