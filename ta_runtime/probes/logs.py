"""What the Trainer of transformers logs, and those that derive from it, once the run has loaded it."""

import sys

from ta_runtime.probes.patching import Watch
from ta_runtime.probes.undo import Undo

LIBRARY = "transformers.trainer"


def _log(watch: Watch) -> Undo:
    undo = Undo()
    kind = getattr(sys.modules.get(LIBRARY), "Trainer", None)
    if kind is not None:
        undo.patch(kind, "log", watch)
    return undo


PLACES = {"log": (_log,)}
"""Nothing is watched where it is not loaded yet: who wants to know of it asks again at the next window."""
