"""Programs that nobody wrote, run for real and dry: `python benchmarks/generated.py [--programs 2000] [--seed 0] [--keep FOLDER]`.

It prints what is known of what happens, and each kind of false claim with a small program that shows it. `tests/generating` makes the programs.
"""

import argparse
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from fuzzing.originals import draw
from fuzzing.shrinking import shrunk

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from generating.programs import programs
from generating.runs import Runner, runner
from oracle import Comparison, summary

_NUMBER = re.compile(r"\d+")


def main() -> int:
    """Generate, compare and print; returns the exit status, 1 for a false claim."""
    parser = argparse.ArgumentParser(
        description="Hold dry runs of generated programs against their real runs."
    )
    parser.add_argument("--programs", type=int, default=2000, metavar="N")
    parser.add_argument("--seed", type=int, default=0, help="another seed makes other programs; default 0")
    parser.add_argument(
        "--keep",
        type=Path,
        default=Path("generated-failures"),
        metavar="FOLDER",
        help="for programs with a false claim",
    )
    parser.add_argument("--missed", action="store_true", help="print what the dry run does not know, too")
    options = parser.parse_args()
    results: list[Comparison] = []
    failed: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    false: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder, runner(Path(folder)) as both:

        def take(text: str) -> None:
            compared = both.compared(text)
            if compared.status != "ended":
                failed[_kind(compared.status)] += 1
                return
            results.append(compared)
            missed.update(_kind(what) for what, _ in compared.missed)
            for claim in compared.false:
                false[_kind(claim)] = min(false.get(_kind(claim), text), text, key=len)

        generate(options.programs, options.seed, take)
        for number, (kind, text) in enumerate(false.items()):
            options.keep.mkdir(parents=True, exist_ok=True)
            path = options.keep / f"false{number}.py"
            path.write_bytes(shrunk(text.encode(), lambda data, kind=kind: _fails(both, data, kind)))  # type: ignore[misc]
            print(f"{path}: {kind}")
    for kind, count in missed.most_common() if options.missed else ():
        print(f"{count} x not known: {kind}")
    for kind, count in failed.most_common():
        print(f"{count} x it does not run: {kind}")
    print("\n".join(summary(results)))
    return 1 if false else 0


def generate(count: int, number: int, take: Callable[[str], None]) -> None:
    """Draw this many programs of a seed."""
    draw(programs(), number, count, take)


def _kind(claim: str) -> str:
    return _NUMBER.sub("N", claim)[:40]


def _fails(both: Runner, data: bytes, kind: str) -> bool:
    try:
        text = data.decode()
        compile(text, "train.py", "exec")
    except (ValueError, SyntaxError):
        return False
    compared = both.compared(text)
    return compared.status == "ended" and kind in map(_kind, compared.false)


if __name__ == "__main__":
    raise SystemExit(main())
