"""Runs a script with torch-audit's `autopatch` around each optimizer and its model; `found.RANK.json` has what it says.

A user writes `autopatch(model, optimizer=optimizer)` behind the line that builds the optimizer. So does this, without an
edit of the script: when an optimizer is built, the outermost model that holds its parameters is the one.
"""

import contextlib
import gc
import json
import os
import runpy
import sys
from pathlib import Path
from typing import Any

import torch
from torch_audit import autopatch
from torch_audit.runtime import Auditor

auditors: list[Auditor] = []
_build = torch.optim.Optimizer.__init__
_SEVERITIES = {"INFO": "note", "WARN": "warning", "ERROR": "error", "FATAL": "error"}


def main(script: str) -> None:
    torch.optim.Optimizer.__init__ = _built  # type: ignore[method-assign, assignment]
    try:
        runpy.run_path(script, run_name="__main__")
    finally:
        found = [item for auditor in auditors for item in _findings(auditor)]
        name = f"found.{os.environ.get('RANK', '0')}.json"
        Path(name).write_text(json.dumps(found), encoding="utf-8")


def _built(optimizer: torch.optim.Optimizer, *args: Any, **options: Any) -> None:
    _build(optimizer, *args, **options)
    model = _model_of(optimizer)
    if model is not None and all(auditor.model is not model for auditor in auditors):
        auditors.append(autopatch(model, optimizer=optimizer, every_n_steps=1, reporters=[]))


def _model_of(optimizer: torch.optim.Optimizer) -> torch.nn.Module | None:
    """The outermost module that shares most parameters with an optimizer; the largest of all if none does."""
    modules = [item for item in gc.get_objects() if isinstance(item, torch.nn.Module)]
    inner = {id(child) for module in modules for child in module.modules() if child is not module}
    held = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}

    def fits(module: torch.nn.Module) -> tuple[int, int]:
        own = [id(parameter) for parameter in module.parameters()]
        return len(held.intersection(own)), len(own)

    return max((module for module in modules if id(module) not in inner), key=fits, default=None)


def _findings(auditor: Auditor) -> list[dict[str, Any]]:
    found = {}
    with contextlib.suppress(Exception):
        auditor.finish(report=False)
    for finding in auditor.findings:
        severity = _SEVERITIES.get(finding.severity.value, "note")
        place = finding.module_path or finding.entity or ""
        found[finding.rule_id, place] = {
            "rule": finding.rule_id,
            "line": 0,
            "severity": severity,
            "message": f"{place}: {finding.message}",
        }
    return list(found.values())


if __name__ == "__main__":
    main(sys.argv[1])
