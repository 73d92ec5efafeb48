"""One dry run of a script: what happens, in order. The kinds of syntax and the libraries are imported for what they register."""

import re

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
from ta_lint.dryrun.machine.reach import actions_in
from ta_lint.dryrun.program import Program, code_of, layout_of
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
from ta_lint.events.event import Event
from ta_lint.project.layout import Layout
from ta_lint.project.project import Project

LEAST_STEPS = 1_000
STEPS_OF_A_BYTE = 0.5
"""What an entry of a file that is linted may take: the work grows with its text, whatever loops it has."""
_DECLARATION = re.compile(r"\A((?:[^\n]*\n)?[ \t\f]*#[^\n]*?)coding(?=[:=])")
"""That of an encoding, which the text no longer has here."""
MOST_FILES = 12
"""Files that run for the sake of one. What more of them give is not known."""


def of_project(root: str) -> Machine:
    """A machine for the scripts of one project, which parses and imports each of its files once."""
    return Machine(Program(Layout(root)))


def events_around(project: Project, path: str, text: str) -> list[Event]:
    """What happens in a file with this text, run by itself and by the scripts of its project that use it."""
    given = _DECLARATION.sub(r"\1Coding", text).encode("utf-8", "surrogatepass")
    files: set[str] = set()

    def reads(other: str) -> bytes:
        if other == path:
            return given
        files.add(other)
        if len(files) > MOST_FILES:
            return b""
        project.imports.read(other)
        return whole(other)

    def whole(other: str) -> bytes:
        return code_of(project.around.whole(other))

    def in_turn(user: str) -> tuple[int, str]:
        return -actions_in(whole(user).decode("utf-8", "replace")), user  # first those that train

    most = min(MOST_STEPS, LEAST_STEPS + int(STEPS_OF_A_BYTE * len(given)))
    machine = Machine(Program(project.layout, reads), most)
    with project.imports.followed(path):
        run_script(machine, path, sorted(project.around.users(path) or (), key=in_turn))
    return machine.events


def dry_run(path: str) -> Machine:
    """Run a script, and then each of its functions and methods that nobody calls, on guessed arguments."""
    machine = Machine(Program(layout_of(path)))
    run_script(machine, path)
    return machine
