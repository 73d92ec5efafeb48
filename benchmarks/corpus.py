"""Real training code that nobody here wrote: the Python files of pinned releases, unpacked and never installed.

`python benchmarks/corpus.py` pulls them all and prints what there is.
"""

import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path

VERSIONS = {
    "accelerate": "1.15.0",
    "lightning": "2.6.6",
    "timm": "1.0.31",
    "torchvision": "0.29.2",
    "transformers": "5.23.0",
}
FOLDER = Path(__file__).resolve().parent / "corpora"

# Fixed, so that every machine and every Python reads the same wheel of a package that has compiled parts.
_WHEEL = ("--platform", "manylinux_2_28_x86_64", "--python-version", "3.11")


def corpora(names: Iterable[str] = VERSIONS) -> dict[str, Path]:
    """The folder of each corpus by package name; those not here yet are downloaded.

    Raises:
        Missing: a wheel cannot be had.
    """
    return {name: _corpus(name, VERSIONS[name]) for name in names}


def sources(folder: Path) -> list[Path]:
    """The Python files below a folder, sorted."""
    return sorted(folder.rglob("*.py"))


def run_pip(*arguments: str, python: Path | str = sys.executable) -> None:
    """Run pip quietly.

    Raises:
        Missing: it failed; the text is the last line that pip wrote.
    """
    command = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input", *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise Missing(f"pip {arguments[0]} {arguments[-1]}: {lines[-1]}")


class Missing(Exception):
    """Something that a benchmark needs is not here; the text is one line for the user."""


def _corpus(name: str, version: str) -> Path:
    folder = FOLDER / f"{name}-{version}"
    if folder.is_dir():
        return folder
    # Only a complete corpus ever gets the final name; what an interrupted run left behind is dropped here.
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    wheels = partial / "wheels"
    wheels.mkdir(parents=True)
    run_pip(
        "download", "--no-deps", "--only-binary=:all:", *_WHEEL, "--dest", str(wheels), f"{name}=={version}"
    )
    [wheel] = wheels.iterdir()
    _unpack(wheel, partial / "unpacked")
    (partial / "unpacked").rename(folder)
    shutil.rmtree(partial)
    return folder


def _unpack(wheel: Path, folder: Path) -> None:
    """Write the Python files of a wheel below a folder, and nothing outside it."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if not name.endswith(".py"):
                continue
            path = (folder / name).resolve()
            if not path.is_relative_to(folder):
                raise Missing(f"{wheel.name}: refused, as its member {name!r} points outside the folder")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(archive.read(name))


def main() -> int:
    """Print name, version, files and lines of each corpus; returns the exit status."""
    print(f"{'name':<14}{'version':<10}{'files':>7}{'lines':>10}")
    for name, version in VERSIONS.items():
        try:
            files = sources(corpora([name])[name])
        except Missing as error:
            print(f"corpus.py: error: {error}", file=sys.stderr)
            return 2
        lines = sum(path.read_bytes().count(b"\n") for path in files)
        print(f"{name:<14}{version:<10}{len(files):>7}{lines:>10}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
