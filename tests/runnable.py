"""The programs of the repository that train and can run by themselves, for what holds the dry run against the real run."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from marked import blocks

ROOT = Path(__file__).parents[1]
FOLDERS = {
    "runs": "tests/runs/*.py",
    "healthy": "tests/healthy/*.py",
    "odd": "tests/odd/*.py",
    "programs": "tests/programs/*.py",
    "planted": "tests/planted/*.py",
    "examples": "examples/*.py",
    "examples of the run": "examples/runtime/*.py",
    "preflight faults": "benchmarks/preflight/faults/*.py",
    "preflight healthy": "benchmarks/preflight/healthy/*.py",
    "silent bugs": "benchmarks/silent_bugs/scripts/*/*.py",
    "zoo": "benchmarks/zoo.py",
}
"""The trainings of `tests/smoke.py` are among them: those of `tests/runs`, and one of `examples`."""
_TORCH = re.compile(r"^\s*(?:import|from) (?:torch|lightning|transformers|accelerate|ignite)\b", re.MULTILINE)


@dataclass(frozen=True)
class Program:
    """A script: its name, where it is, and its text."""

    name: str
    path: Path
    source: str

    @property
    def group(self) -> str:
        """Where it comes from."""
        return self.name.partition(":")[0]

    @property
    def number(self) -> str:
        """Something that its name decides and nobody chooses."""
        return hashlib.sha256(self.name.encode()).hexdigest()


def programs(folder: Path) -> Iterator[Program]:
    """All of them. The blocks of the rule pages are written to `folder` first."""
    for group, pattern in FOLDERS.items():
        for path in sorted(ROOT.glob(pattern)):
            stem = f"{path.parent.name}/{path.stem}" if group == "silent bugs" else path.stem
            yield Program(f"{group}: {stem}", path, path.read_text("utf-8"))
    for page in sorted((ROOT / "rules").glob("TA*.md")):
        for block in blocks(page):
            if _TORCH.search(block.code):
                path = folder / f"{block.page[:5]}_{block.number}" / block.settings.get("path", "example.py")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(block.code, "utf-8")
                yield Program(f"pages: {block.page[:5]} {block.number}", path, block.code)


def sample(every: list[Program], count: int) -> list[Program]:
    """So many of them, drawn by their names."""
    return sorted(every, key=lambda program: program.number)[:count]
