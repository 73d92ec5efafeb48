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
    standard,
)
from ta_lint.dryrun.stubs.torch import (  # noqa: F401
    autograd,
    checkpointing,
    creation,
    data,
    environment,
    functional,
    in_place,
    layers,
    members,
    modes,
    modules,
    operations,
    parametrizations,
    samplers,
    state_dicts,
    training,
)
from ta_lint.dryrun.stubs.torch import containers as containers_of_modules  # noqa: F401
from ta_lint.events.event import Event
from ta_lint.project.layout import Layout
from ta_lint.project.project import Project

LEAST_STEPS = 500
STEPS_OF_A_BYTE = 0.5
"""What an entry of a file that is linted may take: the work grows with its text, whatever loops it has."""
MOST_FILES = 12
"""Files that run for the sake of one. What more of them give is not known."""


def of_project(root: str) -> Machine:
    """A machine for the scripts of one project, which parses and imports each of its files once."""
    return Machine(Program(Layout(root)))


def events_around(project: Project, path: str, text: str) -> list[Event]:
    """What happens in a file with this text, run by itself and by the scripts of its project that use it."""
    given = text.encode("utf-8", "surrogatepass")
    files: set[str] = set()

    def reads(other: str) -> bytes:
        if other == path:
            return given
        files.add(other)
        if len(files) > MOST_FILES:
            return b""
        project.imports.read(other)
        return project.around.whole(other)

    most = min(MOST_STEPS, LEAST_STEPS + int(STEPS_OF_A_BYTE * len(given)))
    machine = Machine(Program(project.layout, reads), most)
    with project.imports.followed(path):
        run_script(machine, path, sorted(project.around.users(path) or ()))
    return machine.events


def dry_run(path: str) -> Machine:
    """Run a script, and then each of its functions and methods that nobody calls, on guessed arguments."""
    machine = Machine(Program(layout_of(path)))
    run_script(machine, path)
    return machine
