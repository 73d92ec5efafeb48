"""One dry run of a script: what happens, in order. The kinds of syntax and the libraries are imported for what they register."""

from ta_lint.dryrun.machine import (  # noqa: F401
    assigning,
    comprehensions,
    conditions,
    definitions,
    expressions,
    loops,
    statements,
)
from ta_lint.dryrun.machine.entries import run_script
from ta_lint.dryrun.machine.machine import MOST_STEPS, Machine
from ta_lint.dryrun.program import Program, layout_of
from ta_lint.dryrun.stubs import (  # noqa: F401
    averages,
    configuration,
    einops,
    plain,
    pretrained,
    programs,
    progress,
    sklearn,
    torchmetrics,
    torchvision,
)
from ta_lint.dryrun.stubs.python import (  # noqa: F401
    arguments,
    classes,
    construction,
    containers,
    functions,
    introspection,
    iterating,
    paths,
    standard,
)
from ta_lint.dryrun.stubs.torch import (  # noqa: F401
    autograd,
    backward,
    checkpointing,
    conversions,
    creation,
    data,
    datasets,
    environment,
    functional,
    in_place,
    layers,
    losses,
    members,
    modes,
    modules,
    operations,
    parametrizations,
    parts,
    samplers,
    saving,
    scaling,
    seeds,
    state_dicts,
    training,
    wrapping,
)
from ta_lint.dryrun.stubs.torch import containers as containers_of_modules  # noqa: F401
from ta_lint.project.layout import Layout


def of_project(root: str) -> Machine:
    """A machine for the scripts of one project, which parses and imports each of its files once."""
    return Machine(Program(Layout(root)))


def dry_run(path: str) -> Machine:
    """Run a script, and then each of its functions and methods that nobody calls, on guessed arguments."""
    return dry_run_of(Program(layout_of(path)), path)


def dry_run_of(program: Program, path: str, most: int = MOST_STEPS) -> Machine:
    """The same for a script of this program; an entry takes so many steps at most."""
    machine = Machine(program, most)
    run_script(machine, path)
    return machine
