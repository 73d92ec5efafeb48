"""One dry run of a script: what happens, in order."""

from ta_lint.dryrun.machine import assigning, conditions, definitions, expressions, loops, statements
from ta_lint.dryrun.machine.entries import run_script
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.program import Program, layout_of
from ta_lint.dryrun.stubs import pretrained, programs
from ta_lint.dryrun.stubs.python import (
    arguments,
    classes,
    construction,
    containers,
    functions,
    iterating,
    standard,
)
from ta_lint.dryrun.stubs.torch import (
    data,
    layers,
    members,
    module_lists,
    modules,
    operations,
    parametrized,
    training,
)
from ta_lint.project.layout import Layout

_LANGUAGE = (assigning, conditions, definitions, expressions, loops, statements)
_LIBRARIES = (
    arguments,
    classes,
    construction,
    containers,
    functions,
    iterating,
    standard,
    pretrained,
    programs,
    data,
    layers,
    members,
    module_lists,
    modules,
    operations,
    parametrized,
    training,
)
"""What is imported for what it registers."""


def of_project(root: str) -> Machine:
    """A machine for the scripts of one project, which parses and imports each of its files once."""
    return Machine(Program(Layout(root)))


def dry_run(path: str) -> Machine:
    """Run a script, and then each of its functions and methods that nobody calls, on guessed arguments."""
    machine = Machine(Program(layout_of(path)))
    run_script(machine, path)
    return machine
