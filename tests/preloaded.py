"""Scripts and commands run in forks of one process that has torch loaded, as its import costs seconds each time."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

# The child runs what was asked for at the top level of its `__main__`, and ends as any interpreter does.
_SERVER = """
import json, os, sys
import torch, ta_lint.core.sarif, ta_runtime.cli, rich.console, rich.table
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    os._exit(0)
request = json.loads(line)
for number, path in enumerate(request["streams"]):
    os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o666), number)
os.chdir(request["folder"])
os.environ.update(request["environment"])
sys.argv[:] = request["words"]
sys.path[0] = request["folder"]
del child, line, number, path
if request["command"]:
    sys.exit(ta_runtime.cli.main(sys.argv[1:]))
__file__ = sys.argv[0]
del request, ta_runtime, ta_lint, rich, json
exec(compile(open(__file__).read(), __file__, "exec"), globals())
"""


@dataclass(frozen=True)
class Ran:
    """How a process ended: its exit status, below 0 for a signal, and what it printed."""

    returncode: int
    stdout: str
    stderr: str


class Preloaded:
    """Runs one thing at a time in a folder."""

    def __init__(self, process: "subprocess.Popen[str]", scratch: Path) -> None:
        self._process = process
        self._scratch = scratch

    def python(self, folder: Path, *words: str, stdout: str | None = None, **environment: str) -> Ran:
        """`python SCRIPT ARGS`."""
        return self._run(folder, words, stdout, environment, command=False)

    def ta_runtime(self, folder: Path, *words: str, stdout: str | None = None) -> Ran:
        """`ta-runtime WORDS`."""
        return self._run(folder, ("ta-runtime", *words), stdout, {}, command=True)

    def _run(
        self,
        folder: Path,
        words: tuple[str, ...],
        stdout: str | None,
        environment: dict[str, str],
        command: bool,
    ) -> Ran:
        out, err = self._scratch / "out", self._scratch / "err"
        request = {
            "words": words,
            "folder": str(folder),
            "streams": [os.devnull, stdout or str(out), str(err)],
            "environment": environment,
            "command": command,
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        status = int(self._process.stdout.readline())
        return Ran(status, out.read_text() if stdout is None else "", err.read_text())


@contextmanager
def preloaded(scratch: Path) -> Iterator[Preloaded]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    with process:
        yield Preloaded(process, scratch)
        assert process.stdin is not None
        process.stdin.close()
