"""Scripts run by two processes with gloo, each of them watched: what rank 0 says of both.

`judged` starts a pair of processes that run all the scripts, one after the other and each with a process group of its own.
"""

import faulthandler
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from commands import pair

TIMEOUT = 60.0
"""Seconds that a pair may take, and 5 for each script."""


@dataclass(frozen=True)
class Job:
    """A script, with the rules of its run and of the linter."""

    code: str
    folder: Path
    rules: Sequence[str]
    path: str = "example.py"
    every_n_steps: int = 1
    invariants: str = ""
    """The file of invariants that the run is held against."""


@dataclass
class Told:
    """What came of a script: line and rule of each finding of the run, and of each verdict; how its ranks ended."""

    found: set[tuple[int, str]] = field(default_factory=set)
    verdicts: dict[str, set[tuple[int, str]]] = field(default_factory=dict)
    evidence: list[dict[str, object]] = field(default_factory=list)
    raised: list[str] = field(default_factory=list)


def run_all(jobs: Sequence[Job], folder: Path) -> list[Told]:
    """What comes of each script; after a time limit the pair is killed, and the test fails."""
    given = [
        {
            "code": job.code,
            "folder": str(job.folder),
            "rules": list(job.rules),
            "path": job.path,
            "every": job.every_n_steps,
            "invariants": job.invariants,
        }
        for job in jobs
    ]
    (folder / "jobs.json").write_text(json.dumps(given))
    ended = pair(folder, __file__, str(folder), timeout=TIMEOUT + 5 * len(jobs))
    results = folder / "results.json"
    assert results.exists(), "\n".join(ran.stderr[-3000:] for ran in ended)
    return [
        Told(
            {(line, rule) for line, rule in result["found"]},
            {name: {(line, rule) for line, rule in marks} for name, marks in result["verdicts"].items()},
            result["evidence"],
            result["raised"],
        )
        for result in json.loads(results.read_text())
    ]


# -- in each of the two processes -----------------------------------------------------------------------------


def main(folder: Path) -> None:
    import torch
    import torch.distributed as dist

    faulthandler.dump_traceback_later(TIMEOUT, exit=False)
    rank = int(os.environ["RANK"])
    results = []
    meeting = dist.TCPStore("localhost", int(os.environ["MASTER_PORT"]), 2, rank == 0)
    begin = dist.init_process_group
    held: list[Any] = []  # a process group that is freed while its threads run can wait for them for ever

    def init_process_group(*args: Any, **options: Any) -> None:
        store = dist.PrefixStore(str(number), meeting)
        options |= {"store": store, "rank": rank, "world_size": 2}  # Accelerate gives some of them itself
        begin(*args, **options)
        held.append(dist.distributed_c10d._get_default_group())

    dist.init_process_group = init_process_group
    for number, job in enumerate(json.loads((folder / "jobs.json").read_text())):
        torch.manual_seed(0)
        started = time.monotonic()
        results.append(_watched(job))
        print(
            f"{number}: {time.monotonic() - started:.1f} s, {results[-1]['raised']}",
            file=sys.stderr,
            flush=True,
        )
        if dist.is_initialized():
            dist.destroy_process_group()
        meeting.set(f"over/{number}/{rank}", "")
        meeting.wait([f"over/{number}/{other}" for other in range(2)])
    if rank == 0:
        meeting.wait(["gone/1"])  # it holds the store
        (folder / "results.json").write_text(json.dumps(results))
    else:
        meeting.set("gone/1", "")
    sys.stderr.flush()
    os._exit(0)


def _watched(job: dict[str, Any]) -> dict[str, Any]:
    from observed import watched

    from ta_lint.core.config import Configs, Options
    from ta_lint.core.finding import Verdict
    from ta_lint.core.verdict import joined
    from ta_lint.engine import lint
    from ta_lint.file import File

    folder, path, code = Path(job["folder"]), job["path"], job["code"]
    rules = job["rules"]
    held = folder / f"invariants{os.environ['RANK']}.json" if job["invariants"] else None
    if held is not None:
        held.write_text(job["invariants"])
    audit = watched(code, folder, path=path, every_n_steps=job["every"], rules=rules, invariants=held)
    raised = getattr(audit, "raised", None)
    findings = audit.findings
    config = Configs(Options(select=list(rules), isolated=True), folder).root_config
    both = joined(lint(File(folder / path, path, config), code.encode()), findings, audit.inspected)
    return {
        "found": [(finding.site.line, finding.rule) for finding in findings if finding.counts],
        "evidence": [{"rule": f.rule, "message": f.message, **f.evidence} for f in findings],
        "verdicts": {
            verdict.value: [
                (f.site.line, f.rule) for f in both if f.verdict is verdict and f.observer != "runtime"
            ]
            for verdict in Verdict
        },
        "raised": [repr(raised)] if raised is not None else [],
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]))
