"""Real training code that nobody here wrote: the Python files and notebooks of pinned releases, never installed.

`python benchmarks/corpus.py` pulls them all and prints what there is.
"""

import hashlib
import io
import logging
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Any


class Kind(StrEnum):
    """What a release is unpacked from."""

    WHEEL = "wheel"
    SDIST = "sdist"  # scripts and tests that a wheel leaves out


@dataclass(frozen=True)
class Corpus:
    """A release: its version, what it is unpacked from, and what it is here for."""

    version: str
    kind: Kind
    topic: str


# Libraries show what is falsely found in much code; the others have training loops written by hand.
CORPORA = {
    "accelerate": Corpus("1.15.0", Kind.WHEEL, "library"),
    "lightning": Corpus("2.6.6", Kind.WHEEL, "library"),
    "timm": Corpus("1.0.31", Kind.WHEEL, "library"),
    "torchvision": Corpus("0.29.1", Kind.WHEEL, "library"),
    "transformers": Corpus("5.23.0", Kind.WHEEL, "library"),
    "audiolm-pytorch": Corpus("2.4.0", Kind.SDIST, "audio language models"),
    "byol-pytorch": Corpus("0.9.1", Kind.SDIST, "contrastive learning"),
    "cebra": Corpus("0.6.1", Kind.SDIST, "contrastive learning"),
    "cellpose": Corpus("4.2.1.1", Kind.SDIST, "segmentation"),
    "cleanrl": Corpus("1.2.0", Kind.SDIST, "reinforcement learning"),
    "ctgan": Corpus("0.12.1", Kind.SDIST, "GAN"),
    "deeprobust": Corpus("0.2.11", Kind.SDIST, "graphs and adversarial training"),
    "denoising-diffusion-pytorch": Corpus("2.3.4", Kind.SDIST, "diffusion"),
    "detecto": Corpus("1.2.2", Kind.SDIST, "detection"),
    "gpytorch": Corpus("1.15.2", Kind.SDIST, "Gaussian processes, in notebooks"),
    "lightweight-gan": Corpus("1.2.1", Kind.SDIST, "GAN"),
    "litgpt": Corpus("0.5.13", Kind.SDIST, "language models"),
    "palm-rlhf-pytorch": Corpus("0.8.0", Kind.SDIST, "language models by reinforcement"),
    "parallel-wavegan": Corpus("0.6.1", Kind.SDIST, "GAN"),
    "pfrl": Corpus("0.4.0", Kind.SDIST, "reinforcement learning"),
    "pytorch-tabnet": Corpus("4.1.0", Kind.SDIST, "tables"),
    "pytorchyolo": Corpus("1.8.0", Kind.SDIST, "detection"),
    "rsl-rl-lib": Corpus("5.5.1", Kind.SDIST, "reinforcement learning"),
    "sb3-contrib": Corpus("2.9.2", Kind.SDIST, "reinforcement learning"),
    "simpletransformers": Corpus("0.70.8", Kind.SDIST, "language models"),
    "skrl": Corpus("2.1.1", Kind.SDIST, "reinforcement learning"),
    "stable-baselines3": Corpus("2.9.2", Kind.SDIST, "reinforcement learning"),
    "stylegan2-pytorch": Corpus("1.9.0", Kind.SDIST, "GAN"),
    "x-transformers": Corpus("2.31.10", Kind.SDIST, "language models"),
    "yolov5": Corpus("7.0.14", Kind.SDIST, "detection"),
    "yolox": Corpus("0.3.0", Kind.SDIST, "detection"),
}
VERSIONS = {name: corpus.version for name, corpus in CORPORA.items()}
FOLDER = Path(__file__).resolve().parent / "corpora"

_SUFFIXES = (".py", ".ipynb")

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
    partial.mkdir(parents=True)
    if CORPORA[name].kind is Kind.WHEEL:
        _unpack(_wheel(name, version, partial / "wheels"), partial / "unpacked")
    else:
        unpack_sdist(_sdist(name, version), f"{name} {version}", partial / "unpacked")
    (partial / "unpacked").rename(folder)
    shutil.rmtree(partial)
    return folder


