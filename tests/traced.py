"""Programs run in this process or by two ranks, traced or held against invariants."""

import contextlib
import io
import os
import runpy
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.multiprocessing as mp

from ta_runtime.audit import Audit
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
    """What they break, of those that are held against invariants; `told` is a path that several ranks write to."""
    if ranks == 1:
        return [said for job in jobs for said in _done(job)]
    assert told is not None
    mp.spawn(_by_a_rank, (list(jobs), [_free_port() for _ in jobs], str(told)), nprocs=ranks)  # type: ignore[attr-defined, no-untyped-call]
    return [line for rank in range(ranks) for line in Path(f"{told}.{rank}").read_text("utf-8").splitlines()]


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


def _by_a_rank(rank: int, jobs: list[Job], ports: list[int], told: str) -> None:
    torch.set_num_threads(1)
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "localhost"}
    for job, port in zip(jobs, ports, strict=True):
        os.environ["MASTER_PORT"] = str(port)
        said = _done(job)
        with Path(f"{told}.{rank}").open("a", encoding="utf-8") as lines:
            lines.writelines(f"{line}\n" for line in said)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("localhost", 0))
        return int(free.getsockname()[1])
