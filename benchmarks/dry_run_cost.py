"""What the dry run of a release costs, against libcst's parse of the same files: `python benchmarks/dry_run_cost.py [RELEASE ...]`.

Both run in one process over all files that name torch, as CPU time, and the ratio is printed with the memory of the dry run alone. Without
releases, it takes timm, transformers and lightning of `benchmarks/corpora` (`python benchmarks/corpus.py` fetches them).
"""

import argparse
import gc
import resource
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from time import process_time

from ta_lint.dryrun.dryrun import of_project
from ta_lint.dryrun.machine.entries import run_script

CORPORA = Path(__file__).parent / "corpora"
RELEASES = ("timm-1.0.31", "transformers-5.23.0", "lightning-2.6.6", "accelerate-1.15.0", "litgpt-0.5.13")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="The cost of the dry run against libcst's parse.")
    parser.add_argument("releases", nargs="*", default=RELEASES, metavar="RELEASE")
    parser.add_argument("--dry", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument(
        "--most", type=int, default=400, help="files of a release, drawn evenly (default: 400)"
    )
    options = parser.parse_args()
    for release in options.releases:
        if options.dry:
            print(*dry(CORPORA / release, options.most))
            continue
        command = [sys.executable, __file__, release, "--dry", "--most", str(options.most)]
        seconds, megabytes, steps, crashes = subprocess.check_output(command, text=True).split()
        parse, files = parsed(CORPORA / release, options.most)
        print(
            f"{release}: {files} files, {float(seconds) / parse:.2f} of libcst's parse ({seconds} s of {parse:.2f} s), "
            f"{megabytes} MB, {steps} steps, {crashes} crashes",
            flush=True,
        )


def files_of(release: Path, most: int) -> list[Path]:
    """The files that name torch, or every n-th of them."""
    every = [path for path in sorted(release.rglob("*.py")) if b"torch" in path.read_bytes()]
    return every[:: -(-len(every) // most)]


def parsed(release: Path, most: int) -> tuple[float, int]:
    """CPU seconds of libcst's parse, and the number of files."""
    import libcst

    files = files_of(release, most)
    gc.disable()
    start = process_time()
    for path in files:
        with suppress(libcst.ParserSyntaxError):
            libcst.parse_module(path.read_bytes())
    taken = process_time() - start
    gc.enable()
    return taken, len(files)


def dry(release: Path, most: int) -> tuple[str, int, int, int]:
    """CPU seconds, megabytes, steps and crashes of the dry run."""
    files = files_of(release, most)
    machine = of_project(str(release))
    gc.disable()
    crashes = 0
    start = process_time()
    for path in files:
        try:
            run_script(machine, str(path))
        except Exception as error:  # noqa: BLE001 - they are counted
            crashes += 1
            print(f"{path}: {type(error).__name__}: {error}", file=sys.stderr)
    taken = process_time() - start
    return f"{taken:.2f}", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, machine.steps, crashes


if __name__ == "__main__":
    main()
