"""The numbers of a monitor: in memory, within its bound, and in HDF5 and back."""

import gc
import math
import resource
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch_module_monitor

from ta_lint.core.errors import UsageError
from ta_runtime.monitor.storage import StorageManager

METRICS = {"activation/[root module]/mean": 0.5, "gradient/0.weight/norm": 2.0}


def metrics(count: int) -> dict[str, float]:
    return {f"gradient/layers.{i}.weight/norm": i / 3 for i in range(count)}


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """A disk that is nearly full, as far as this process can tell."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


# -- in memory ------------------------------------------------------------------------------------------------------


def test_what_is_added_is_there_by_step() -> None:
    storage = StorageManager()
    storage.add(0, METRICS)
    storage.add(20, {"loss": 3})
    assert storage.get_step(0) == METRICS
    assert storage.get_all() == {0: METRICS, 20: {"loss": 3.0}}
    assert storage.has_step(20)
    assert not storage.has_step(10)
    assert storage.get_step(10) == {}


def test_the_names_of_torch_module_monitor_are_there_too() -> None:
    storage, theirs = StorageManager(), torch_module_monitor.StorageManager()
    storage.add(3, METRICS)
    for key, value in METRICS.items():
        theirs.log_scalar(3, key, value)
    assert storage.get_step_metrics(3) == theirs.get_step_metrics(3)
    assert storage.get_all_metrics() == theirs.get_all_metrics()
    assert storage.condensed_log_dict() == theirs.condensed_log_dict()
    copy = StorageManager()
    copy.load_metrics(theirs.get_all_metrics())
    assert copy.get_all() == storage.get_all()
    with pytest.raises(ValueError, match="clear"):
        copy.load_metrics({})
    copy.clear()
    assert copy.get_all() == {}


def test_more_numbers_of_a_step_join_those_it_has() -> None:
    storage = StorageManager()
    for step in range(4):
        storage.add(step, {"a": step, "b": 1})
        storage.add(step, {"c": -step, "b": 2})
    assert storage.get_all() == {step: {"a": step, "b": 2, "c": -step} for step in range(4)}


def test_steps_may_come_in_any_order() -> None:
    storage = StorageManager()
    order = [5, 3, 9, -1, 4, 9, 0, 3, 7]
    for number, step in enumerate(order):
        storage.add(step, {"a": number} if number % 2 else {"a": number, "b": math.inf})
    assert list(storage.get_all()) == sorted(set(order))
    assert storage.get_step(9) == {"a": 5, "b": math.inf}
    assert storage.get_step(3) == {"a": 7}


def test_what_is_no_number_is_refused_and_the_step_stays_as_it_was() -> None:
    storage = StorageManager()
    storage.add(1, {"a": 1})
    with pytest.raises(ValueError, match="'x'"):
        storage.add(1, {"a": 2, "b": "x"})  # type: ignore[dict-item]
    assert storage.get_all() == {1: {"a": 1}}


def test_a_million_numbers_take_little_more_than_their_eight_bytes() -> None:
    storage, step = StorageManager(), metrics(100)
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(10_000):
            storage.add(number, step)
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used < 9 * 1_000_000


def test_memory_is_bounded_whatever_comes(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the interpreter's table of interned strings grows by megabytes at once, whoever interns the next one
    monkeypatch.setattr(sys, "intern", lambda key: key)
    limit = 1 << 20
    storage, step = StorageManager(limit=limit), metrics(97)
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(4_000):
            storage.add(number, step)
            storage.add(number, {f"once/{number}": 1.0})
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 1.3 * limit
    assert storage.has_step(3_999)
    [record] = caplog.records
    assert "the oldest are dropped; a sink keeps all of them" in record.getMessage()


def test_what_was_dropped_is_told_by_whoever_asks_for_all(caplog: pytest.LogCaptureFixture) -> None:
    storage = StorageManager(limit=4096)
    for step in range(1000):
        storage.add(step, {"a": step, "b": 1})
    caplog.clear()
    kept = storage.get_all()
    first = min(kept)
    assert first > 0
    assert kept == {step: {"a": step, "b": 1} for step in range(first, 1000)}
    assert storage.dropped == (0, first - 1, first)
    assert caplog.messages == [f"{first} monitored steps, 0 to {first - 1}, were dropped"]


def test_without_a_limit_nothing_is_dropped() -> None:
    storage = StorageManager(limit=None)
    for step in range(1000):
        storage.add(step, METRICS)
    assert len(storage.get_all()) == 1000


def test_a_step_larger_than_the_limit_is_there_until_the_next() -> None:
    storage = StorageManager(limit=100)
    for step in range(3):
        storage.add(step, METRICS)
    assert storage.get_all() == {2: METRICS}


# -- HDF5 -----------------------------------------------------------------------------------------------------------


def same(ours: dict[str, dict[int, float]], others: dict[str, dict[int, float]]) -> bool:
    """Whether they are equal, NaN and the sign of zero included."""
    return repr({key: ours[key] for key in sorted(ours)}) == repr(
        {key: others[key] for key in sorted(others)}
    )


def test_keys_with_slashes_come_back_where_those_of_torch_module_monitor_raise(tmp_path: Path) -> None:
    path = tmp_path / "metrics.h5"
    theirs = torch_module_monitor.StorageManager()
    for key, value in METRICS.items():
        theirs.log_scalar(7, key, value)
    theirs.save_hdf5(str(path))
    with pytest.raises(TypeError):
        theirs.load_hdf5(str(path))
    assert StorageManager.load_hdf5(path) == {
        key: {7: value} for key, value in METRICS.items()
    }  # of its file
    ours = StorageManager()
    ours.add(7, METRICS)
    ours.save_hdf5(path)
    assert StorageManager.load_hdf5(path) == ours.condensed_log_dict()


@pytest.mark.parametrize(
    "key",
    [
        "a/b/c",
        "",
        "/",
        "a//b",
        "./a",
        "../..",
        "a/",
        "keys",
        "a/keys/values",
        "%",
        "%2e",
        "a.b c",
        "(W_t-W_0)x_t",
        "Ü/日本/🙂",
        "a\nb",
        "nul\0",
        "\ud800",
        "x" * 3000,
    ],
)
def test_every_key_comes_back(key: str, tmp_path: Path) -> None:
    storage = StorageManager()
    storage.add(1, {key: 1.5, f"{key}/mean": 2.5})
    storage.save_hdf5(tmp_path / "metrics.h5")
    assert StorageManager.load_hdf5(tmp_path / "metrics.h5") == {key: {1: 1.5}, f"{key}/mean": {1: 2.5}}


def test_every_number_comes_back(tmp_path: Path) -> None:
    numbers = [math.nan, math.inf, -math.inf, -0.0, 0.1, 5e-324, 1.7e308, 2**53, 3, True]
    storage = StorageManager()
    for step, number in zip([-(2**62), -1, *range(2, 9), 2**62], numbers, strict=True):
        storage.add(step, {"a": number, f"b/{step}": number})
    storage.save_hdf5(str(tmp_path / "metrics.h5"))
    assert same(StorageManager.load_hdf5(str(tmp_path / "metrics.h5")), storage.condensed_log_dict())


def test_thousands_of_keys_come_back(tmp_path: Path) -> None:
    storage = StorageManager()
    for step in range(3):
        storage.add(step, metrics(2000 - step))
    storage.save_hdf5(tmp_path / "metrics.h5")
    assert same(StorageManager.load_hdf5(tmp_path / "metrics.h5"), storage.condensed_log_dict())


def test_nothing_comes_back_as_nothing(tmp_path: Path) -> None:
    storage = StorageManager()
    storage.add(0, {})
    storage.save_hdf5(tmp_path / "metrics.h5")
    assert StorageManager.load_hdf5(tmp_path / "metrics.h5") == {}


def test_a_file_is_laid_out_as_that_of_torch_module_monitor(tmp_path: Path) -> None:
    storage, theirs = StorageManager(), torch_module_monitor.StorageManager()
    for step in (0, 20):
        storage.add(step, METRICS)
        for key, value in METRICS.items():
            theirs.log_scalar(step, key, value)
    storage.save_hdf5(tmp_path / "ours.h5")
    theirs.save_hdf5(str(tmp_path / "theirs.h5"))
    with h5py.File(tmp_path / "ours.h5") as ours, h5py.File(tmp_path / "theirs.h5") as others:
        for key in METRICS:
            for column in ("keys", "values"):
                np.testing.assert_array_equal(ours[key][column][:], others[key][column][:])


def test_one_key_can_be_read_alone(tmp_path: Path) -> None:
    storage = StorageManager()
    storage.add(0, METRICS)
    storage.add(5, {"loss": 1.0})
    storage.save_hdf5(tmp_path / "metrics.h5")
    assert StorageManager.read_hdf5_entry_keys(tmp_path / "metrics.h5") == [*METRICS, "loss"]
    entry = StorageManager.read_hdf5_entry(tmp_path / "metrics.h5", "loss")
    assert entry is not None
    assert [column.tolist() for column in entry] == [[5], [1.0]]
    assert StorageManager.read_hdf5_entry(tmp_path / "metrics.h5", "accuracy") is None


def test_a_full_disk_leaves_the_file_that_was_there(tmp_path: Path) -> None:
    path = tmp_path / "metrics.h5"
    storage = StorageManager()
    storage.add(0, {"a": 1.0})
    storage.save_hdf5(path)
    storage.add(1, metrics(200))
    with files_of_at_most(20_000), pytest.raises(UsageError, match=r"cannot write .*metrics\.h5"):
        storage.save_hdf5(path)
    assert StorageManager.load_hdf5(path) == {"a": {0: 1.0}}
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read .*missing\.h5"):
        StorageManager.load_hdf5(tmp_path / "missing.h5")
    (tmp_path / "text.h5").write_text("no HDF5")
    with pytest.raises(UsageError, match=r"cannot read .*text\.h5"):
        StorageManager.load_hdf5(tmp_path / "text.h5")
