"""Programs run in this process or by two ranks, traced or held against invariants."""

import contextlib
import io
import json
import os
import runpy
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from commands import free_port, pair

from ta_runtime.audit.audit import Audit
from ta_runtime.settings import resolve
from ta_runtime.trace.collection import collecting


@dataclass(frozen=True)
class Job:
    """A run of a program: traced into a folder, or held against a file of invariants."""

    program: str
    arguments: tuple[str, ...] = ()
    folder: str = ""
    invariants: str = ""
    level: str = "digests"


def done(jobs: Sequence[Job], *, ranks: int = 1, told: Path | None = None) -> list[str]:
    """What they break, of those that are held against invariants; `told` is a new folder that several ranks write to."""
    if ranks == 1:
        return [said for job in jobs for said in _done(job)]
    assert told is not None
    assert ranks == 2
    told.mkdir()
    each = [(free_port(), asdict(job)) for job in jobs]
    (told / "jobs.json").write_text(json.dumps(each), encoding="utf-8")
    for ran in pair(Path.cwd(), __file__, str(told)):
        assert ran.returncode == 0, ran.stderr
    return [line for rank in range(ranks) for line in (told / f"{rank}.txt").read_text("utf-8").splitlines()]


def _done(job: Job) -> list[str]:
    before = sys.argv
    sys.argv = [job.program, *job.arguments]
    try:
        if job.folder:
            with collecting(job.folder, level=job.level):
                _run(job.program)
            return []
        audit = Audit(
            resolve(every_n_steps=0, rules=["TA510"], output=None, live=False, invariants=job.invariants)
        )
        audit.start()
        try:
            _run(job.program)
        finally:
            audit.stop()
        return [
            f"{each.rule} line {each.site.line}: {each.message} {each.evidence}" for each in audit.findings
        ]
    finally:
        sys.argv = before


def _run(program: str) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        runpy.run_path(program, run_name="__main__")


def main(told: Path) -> None:
    """One of two ranks does all jobs, each in a process group of its own."""
    torch.set_num_threads(1)
    said = []
    for port, job in json.loads((told / "jobs.json").read_text("utf-8")):
        os.environ["MASTER_PORT"] = str(port)
        said += _done(Job(**job))
    (told / f"{os.environ['RANK']}.txt").write_text("".join(f"{line}\n" for line in said), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
