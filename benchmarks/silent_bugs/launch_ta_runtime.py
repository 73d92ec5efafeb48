"""Runs a script under `ta_runtime`, every step audited, and writes what it found into `told.RANK.json`, as soon as it did.

Of each finding with the optimizer step in which it was seen: `python launch_ta_runtime.py RULES SCRIPT [INVARIANTS]`.
"""

import json
import os
import runpy
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

import ta_runtime
from ta_lint.core.finding import Finding


@dataclass
class Told:
    rule: str
    line: int
    severity: str
    message: str
    step: int
    """From 0. The numbers of a step are told when the next is over, and what is of the whole run when some step is."""


def main(rules: str, script: str, *invariants: str) -> None:
    """Run the script to its end."""
    rank = os.environ.get("RANK", "0")
    found: list[Told] = []
    over = 0

    def count(*_: object) -> None:
        nonlocal over
        over += 1

    def note(finding: Finding) -> None:
        place, step = finding.site, finding.evidence.get("step")
        seen = over - 1 if step is None else min(int(step), over - 1)
        found.append(Told(finding.rule, place.line, finding.severity.value, finding.message, seen))
        Path(f"told.{rank}.json").write_text(json.dumps([asdict(each) for each in found]), "utf-8")

    torch.set_num_threads(1)
    # before those of the session, so that its step is over when it tells
    counting = register_optimizer_step_post_hook(count)
    ta_runtime.enable(
        every_n_steps=1,
        rules=rules.split(","),
        output=None,
        live=False,
        on_finding=note,
        invariants=invariants,
        invariants_every_n_steps=1,
    )
    sys.argv = [script]
    try:
        runpy.run_path(script, run_name="__main__")
        ta_runtime.disable()
    finally:
        counting.remove()


if __name__ == "__main__":
    main(*sys.argv[1:])
