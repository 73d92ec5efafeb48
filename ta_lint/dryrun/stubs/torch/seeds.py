"""Generators of random numbers: what seeds them, and what puts their state back."""

from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.frame import Frame
from ta_lint.dryrun.machine.library import method, new_class, stub
from ta_lint.dryrun.values import DATA, NONE, Unknown, Value

GENERATOR = new_class("torch.Generator", "torch._C.Generator")


@method(GENERATOR, "__init__")
def _generator(made: Call) -> Value:
    return NONE


@method(GENERATOR, "manual_seed")
def _seeded(made: Call) -> Value:
    made.emit("seed", made.args[0], generator="", value=made.argument(1, "seed"))
    return made.args[0]


@method(GENERATOR, "get_state", "initial_seed", "seed", "set_state")
@stub(
    "numpy.random.get_state", "random.getstate", "torch.get_rng_state", "torch.random.get_rng_state", "torch.cuda.get_rng_state",
    "torch.cuda.get_rng_state_all",
)  # fmt: skip
def _of_generator(made: Call) -> Value:
    return Unknown("the state of a generator", DATA)


_GENERATORS = {
    "torch": "torch.manual_seed torch.random.manual_seed",
    "torch.cuda": "torch.cuda.manual_seed torch.cuda.manual_seed_all torch.cuda.random.manual_seed torch.cuda.random.manual_seed_all",
    "random": "random.seed",
    "numpy": "numpy.random.seed",
}
"""The global generators, by what seeds them."""
_STATES = {
    "torch": "torch.set_rng_state torch.random.set_rng_state",
    "torch.cuda": "torch.cuda.set_rng_state torch.cuda.set_rng_state_all",
    "random": "random.setstate",
    "numpy": "numpy.random.set_state",
}
"""The same by what puts a state back."""


def _seeds(generator: str, names: str) -> None:
    def seed(made: Call) -> Value:
        value, machine = made.argument(0, "seed"), made.machine

        def passes_on(frame: Frame) -> bool:
            is_inside = bool(machine.passes) and id(frame.names) in machine.passes[-1].inside
            return is_inside and any(one is value for one in frame.names.values())

        made.emit("seed", generator=generator, value=value, given_at=machine.given_at(made.node, passes_on))
        return NONE

    stub(*names.split())(seed)


def _restores(generator: str, names: str) -> None:
    def restore(made: Call) -> Value:
        made.emit("restore", generator=generator)
        return NONE

    stub(*names.split())(restore)


for _generator_, _names in _GENERATORS.items():
    _seeds(_generator_, _names)
for _generator_, _names in _STATES.items():
    _restores(_generator_, _names)

FORK = new_class("torch.random.fork_rng", "torch.fork_rng")


@method(FORK, "__init__", "__enter__", "__exit__")
def _forked(made: Call) -> Value:
    """Inside of it, generators have states of their own."""
    if made.name == "__exit__":
        for generator in ("torch", "torch.cuda"):
            made.emit("restore", generator=generator)
    return NONE
