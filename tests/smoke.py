"""Fifty trainings on the Python and the torch that run this, each plainly and watched: `python tests/smoke.py [NAME ...]`.

49 are the healthy ones of `tests/runs/` that need only torch and numpy. Watched, they end with the same status, the same output and bitwise
the same weights, and nothing is found in them. The last is `examples/verdicts.py`, whose bugs are found by both observers. It needs no
package but ours, torch and numpy, so that it runs on the oldest and on the newest release of both Python and torch.
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parent.parent
FRAMEWORKS = re.compile(r"^(?:import|from) (?:accelerate|lightning|transformers)\b", re.MULTILINE)
HEALTHY = [
    run for run in sorted((ROOT / "tests/runs").glob("*.py")) if not FRAMEWORKS.search(run.read_text("utf-8"))
]
FOUND = {"confirmed": ["TA206", "TA611"], "refuted": ["TA700"], "unobserved": ["TA406"]}
"""The verdicts on `examples/verdicts.py`, as the README shows them."""
LIMIT = 300
"""Seconds that a training may take."""

WEIGHTS = """
def _print_weights():
    import hashlib
    from torch import Tensor, nn

    digest = hashlib.sha256()
    for name, value in sorted(globals().items(), key=lambda item: item[0]):
        states = value.state_dict() if isinstance(value, nn.Module) else {"": value} if isinstance(value, Tensor) else {}
        for key, tensor in states.items():
            if isinstance(tensor, Tensor):
                digest.update(f"{name} {key} {tensor.detach().to_dense().double().tolist()}".encode())
    print("weights", digest.hexdigest())


_print_weights()
"""


@dataclass(frozen=True)
class Ended:
    """How a training ended."""

    status: int
    output: str
    errors: str


def main(words: Sequence[str] | None = None) -> int:
    """Run them and print what differs; returns the exit status, 1 for a difference."""
    parser = argparse.ArgumentParser(description="Fifty trainings, each plainly and watched.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="these trainings, such as cnn (default: all)"
    )
    parser.add_argument("-j", "--jobs", type=int, default=2, help="trainings at a time (default: 2)")
    options = parser.parse_args(words)
    chosen = [run for run in HEALTHY if not options.names or run.stem in options.names]
    with ThreadPoolExecutor(options.jobs) as pool:
        problems = [problem for found in pool.map(_healthy, chosen) for problem in found]
    if not options.names:
        problems += _verdicts()
    print("\n".join(problems))
    torch = subprocess.check_output(
        [sys.executable, "-c", "import torch; print(torch.__version__)"], text=True
    ).strip()
    tried = len(chosen) + (not options.names)
    print(
        f"{tried} trainings on Python {platform.python_version()} and torch {torch}: {len(problems)} differences"
    )
    return 1 if problems else 0


def _healthy(run: Path) -> list[str]:
    """What is different when this training is watched."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, run.name)
        script.write_text(run.read_text("utf-8") + WEIGHTS, "utf-8")
        start = partial(_run, folder)
        plain = start(run.name)
        findings = Path(folder, "findings.json")
        watched = start("-m", "ta_runtime", "run", "--format", "json", "--output", str(findings), run.name)
        said = json.loads(findings.read_text("utf-8")) if findings.is_file() else None
    problems = []
    if plain.status:
        problems.append(f"it fails, watched or not:\n{plain.errors}")
    if (watched.status, watched.output) != (plain.status, plain.output):
        problems.append(
            f"watched, it ends with {watched.status} and other output:\n{watched.output}{watched.errors}"
        )
    if said is None:
        problems.append(f"there is no report:\n{watched.errors}")
    problems += [f"{finding['rule']} line {finding['line']}: {finding['message']}" for finding in said or ()]
    return [f"{run.stem}: {problem}" for problem in problems]


def _verdicts() -> list[str]:
    """What is different in the verdicts on the example of the README."""
    with tempfile.TemporaryDirectory() as folder:
        findings = Path(folder, "findings.json")
        watched = _run(
            folder, "-m", "ta_runtime", "run", "--lint", "--format", "json", "--output", str(findings),
            str(ROOT / "examples/verdicts.py"),
        )  # fmt: skip
        if not findings.is_file():
            return [f"examples/verdicts.py: there is no report:\n{watched.errors}"]
        said = json.loads(findings.read_text("utf-8"))
    verdicts = {
        verdict: sorted(one["rule"] for one in said if one.get("verdict") == verdict) for verdict in FOUND
    }
    return [] if verdicts == FOUND else [f"examples/verdicts.py: {verdicts}\n{watched.errors}"]


def _run(folder: str, *words: str) -> Ended:
    try:
        process = subprocess.run(
            [sys.executable, *words],
            cwd=folder,
            env={**os.environ, "OMP_NUM_THREADS": "1", "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_FP16"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Ended(124, "", f"it is not over after {LIMIT} s")
    return Ended(process.returncode, process.stdout, process.stderr)


if __name__ == "__main__":
    sys.exit(main())
