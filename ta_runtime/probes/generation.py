"""Text that a model of transformers generates, once the run has loaded what generates it."""

import sys

from ta_runtime.probes.patching import Watch
from ta_runtime.probes.undo import Undo

LIBRARY = "transformers.generation.utils"


def _generate(watch: Watch) -> Undo:
    undo = Undo()
    kind = getattr(sys.modules.get(LIBRARY), "GenerationMixin", None)
    if kind is not None:
        undo.patch(kind, "generate", watch)
    return undo


PLACES = {"generate": (_generate,)}
"""Nothing is watched where it is not loaded yet: who wants to know of it asks again when a model is built."""
