"""What softmax and log_softmax were asked to normalise."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ta_runtime.probes.places import Place


@dataclass(frozen=True, slots=True)
class Softmax:
    """A call of softmax or log_softmax over a dimension of what a layer computed: `made_by` says which kind, `linear` say.

    `size` is that of the dimension, and `over_outputs` whether it is that of the layer's outputs.
    """

    place: "Place"
    function: str
    made_by: str
    size: int
    over_outputs: bool
