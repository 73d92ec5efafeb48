"""What a recorded run was set to: its commit, optimizers, batch size, seed and device, as far as they are known."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from ta_runtime.observers.context import Context
from ta_runtime.observers.seeds import SMALL
from ta_runtime.runs import masking

_PATIENCE = 5.0
"""Seconds that git may take: a run does not wait for a large repository on a slow disk."""


def commit(folder: Path) -> dict[str, Any] | None:
    """The commit that is checked out around a folder, and whether tracked files differ from it; None where git knows none."""
    try:
        found = _git(folder, "rev-parse", "HEAD").strip()
        return {"commit": found, "dirty": bool(_git(folder, "status", "--porcelain", "--untracked-files=no"))}
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def _git(folder: Path, *words: str) -> str:
    git = shutil.which("git")
    if git is None:
        raise FileNotFoundError("git")
    command = [git, "--no-optional-locks", "-c", "core.fsmonitor=false", "-C", str(folder), *words]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=True)
    return ran.stdout


def of_optimizer(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Its class, and of each group the settings that can be written down, with how many elements its parameters have."""
    groups = []
    for group in optimizer.param_groups:
        settings = {str(name): value for name, value in group.items() if name != "params"}
        plain = {name: told for name, value in settings.items() if (told := _plain(value)) is not None}
        groups.append({**plain, "elements": sum(parameter.numel() for parameter in group["params"])})
    return {"class": type(optimizer).__name__, "groups": masking.nested(groups)}


def _plain(value: object) -> Any:
    """A setting as JSON has it; None for one that is off or not given. A device is not waited for."""
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    if isinstance(value, torch.Tensor):
        return float(value) if value.is_cpu and value.numel() == 1 else "a tensor"
    return value if isinstance(value, bool | int | float | str) and value is not False else None


def of_run(session: Context, device: torch.device) -> Iterator[tuple[str, Any]]:
    """What is known of a run once it has made a step on a device."""
    if (seed := torch.initial_seed()) < SMALL:
        yield "seed", seed
    trained = [loader for loader in session.loaders.found if loader.stepped_at is not None]
    if sizes := {loader.batch_size for loader in trained} - {None}:
        yield "batch_size", sorted(sizes)
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        yield "device", {"name": properties.name, "memory": properties.total_memory}
    else:
        yield "device", {"name": device.type}


def memory() -> Iterator[tuple[str, float]]:
    """Bytes that the process takes now, and the most that its tensors took on a CUDA device; no device is asked."""
    pages = Path("/proc/self/statm")
    if pages.exists():
        import resource

        yield "memory/process", int(pages.read_text().split()[1]) * float(resource.getpagesize())
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        yield "memory/device", float(torch.cuda.max_memory_allocated())
