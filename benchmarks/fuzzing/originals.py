"""What mutants are made of: the programs of the rule pages and cases, and the files of the corpora that are small."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

import hypothesis
import hypothesmith
from hypothesis import HealthCheck, Phase, settings
from hypothesis.strategies import SearchStrategy

ROOT = Path(__file__).resolve().parent.parent.parent
CORPORA = ROOT / "benchmarks" / "corpora"

LARGEST = 20_000  # bytes of a program of the corpora
_LARGEST_NOTEBOOK = 60_000

_BLOCK = re.compile(r"^```python[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"\b[^\W\d]\w+\b")


@dataclass(frozen=True)
class Originals:
    """Programs and notebooks to mutate. Those of the corpora are read when they are drawn."""

    blocks: tuple[str, ...]
    """The code blocks of all pages and cases: small, and every rule finds something in them."""
    programs: tuple[Path, ...]
    notebooks: tuple[Path, ...]
    names: tuple[str, ...]
    """All names in the blocks, each once, so that a name can become one that rules know."""

    def block(self, rng: Random) -> str:
        return rng.choice(self.blocks)

    def program(self, rng: Random) -> str | None:
        """A program of the corpora, with line feeds alone; None where there are no corpora, or it is no UTF-8."""
        if not self.programs:
            return None
        try:
            return rng.choice(self.programs).read_text(encoding="utf-8")
        except ValueError:
            return None


@cache
def originals(corpora: Path | None = CORPORA) -> Originals:
    """Everything there is to mutate; without corpora the blocks alone."""
    pages = [*sorted((ROOT / "rules").glob("TA*.md")), *sorted((ROOT / "tests" / "cases").glob("TA*.md"))]
    blocks = [code for page in pages for code in _BLOCK.findall(page.read_text(encoding="utf-8"))]
    names = sorted({name for block in blocks for name in _NAME.findall(block)})
    programs, notebooks = _small(corpora) if corpora is not None and corpora.is_dir() else ([], [])
    return Originals(tuple(blocks), tuple(programs), tuple(notebooks), tuple(names))


def _small(corpora: Path) -> tuple[list[Path], list[Path]]:
    """The programs and the notebooks of the corpora that are small; `os.walk`, as `Path.rglob` follows no link."""
    programs: list[Path] = []
    notebooks: list[Path] = []
    for folder, folders, files in os.walk(corpora):
        folders.sort()
        for name in sorted(files):
            path = Path(folder, name)
            if name.endswith(".py") and 200 < path.stat().st_size <= LARGEST:
                programs.append(path)
            elif name.endswith(".ipynb") and path.stat().st_size <= _LARGEST_NOTEBOOK:
                notebooks.append(path)
    return programs, notebooks


def grammatical(seed: int, count: int) -> list[str]:
    """About this many programs that hypothesmith draws from Python's grammar, with no thought of what they mean."""
    found: list[str] = []
    draw(hypothesmith.from_grammar(), seed, count, found.append)
    return found


def draw(programs: SearchStrategy[str], seed: int, count: int, take: Callable[[str], None]) -> None:
    """Give about this many programs of a strategy to `take`: the same for a seed."""

    @hypothesis.seed(seed)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @hypothesis.given(programs)
    def collect(program: str) -> None:
        take(program)

    run: Callable[[], None] = collect
    run()
