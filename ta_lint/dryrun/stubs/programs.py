"""Libraries that are small programs themselves, run by the machine: `stubs/programs/*.stub`.

The first line of a file names the module whose names it defines.
"""

import ast
from functools import cache
from pathlib import Path

from ta_lint.dryrun.machine.frame import Frame
from ta_lint.dryrun.machine.library import family
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.machine.tables import run
from ta_lint.dryrun.program import Program, layout_of
from ta_lint.dryrun.values import Known, Value

FOLDER = Path(__file__).with_suffix("")


@cache
def _names(file: Path) -> dict[str, Value]:
    """What a file defines, once in a process."""
    machine = Machine(Program(layout_of(str(file))))
    frame = Frame(str(file))
    frame.names["__name__"] = Known(file.stem)
    machine.frames.append(frame)
    run(machine, ast.parse(file.read_text("utf-8")).body, frame)
    return frame.names


def _define(file: Path) -> None:
    text = file.read_text("utf-8")
    written = {one.name for one in ast.parse(text).body if isinstance(one, ast.ClassDef | ast.FunctionDef)}

    def find(name: str) -> Value | None:
        last = name.rpartition(".")[2]
        return _names(file)[last] if last in written else None

    family(f"{text.partition(chr(10))[0].removeprefix('# ')}.", find)


for _file in sorted(FOLDER.glob("*.stub")):
    _define(_file)
