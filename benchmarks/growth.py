"""The CPU time of linting 100 KB of each shape of `tests/shapes.py`, with all rules; at most two seconds each.

`python benchmarks/growth.py [--kilobytes 100] [--limit 2] [SHAPE ...]`. Exit status 1 if a shape takes longer.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from counted_work import lint, on_deep_stack
from shapes import SHAPES, Files, Shape

_TRIES = 12


def main() -> int:
    """Time each shape, print the table, and return the exit status."""
    parser = argparse.ArgumentParser(description="Time the linter on generated sources.")
    parser.add_argument("shapes", nargs="*", metavar="SHAPE", help="only these; default all")
    parser.add_argument("--kilobytes", type=float, default=100, metavar="N")
    parser.add_argument("--limit", type=float, default=2, metavar="SECONDS", help="of CPU; default 2")
    arguments = parser.parse_args()
    slow = 0
    with tempfile.TemporaryDirectory() as scratch:
        seconds_of(SHAPES[0].files(3), Path(scratch, "first"))  # loads the checks
        for number, shape in enumerate(SHAPES):
            if arguments.shapes and shape.name not in arguments.shapes:
                continue
            files = of_size(shape, int(1000 * arguments.kilobytes))
            seconds = seconds_of(files, Path(scratch, str(number)))
            slow += seconds > arguments.limit
            mark = "!" if seconds > arguments.limit else " "
            print(f"{mark} {shape.name:40} {size(files):>9,} bytes {seconds:8.2f} s", flush=True)
    return 1 if slow else 0


def of_size(shape: Shape, most: int) -> Files:
    """A shape of at most so many bytes, as near to that as it comes in few steps."""
    count = shape.start
    for _ in range(_TRIES):
        now = size(shape.files(count))
        larger = int(count * max(0.5, min(2.0, most / now)))
        if larger == count or (now <= most < size(shape.files(larger))):
            break
        count = larger
    return shape.files(count)


def size(files: Files) -> int:
    """The bytes of some files together."""
    return sum(map(len, files.values()))


def seconds_of(files: Files, folder: Path) -> float:
    """The CPU seconds that it takes to lint these files."""

    def timed() -> float:
        began = time.thread_time()
        lint(files, folder)
        return time.thread_time() - began

    seconds: float = on_deep_stack(timed)
    return seconds


if __name__ == "__main__":
    raise SystemExit(main())
