"""What losses and softmax get: which activation gave it its numbers. A run looks at the losses of each step by itself."""

from dataclasses import dataclass

from ta_lint.events.place import Place


@dataclass(frozen=True, slots=True)
class Scored:
    """A call of a loss whose input is certainly the output of one activation."""

    place: Place
    function: str
    """The loss, by its name in `torch.nn.functional`."""
    activation: str
    """The same of the activation; `linear` is a layer without any."""
    applied: Place

    @property
    def is_probability(self) -> bool:
        return self.activation in ("softmax", "sigmoid")

    @property
    def is_logarithm(self) -> bool:
        """Whether it is the logarithm of probabilities."""
        return self.activation in ("log_softmax", "logsigmoid")

    @property
    def is_of(self) -> str:
        """The input as a message describes it."""
        return "a layer without activation" if self.activation == "linear" else f"`{self.activation}`"


@dataclass(frozen=True, slots=True)
class ClippedScores:
    """A call that applies softmax to what certainly comes directly from a ReLU. A run does not see it."""

    place: Place
    activation: Place
    """Where the ReLU is called, or its layer made."""
