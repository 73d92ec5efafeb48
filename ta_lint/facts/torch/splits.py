"""The parts of the data: what a name says of the use of a loader or a dataset."""

import re

from ta_lint.core.lazy import regex

_TRAINS = regex(r"(^|_)(x_?|y_?)?(train|training|fit)(_|$|set|loader|data|ing)")
_EVALUATES = regex(
    r"(^|_)(x_?|y_?)?(te|test|testing|val|valid|validation|eval|dev|held_?out)(_|$|set|loader|data|ds|dl)"
)


def is_for_evaluation(name: str | None) -> bool:
    """Whether a name says that it evaluates, and not that it trains: `val_loader`, `self.X_test`."""
    return name is not None and _last(_EVALUATES, name) and not is_for_training(name)


def is_for_training(name: str | None) -> bool:
    """Whether a name says that it trains: `train_loader`, `self.X_train`."""
    return name is not None and _last(_TRAINS, name)


def _last(pattern: re.Pattern[str], name: str) -> bool:
    return pattern.search(name.rpartition(".")[2].lower()) is not None
