"""Changes of models that the optimizers which are there by then do not see."""

from dataclasses import dataclass

from ta_lint.events.place import Place


@dataclass(frozen=True, slots=True)
class Outdated:
    """A line that gives a model parameters, or lets frozen ones learn, which no optimizer ever holds, and that the training uses then."""

    place: Place
    what: str
    """What it does, as a clause: "`model.fc` gets new parameters"."""
    optimizer: Place
    """Where the optimizer was built that holds other parameters of the model, or those from before."""
    used: Place
    """Where it steps afterwards, or is given away to train."""
