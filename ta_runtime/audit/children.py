"""Processes that the script starts: in each of them an audit begins, and what it saw comes back in a file.

The files lie in a folder of the first of the processes, and are written at each new finding: so a process that is killed
leaves what it saw until then.
"""

import contextlib
import multiprocessing
import os
import pickle
import re
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from ta_runtime import ranks, reports, startup
from ta_runtime.faults import Shield
from ta_runtime.incidents import Incident, Inspection
from ta_runtime.probes import hub, processes
from ta_runtime.probes.patching import Call, End
from ta_runtime.probes.undo import Undo

_PYTHON = re.compile(r"(python[\d.]*t?|torchrun|accelerate|deepspeed)(\.exe)?")
"""The names of programs that run Python code: the interpreter, and launchers of ranks."""
_POOL = "concurrent.futures.process"
"""Its processes end only after the script, and nobody waits for them before."""
_ENV = 11
"""The position of `env` among the arguments of `subprocess.Popen.__init__`."""


@dataclass(frozen=True)
class Report:
    """What a process hands over to the one that started it."""

    process: str
    rank: int | None
    """Its rank, if it is one."""
    seen: ranks.RankReport

    @property
    def who(self) -> str:
        return f"on rank {self.rank}" if self.rank is not None else f"in process {self.process}"

    def marked(self, of_ranks: set[int]) -> set[int]:
        """The ranks that saw something: those that it says, else this one, if it is one."""
        return of_ranks or ({self.rank} if self.rank is not None else set())


class Handover:
    """The file in which a process says what it saw, whole whenever it is there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = folder / f"{os.getpid()}-{time.monotonic_ns()}.seen"

    def write(self, seen: ranks.RankReport) -> None:
        rank = ranks.rank() if ranks.known() else None
        beside = self._path.with_suffix(".part")
        with contextlib.suppress(FileNotFoundError):  # the parent has ended
            beside.write_bytes(pickle.dumps(Report(reports.process(), rank, seen)))
            beside.replace(self._path)


class Children:
    """Has an audit begin in each process that the script starts, until `detach`.

    `call` says how, given the folder of the reports. A process of the script's own hands its `folder` on.
    """

    def __init__(self, call: Callable[[Path], Callable[[], object]], folder: Path | None = None) -> None:
        self._call, self._folder, self._is_first = call, folder, folder is None
        self._begin: Path | None = None
        self._waited: set[int] = set()
        self._process = os.getpid()
        self.detach = Undo()

    def attach(self, run: hub.Run) -> None:
        """Begin; `run` calls what is ours."""
        self.detach.append(hub.watch("start_process", self._starts_process, run))
        self.detach.append(hub.watch("start_program", self._starts_program, run))

    def reports(self, patience: timedelta) -> list[Report]:
        """What they saw. Those that go on without the script are waited for together, as Python does when it ends."""
        if not self._is_first or self._folder is None:
            return []
        until = time.monotonic() + patience.total_seconds()
        for process in multiprocessing.active_children():
            if process.pid in self._waited:
                process.join(max(until - time.monotonic(), 0))
        return list(self._read())

    def remove(self) -> None:
        """Remove the folder: who writes later writes for nobody."""
        if self._is_first and self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = self._begin = None

    def _read(self) -> Iterator[Report]:
        assert self._folder is not None
        for path in sorted(self._folder.glob("*.seen")):
            with Shield():  # of another release, or a class that is not here
                yield pickle.loads(path.read_bytes())

    def _starts_process(self, call: Call) -> End | None:
        process = call.args[0]
        if not self._is_watched:
            return None
        target = getattr(getattr(process, "_target", None), "__module__", None)
        vars(process)["_bootstrap"] = startup.Bootstrap(process, str(self._said()))
        return partial(self._started_process, is_waited=not process.daemon and target != _POOL)

    def _started_process(self, call: Call, *, is_waited: bool) -> None:
        process = call.args[0]
        vars(process).pop("_bootstrap", None)
        if is_waited and not call.raised:
            self._waited.add(process.pid)

    def _starts_program(self, call: Call) -> None:
        given = call.given(_ENV, "env")
        environment: Mapping[Any, Any] = os.environ if given is None else given
        if (
            not self._is_watched
            or not _is_python(call)
            or not all(isinstance(key, str) for key in environment)
        ):
            return
        path = environment.get("PYTHONPATH")
        added = {
            "PYTHONPATH": f"{startup.FOLDER}{os.pathsep}{path}" if path else startup.FOLDER,
            startup.VARIABLE: str(self._said()),
        }
        if len(call.args) > _ENV:
            call.args = (*call.args[:_ENV], {**environment, **added}, *call.args[_ENV + 1 :])
        else:
            call.kwargs = {**call.kwargs, "env": {**environment, **added}}

    @property
    def _is_watched(self) -> bool:
        """Whether what is started now is the script's, by this process, and not by a fork of it."""
        return os.getpid() == self._process and not processes.is_helper()

    def _said(self) -> Path:
        """The file that says how an audit begins in a process that is started."""
        if self._begin is None:
            if self._folder is None:
                self._folder = Path(tempfile.mkdtemp(prefix="ta-runtime-"))  # for its owner alone
            self._begin = self._folder / f"{os.getpid()}-{time.monotonic_ns()}.begin"
            self._begin.write_bytes(pickle.dumps(self._call(self._folder)))
        return self._begin


def merged(own: list[Incident], of_children: list[Report]) -> list[Incident]:
    """As `ranks.merged`, with what processes saw that may be no ranks."""
    seen = [(incident.ranks, incident) for incident in own]
    for each in of_children:
        seen += [(each.marked(incident.ranks), incident) for incident in each.seen.incidents]
    return ranks.united(seen)


def merged_inspected(own: list[Inspection], of_children: list[Report]) -> list[Inspection]:
    """As `ranks.merged_inspected`, with where processes looked that may be no ranks."""
    seen = [(entry.ranks, entry) for entry in own]
    for each in of_children:
        seen += [(each.marked(entry.ranks), entry) for entry in each.seen.inspected]
    return ranks.united_inspected(seen)


def _is_python(call: Call) -> bool:
    """Whether a program runs Python code, by its name and those after it: `env A=1 nohup python train.py`."""
    words = call.given(1, "args")
    try:
        words = shlex.split(words) if isinstance(words, str) else [os.fsdecode(each) for each in words]
    except (TypeError, ValueError):  # neither words nor a line of a shell
        return False
    named = [*words, os.fsdecode(executable)] if (executable := call.given(3, "executable")) else words
    return any(word == sys.executable or _PYTHON.fullmatch(Path(word).name) for word in named)
