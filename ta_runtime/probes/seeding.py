"""The functions that seed a global random generator."""

import random
import sys
from collections.abc import Callable

import torch

from ta_runtime.probes.patching import Watch, attribute, code
from ta_runtime.probes.undo import nothing


def _numpy(watch: Watch) -> Callable[[], None]:
    """That of numpy, where its generators are loaded by now."""
    numpy = sys.modules.get("numpy.random")
    return nothing if numpy is None else attribute(numpy, "seed")(watch)


PLACES = {
    # its code, as `torch.compile` puts a wrapper in its place when it is first used
    "seed_torch": (code(torch.random.manual_seed),),
    "seed_python": (attribute(random, "seed"),),
    "seed_numpy": (_numpy,),
}
