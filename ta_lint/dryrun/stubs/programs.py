"""Libraries that are small programs themselves, run by the machine: `stubs/programs/*.stub`.

The first line of a file names the modules whose names it defines, however deep below them a name is. A function `__getattr__` at its top is
asked for any other name, as in Python, and returns None for one that it does not know.
"""

import ast
from functools import cache
from pathlib import Path

from ta_lint.dryrun.machine.call import Call
from ta_lint.dryrun.machine.calling import call
from ta_lint.dryrun.machine.counts import EVERY_FEW
from ta_lint.dryrun.machine.frame import Frame
from ta_lint.dryrun.machine.library import family, stub
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.machine.tables import run
from ta_lint.dryrun.program import Program
from ta_lint.dryrun.stubs.python.functions import show
from ta_lint.dryrun.stubs.torch.modules import renewed
from ta_lint.dryrun.values import NONE, Known, Unknown, Value
from ta_lint.project.layout import Layout

FOLDER = Path(__file__).with_suffix("")
OTHER = "__getattr__"


def _define(file: Path) -> None:
    text = file.read_text("utf-8")
    tree = ast.parse(text)
    written = {one.name for one in tree.body if isinstance(one, ast.ClassDef | ast.FunctionDef)}
    written |= {
        target.id
        for one in tree.body
        if isinstance(one, ast.Assign)
        for target in one.targets
        if isinstance(target, ast.Name)
    }

    @cache
    def loaded() -> tuple[Machine, Frame]:
        """The file has run, once in a process."""
        machine = Machine(Program(Layout(str(FOLDER))))
        frame = Frame(str(file))
        frame.names["__name__"] = Known(file.stem)
        machine.frames.append(frame)
        run(machine, tree.body, frame)
        return machine, frame

    def find(name: str) -> Value | None:
        last = name.rpartition(".")[2]
        if last in written:
            return loaded()[1].names[last]
        if OTHER not in written:
            return None
        machine, frame = loaded()
        found = call(machine, frame.names[OTHER], [Known(last)], {}, tree)
        return None if found == NONE else found

    for module in text.partition("\n")[0].removeprefix("# ").split():
        family(f"{module}.", find)


@stub("ta_lint.every_few")
def _every_few(made: object) -> Value:
    """What a library's program says of a condition that holds every few passes of the loop around its call."""
    return Unknown(EVERY_FEW, "bool")


@stub("ta_lint.unknown")
def _unknown(made: object) -> Value:
    """What a library's program says of a value that it does not know."""
    return Unknown("a value of a library")


@stub("ta_lint.shown")
def _shown(made: Call) -> Value:
    """What a library's program says of values that people see."""
    for one in made.values():
        show(made, one)
    return NONE


@stub("ta_lint.wrapped")
def _wrapped(made: Call) -> Value:
    """What a library's program says of a model or an optimizer that it may keep copies of the weights for."""
    made.emit("prepare", made.argument(0, "value"))
    return NONE


@stub("ta_lint.renewed")
def _renewed(made: Call) -> Value:
    """What a library's program says of a model that gets other parameters."""
    renewed(made, made.argument(0, "model"), str(made.constant(1, "what")))
    return NONE


@stub("ta_lint.shared")
def _shared(made: Call) -> Value:
    """What a library's program says of a loader whose batches it shares out among so many processes."""
    made.emit("share", made.argument(0, "loader"), among=made.argument(1, "processes"))
    return NONE


for _file in sorted(FOLDER.glob("*.stub")):
    _define(_file)
