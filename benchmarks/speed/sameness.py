"""Whether every fast way to lint a tree gives the very SARIF that the plain way gives."""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from corpus import Missing

from speed.commands import check
from speed.timing import environment

PLAIN = ("--no-cache", "--no-gates", "--jobs", "1")
"""Every enabled check over the true tree of every file."""


@dataclass(frozen=True)
class Comparison:
    """The log of one way beside that of the plain way: the first line in which they differ, if there is one."""

    tree: str
    way: str
    difference: str | None


def comparisons(tree: Path, scratch: Path, used: Path | None = None) -> Iterator[Comparison]:
    """Lint a tree in the plain way, then in each fast way. `used` is a cache that has seen other states of the tree.

    Raises:
        Missing: the linter did not run to its end.
    """
    new = str(scratch / f"same-{tree.name}")
    ways = {
        "nothing in the cache, 2 processes": ("--cache-dir", new, "--jobs", "2"),
        "all in the cache, 1 process": ("--cache-dir", new, "--jobs", "1"),
        "no cache, 1 process": ("--no-cache", "--jobs", "1"),
        "no cache, 2 processes": ("--no-cache", "--jobs", "2"),
    }
    if used is not None:
        ways["files changed and changed back"] = ("--cache-dir", str(used), "--jobs", "1")
    plain = _log(PLAIN, tree, scratch)
    for way, arguments in ways.items():
        yield Comparison(tree.name, way, difference(plain, _log(arguments, tree, scratch)))


def difference(plain: bytes, fast: bytes) -> str | None:
    """The first line in which two logs differ, as each has it; None where all bytes are the same."""
    if plain == fast:
        return None
    pairs = zip_longest(plain.splitlines(keepends=True), fast.splitlines(keepends=True))
    number, (one, other) = next((number, pair) for number, pair in enumerate(pairs, 1) if pair[0] != pair[1])
    return f"line {number}: plain {one!r}, fast {other!r}"


def rendered(made: list[Comparison]) -> Iterator[str]:
    """The comparisons, line by line."""
    ways = dict.fromkeys(comparison.way for comparison in made)
    different = [comparison for comparison in made if comparison.difference is not None]
    trees = " and ".join(dict.fromkeys(comparison.tree for comparison in made))
    if not different:
        yield f"SARIF of {trees}, byte for byte that of a run without gates: {'; '.join(ways)}."
    for comparison in different:
        yield f"SARIF of {comparison.tree} differs from that of a run without gates: {comparison.way}: {comparison.difference}"


def _log(arguments: tuple[str, ...], tree: Path, scratch: Path) -> bytes:
    log = scratch / "log.sarif"
    command = [*check(*arguments), "--format", "sarif", "--output", str(log), tree.name]
    done = subprocess.run(
        command, check=False, cwd=tree.parent, env=environment(), capture_output=True, text=True
    )
    if done.returncode not in (0, 1):
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise Missing(f"ta-lint {' '.join(arguments)}: {lines[-1]}")
    return log.read_bytes()