def _wheel(name: str, version: str, folder: Path) -> Path:
    run_pip(
        "download", "--no-deps", "--only-binary=:all:", *_WHEEL, "--dest", str(folder), f"{name}=={version}"
    )
    [wheel] = folder.iterdir()
    return wheel


def _sdist(name: str, version: str) -> bytes:
    """A source distribution, from where pip would take it.

    `pip download` runs the build of what it downloads, which is somebody else's code. So pip's own parts find and fetch
    the file, with all that pip is configured to.

    Raises:
        Missing: it cannot be had, or is not what the index says it is.
    """
    # Loaded here, as pip is slow to load and most runs have their corpora.
    from pip._internal.cli.cmdoptions import make_target_python
    from pip._internal.commands import create_command
    from pip._vendor.packaging.specifiers import SpecifierSet

    logging.getLogger("pip").setLevel(logging.ERROR)  # as --quiet does
    command: Any = create_command("download")
    options, _ = command.parse_args(["--no-binary=:all:", "--no-input", name])
    try:
        with command.main_context():
            session = command.get_default_session(options)
            finder = command._build_package_finder(
                options, session, target_python=make_target_python(options), ignore_requires_python=True
            )
            found = finder.find_best_candidate(name, SpecifierSet(f"=={version}")).best_candidate
            if found is None:
                raise Missing(f"{name} {version}: no index has its source")
            response = session.get(found.link.url_without_fragment, headers={"Accept-Encoding": "identity"})
            response.raise_for_status()
            data = bytes(response.content)
    except OSError as error:  # what goes wrong on the network is one
        raise Missing(f"{name} {version}: {error}") from error
    algorithm = found.link.hash_name
    if algorithm is not None and hashlib.new(algorithm, data).hexdigest() != found.link.hash:
        raise Missing(f"{name} {version}: refused, as it is not what the index says")
    return data


def unpack_sdist(data: bytes, name: str, folder: Path, others: tuple[str, ...] = ()) -> None:
    """Write the Python files and notebooks of a source distribution below a folder, without the folder that holds them all.

    Also files that end like one of the `others`.

    Raises:
        Missing: a member would be written somewhere else.
    """
    try:
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            # Links are no files, so nothing is written through one.
            members = [
                member
                for member in archive
                if member.isfile() and member.name.endswith((*_SUFFIXES, *others))
            ]
            for member in members:
                source = archive.extractfile(member)
                assert source is not None
                path = "/".join(PurePosixPath(member.name).parts[1:])  # those of `/etc/x.py` are etc/x.py
                _write(folder, path, source.read(), name)
    except tarfile.TarError as error:
        raise Missing(f"{name}: {error}") from error


def _unpack(wheel: Path, folder: Path) -> None:
    """Write the Python files and notebooks of a wheel below a folder, and nothing outside it."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.endswith(_SUFFIXES):
                _write(folder, name, archive.read(name), wheel.name)


def _write(folder: Path, name: str, data: bytes, archive: str) -> None:
    path = (folder / name).resolve()
    if path == folder or not path.is_relative_to(folder):
        raise Missing(f"{archive}: refused, as its member {name!r} points outside the folder")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def main() -> int:
    """Print name, version, files and lines of each corpus, and what it is for; returns the exit status."""
    print(f"{'name':<28}{'version':<10}{'kind':<6}{'files':>7}{'lines':>10}  topic")
    for name, corpus in CORPORA.items():
        try:
            files = sources(corpora([name])[name])
        except Missing as error:
            print(f"corpus.py: error: {error}", file=sys.stderr)
            return 2
        lines = sum(path.read_bytes().count(b"\n") for path in files)
        row = f"{name:<28}{corpus.version:<10}{corpus.kind:<6}{len(files):>7}{lines:>10}  {corpus.topic}"
        print(row, flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
