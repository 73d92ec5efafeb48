"""What a loss is given as its input: scores, probabilities or logarithms."""

from dataclasses import dataclass

_NO_LOGARITHMS = ("softmax", "sigmoid", "relu", "tanh", "linear", "convolution")


@dataclass(slots=True)
class Scores:
    """The input of a loss by the function that made it and by what is in its first rows.

    `made_by` is the last function that computed it, `softmax` say, behind views, casts and indexing; empty where it is
    none of those that matter. `row_sum` and `exponential_sum` are means over rows of sums over the classes: 1.0 of
    probabilities and of log-probabilities. They are None for a loss without classes.
    """

    made_by: str
    are_sampled: bool = False
    """Whether `gumbel_softmax` drew them."""
    minimum: float | None = None
    maximum: float | None = None
    row_sum: float | None = None
    exponential_sum: float | None = None
    are_whole: bool = True
    """Whether nothing was picked out of what the function made."""

    @property
    def measured(self) -> bool:
        return self.minimum is not None and self.maximum is not None

    @property
    def are_probabilities(self) -> bool | None:
        """Whether all lie between 0 and 1; None where nothing was measured."""
        if self.minimum is None or self.maximum is None:
            return None
        return self.minimum >= -TOLERANCE and self.maximum <= 1 + TOLERANCE

    @property
    def are_logarithms(self) -> bool | None:
        """Whether these are logarithms of probabilities, of which none is above 0; None where nothing was measured, or the
        function that made them says otherwise."""
        if self.maximum is None:
            return None
        may_be = self.maximum <= TOLERANCE
        return None if may_be is (self.made_by in _NO_LOGARITHMS) else may_be

    @property
    def evidence(self) -> dict[str, float | int | str]:
        numbers = {
            "minimum": self.minimum,
            "maximum": self.maximum,
            "row sum": self.row_sum,
            "sum of exponentials": self.exponential_sum,
        }
        found: dict[str, float | int | str] = {"made by": self.made_by} if self.made_by else {}
        return found | {name: float(f"{value:.3g}") for name, value in numbers.items() if value is not None}


@dataclass(slots=True)
class Padding:
    """How many targets of a loss are padding: the token of an embedding of the same vocabulary, or what stands exactly
    where the ids of an embedding are padding."""

    token: int
    targets: int
    padded: float | None = None


TOLERANCE = 0.01
"""How far from its range a probability may be by rounding: the next bfloat16 above 1 is 1.0078."""
