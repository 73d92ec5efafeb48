"""What is kept in the repository: nothing that a training writes. Benchmark scripts run in folders of their own."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks" / "silent_bugs"))

SUFFIXES = "bin ckpt gguf h5 joblib msgpack npy npz onnx pkl pt pth safetensors".split()


def tracked() -> Iterator[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    return (ROOT / name for name in listed.stdout.split("\0") if name)


def test_no_file_of_the_repository_is_a_weight() -> None:
    """Frictions: a benchmark script that was run by hand left `adapter/` and `encoder/` at the root, and they were committed."""
    for path in tracked():
        assert path.suffix.removeprefix(".") not in SUFFIXES, path
        if path.is_file():
            with path.open("rb") as file:
                assert not _is_weights(file.read(16)), path


def _is_weights(start: bytes) -> bool:
    """Whether a file begins as those of `torch.save`, `pickle`, safetensors and HDF5 do."""
    is_safetensors = len(start) == 16 and start[2:8] == bytes(6) and start[8:9] == b"{"
    return (
        start.startswith((b"PK\x03\x04", b"\x80\x02", b"\x80\x04", b"\x80\x05", b"\x89HDF")) or is_safetensors
    )


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_git_ignores_weights(suffix: str) -> None:
    ran = subprocess.run(["git", "check-ignore", "-q", f"somewhere/model.{suffix}"], cwd=ROOT, check=False)
    assert ran.returncode == 0


def test_a_script_of_the_silent_bugs_writes_into_a_folder_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    import tools
    from pairs import Case

    monkeypatch.chdir(tmp_path)
    script = tmp_path / "saves.py"
    script.write_text("from pathlib import Path\nPath('adapter').mkdir()\nprint(Path.cwd())\n")
    monkeypatch.setattr(Case, "path", lambda case, kind: script)
    case = object.__new__(Case)
    with tools._alone(case, "buggy") as folder:
        status, said = tools.finished(["train.py"], folder)
        assert (status, said) == (0, "")
        assert (folder / "adapter").is_dir()
    assert not folder.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["saves.py"]
