"""Code run under `ta_runtime`, for the tests of the run."""

import gc
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch

from ta_lint.core.config import Configs, Options
from ta_lint.core.finding import Finding
from ta_lint.core.verdict import joined
from ta_lint.dryrun.collect.run import run_of
from ta_lint.dryrun.dryrun import dry_run
from ta_lint.engine import lint
from ta_lint.events import Run
from ta_lint.file import File
from ta_runtime.audit.audit import Audit
from ta_runtime.audit.session import Session
from ta_runtime.preflight.flight import Preflight
from ta_runtime.settings import resolve


def observed(
    code: str, folder: Path, *, path: str = "example.py", every_n_steps: int = 1, **options: Any
) -> list[Finding]:
    """The findings of a script that is written to `folder` and run there, every step audited.

    A script that raises has the findings up to there; what it raised is passed on only if it is an `AssertionError`.
    """
    return watched(code, folder, path=path, every_n_steps=every_n_steps, **options).findings


def judged(
    code: str, folder: Path, rules: Iterable[str], *, path: str = "example.py", every_n_steps: int = 1
) -> list[Finding]:
    """What the linter finds in a script and what a run of it does, joined: each suspicion of the source has its verdict.

    `path` may lead through folders; every step is audited.
    """
    audit = watched(code, folder, path=path, every_n_steps=every_n_steps, rules=rules)
    config = Configs(Options(select=list(rules), isolated=True), folder).root_config
    spotted = lint(File(folder / path, path, config), code.encode())
    return joined(spotted, audit.findings, audit.inspected)


def both(code: str, folder: Path, patch: pytest.MonkeyPatch) -> tuple[Run, Run]:
    """What a real run of a script sees, and what a dry run of it says."""
    runs: list[Run] = []

    def kept(session: Session, original: Any = Session._run, **options: Any) -> Run:
        runs.append(original(session, **options))
        return runs[-1]

    patch.setattr(Session, "_run", kept)
    watched(code, folder, path="train.py", every_n_steps=1)
    return runs[-1], run_of(dry_run(str(folder / "train.py")).events)


def watched(code: str, folder: Path, *, path: str, every_n_steps: int, **options: Any) -> Audit:
    """The audit of a run of the script, over."""
    script = folder / path
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(code, encoding="utf-8")
    if "tokenizer" in code:
        gc.collect()  # a run looks for tokenizers among all objects: none of the program before may be left
    before, functions = Path.cwd(), dict(vars(torch.nn.functional))
    os.chdir(folder)
    try:
        audit = Audit(resolve(every_n_steps=every_n_steps, live=False, **options))
        audit.start()
        if audit.settings.preflight:
            Preflight(audit, lambda briefing: None).attach()
        namespace = {"__name__": "__main__", "__file__": str(script)}
        try:
            exec(compile(code, str(script), "exec"), namespace)  # noqa: S102
        except AssertionError:
            raise
        except Exception as error:  # noqa: BLE001
            audit.raised = error  # type: ignore[attr-defined]
            sys.last_value = error  # as Python does for one that ends a script
        finally:
            audit.stop()
            _forget_accelerate()
        return audit
    finally:
        os.chdir(before)
        vars(torch.nn.functional).update(functions)  # a program may put its own in their place


def _forget_accelerate() -> None:
    """Accelerate keeps the state of its first `Accelerator` for the whole process."""
    state = sys.modules.get("accelerate.state")
    if state is not None:
        state.AcceleratorState._reset_state(reset_partial_state=True)
        state.GradientState._reset_state()
