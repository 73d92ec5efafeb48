"""Numbers of a monitor on their way out: with the real libraries, killed writers and full disks."""

import csv
import json
import math
import os
import re
import resource
import signal
import struct
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import pytest

from ta_lint.core.errors import UsageError
from ta_runtime.monitor import sinks
from ta_runtime.monitor.sinks import CSV, HDF5, MLflow, Parquet, TensorBoard, Wandb
from ta_runtime.monitor.storage import StorageManager
from ta_runtime.runs import Run, RunWriter

STEPS: dict[int, dict[str, float]] = {
    0: {"activation/[root module]/mean": 0.1, "gradient/0.weight/norm": math.nan},
    20: {"activation/[root module]/mean": -0.0, "gradient/0.weight/norm": math.inf},
    40: {"gradient/0.weight/norm": 5e-324, 'RCC (W_t-W_0)x_t/a, "b"/l2norm': 1e308, "Ü/日本\n": 3.0},
}


def sent(sink: sinks.Sink, steps: Mapping[int, Mapping[str, float]] = STEPS) -> None:
    storage = StorageManager(sinks=[sink])
    for step, values in steps.items():
        storage.add(step, values)
    assert storage.sinks == [sink], "it failed"
    storage.close()


Read = dict[int, dict[str, str]]
"""What was written, by step and key, with numbers as text: so NaN equals itself, and zero not minus zero."""


def by_step(rows: Iterable[tuple[int, str, float]]) -> Read:
    steps: Read = {}
    for step, key, value in rows:
        steps.setdefault(step, {})[key] = repr(value)
    return steps


def wanted(steps: Mapping[int, Mapping[str, float]] = STEPS) -> Read:
    return by_step(
        (step, key, float(value)) for step, values in steps.items() for key, value in values.items()
    )


def in_csv(path: Path) -> Read:
    with path.open(newline="", encoding="utf-8") as stream:
        return by_step((int(row["step"]), row["key"], float(row["value"])) for row in csv.DictReader(stream))


def in_parquet(folder: Path) -> Read:
    rows = Run(folder).metrics.to_pylist()
    return by_step((row["step"], row["key"], row["value"]) for row in rows)


def in_hdf5(path: Path) -> Read:
    series = StorageManager.load_hdf5(path)
    return by_step((step, key, value) for key, steps in series.items() for step, value in steps.items())


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """A disk that is nearly full, as far as this process can tell."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def script(text: str, folder: Path, **environment: str) -> "subprocess.Popen[str]":
    (folder / "script.py").write_text(text)
    return subprocess.Popen(
        [sys.executable, "script.py"],
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


# -- files ----------------------------------------------------------------------------------------------------------


def test_csv_holds_each_number_as_it_was(tmp_path: Path) -> None:
    sent(CSV(tmp_path / "metrics.csv"))
    assert in_csv(tmp_path / "metrics.csv") == wanted()


def test_parquet_is_the_folder_of_a_run(tmp_path: Path) -> None:
    sent(Parquet(tmp_path / "run"))
    assert in_parquet(tmp_path / "run") == wanted()


def test_parquet_shares_the_folder_of_a_recorder(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "run")
    writer.metrics.add([{"step": 0, "key": "step/loss", "value": 2.0}])
    sent(Parquet(writer))
    assert in_parquet(tmp_path / "run") == wanted({**STEPS, 0: {**STEPS[0], "step/loss": 2.0}})


def test_hdf5_holds_each_number_as_it_was(tmp_path: Path) -> None:
    sent(HDF5(tmp_path / "metrics.h5"))
    assert in_hdf5(tmp_path / "metrics.h5") == wanted()
    with h5py.File(tmp_path / "metrics.h5") as file:  # as the documentation says
        keys = [json.loads(line) for line in file["keys"][:].tobytes().splitlines()]
        assert [keys[number] for number in file["key"][:2]] == list(STEPS[0])
        assert file["step"][:].tolist() == [0, 0, 20, 20, 40, 40, 40]
    assert (tmp_path / "metrics.h5").stat().st_size < 500_000  # nothing is left of the room that it had kept


def test_hdf5_can_be_read_while_it_grows(tmp_path: Path) -> None:
    storage = StorageManager(sinks=[HDF5(tmp_path / "metrics.h5")])
    reader = "import h5py, sys; print(h5py.File(sys.argv[1], swmr=True)['value'][:])"
    for step, text in enumerate(("[1.]", "[1. 2. 3.]")):
        storage.add(step, {"a": 1} if step == 0 else {"a": 2, "b": 3})
        done = subprocess.run(
            [sys.executable, "-c", reader, tmp_path / "metrics.h5"], capture_output=True, text=True
        )
        assert done.stdout.strip() == text, done.stderr
    storage.close()


@pytest.mark.parametrize(("kind", "read"), [(CSV, in_csv), (HDF5, in_hdf5)])
def test_a_file_is_continued_and_the_later_number_holds(kind: Any, read: Any, tmp_path: Path) -> None:
    sent(kind(tmp_path / "metrics"), {0: {"a": 1}, 20: {"a": 2}})
    sent(kind(tmp_path / "metrics"), {20: {"a": 3, "b": 4}, 40: {"b": 5}})
    assert read(tmp_path / "metrics") == wanted({0: {"a": 1.0}, 20: {"a": 3.0, "b": 4.0}, 40: {"b": 5.0}})


@pytest.mark.parametrize("kind", [CSV, HDF5])
def test_another_file_is_left_alone(kind: Any, tmp_path: Path) -> None:
    path = tmp_path / "other"
    path.write_text("epoch,loss\n1,2\n")
    with pytest.raises(UsageError, match=str(path)):
        kind(path)
    assert path.read_text() == "epoch,loss\n1,2\n"


def test_hdf5_leaves_a_file_of_hdf5_with_other_things_alone(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["weights"] = [1, 2]
    with pytest.raises(UsageError, match="name another"):
        HDF5(tmp_path / "other.h5")
    with h5py.File(tmp_path / "other.h5") as file:
        assert list(file) == ["weights"]


@pytest.mark.parametrize("variable", ["RANK", "LOCAL_RANK"])
def test_each_rank_has_a_file_of_its_own(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for rank in ("0", "1"):
        monkeypatch.setenv(variable, rank)
        monkeypatch.setenv("WORLD_SIZE", "2")
        steps = {0: {"a": float(rank)}}
        for sink in (CSV(tmp_path / "m.csv"), HDF5(tmp_path / "m.h5"), Parquet(tmp_path / "run")):
            sent(sink, steps)
        sent(TensorBoard(tmp_path / "logs"), steps)
    assert {path.name for path in tmp_path.iterdir()} == {
        "m.csv", "m.rank1.csv", "m.h5", "m.rank1.h5", "run", "logs",
    }  # fmt: skip
    assert in_csv(tmp_path / "m.rank1.csv") == in_hdf5(tmp_path / "m.rank1.h5") == wanted({0: {"a": 1.0}})
    assert Run(tmp_path / "run").metrics.column("rank").to_pylist() == [0, 1]
    assert [path.name for path in (tmp_path / "logs").iterdir() if path.is_dir()] == ["rank1"]


WRITES = """
import itertools
from ta_runtime.monitor.sinks import CSV, HDF5, Parquet
from ta_runtime.monitor.storage import StorageManager

storage = StorageManager(sinks=[CSV("metrics.csv"), HDF5("metrics.h5"), Parquet("run")])
for step in itertools.count():
    storage.add(step, {**{f"gradient/layers.{i}.weight/norm": i / 7 for i in range(300)}, f"once/{step // 10}": step})
    if step % 20 == 0:
        storage.flush()
    print(step, flush=True)
"""


def written(count: int) -> Read:
    steady = {f"gradient/layers.{i}.weight/norm": i / 7 for i in range(300)}
    return wanted({step: {**steady, f"once/{step // 10}": step} for step in range(count)})


def stopped(process: "subprocess.Popen[str]", by: signal.Signals) -> int:
    """How many steps it says to have written when it was stopped."""
    assert process.stdout is not None
    assert any(line == "43\n" for line in process.stdout)
    process.send_signal(by)
    rest = process.stdout.read()  # `communicate` would pass over what is in the buffer already
    process.wait(timeout=120)
    return 44 + len(rest.splitlines())


def test_what_a_killed_writer_wrote_is_readable(tmp_path: Path) -> None:
    count = stopped(script(WRITES, tmp_path), signal.SIGKILL)
    for read in (in_csv(tmp_path / "metrics.csv"), in_hdf5(tmp_path / "metrics.h5")):
        assert len(read) >= count  # it may have been killed before it said so
        assert read == written(len(read))
    read = in_parquet(tmp_path / "run")
    assert len(read) > 40
    assert read == written(len(read))
    with pytest.raises(UsageError, match=r"metrics\.h5: its writer was killed, or still writes"):
        HDF5(tmp_path / "metrics.h5")


def test_ctrl_c_loses_nothing_and_closes_the_files(tmp_path: Path) -> None:
    process = script(WRITES, tmp_path)
    count = stopped(process, signal.SIGINT)
    assert process.returncode == -signal.SIGINT
    with h5py.File(tmp_path / "metrics.h5"):
        pass  # it was closed: its writer is not said to be still there
    for read in (
        in_csv(tmp_path / "metrics.csv"),
        in_hdf5(tmp_path / "metrics.h5"),
        in_parquet(tmp_path / "run"),
    ):
        assert len(read) in (count, count + 1)  # the sinks after the one that was interrupted lack a step
        assert read == written(len(read))


def test_a_line_that_a_killed_writer_began_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text("step,key,value\n0,a,1.0\n1,a,2")
    sent(CSV(path), {1: {"a": 2.0}})
    assert path.read_text() == "step,key,value\n0,a,1.0\n1,a,2.0\n"


# -- failures -------------------------------------------------------------------------------------------------------


class Failing:
    """A sink of the user's own."""

    def __init__(self) -> None:
        self.closed = False

    def write(self, step: int, values: Mapping[str, float]) -> None:
        raise ConnectionError("the server is gone")

    def flush(self) -> None: ...

    def close(self) -> None:
        self.closed = True

    def __str__(self) -> str:
        return "my server"


def test_a_sink_that_fails_is_reported_once_and_the_others_go_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    failing = Failing()
    storage = StorageManager(sinks=[failing, CSV(tmp_path / "metrics.csv")])
    for step, values in STEPS.items():
        storage.add(step, values)
    storage.close()
    assert caplog.messages == [
        "my server: gets no more numbers, while the run goes on: ConnectionError: the server is gone"
    ]
    assert failing.closed
    assert storage.get_all().keys() == STEPS.keys()
    assert in_csv(tmp_path / "metrics.csv") == wanted()


@pytest.mark.parametrize("kind", [CSV, HDF5])
def test_a_full_disk_ends_a_file_with_its_last_whole_step(
    kind: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "metrics"
    steps = {step: {f"a/{i}": step + i / 7 for i in range(1000)} for step in range(100)}
    storage = StorageManager(sinks=[kind(path)])
    with files_of_at_most(path.stat().st_size + 500_000):
        for step, values in steps.items():
            storage.add(step, values)
    storage.close()
    assert len(storage.get_all()) == 100
    assert caplog.messages == [
        f"{kind.__name__} {path}: gets no more numbers, while the run goes on: OSError: [Errno 27] File too large"
    ]
    read = in_csv(path) if kind is CSV else in_hdf5(path)
    assert 5 < len(read) < 100
    assert read == wanted({step: steps[step] for step in range(len(read))})


def test_a_disk_that_fails_under_hdf5_does_not_end_the_process(tmp_path: Path) -> None:
    text = """
import os
from ta_runtime.monitor.sinks import HDF5
from ta_runtime.monitor.storage import StorageManager
sink = HDF5("metrics.h5")
storage = StorageManager(sinks=[sink])
for step in range(40):
    if step == 20:
        os.dup2(os.open(os.devnull, os.O_RDONLY), sink._file.id.get_vfd_handle())
        sink._reserved = 1 << 40
    storage.add(step, {f"a/{i}": i / 7 for i in range(1000)})
print(len(storage.get_all()), storage.sinks)
"""
    process = script(text, tmp_path)
    out, error = process.communicate(timeout=120)
    assert (process.returncode, out) == (0, "40 []\n"), error
    assert (
        "metrics.h5: gets no more numbers, while the run goes on: RuntimeError: " in error
    )  # logging is not set up
    assert {len(steps) for steps in StorageManager.load_hdf5(tmp_path / "metrics.h5").values()} == {20}


def test_a_folder_that_cannot_be_made_is_named_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for kind in (CSV, HDF5, Parquet):
        with pytest.raises(UsageError, match="file"):
            kind(tmp_path / "file" / "metrics")


def test_a_library_that_is_missing_is_named_with_what_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind, library, extra in (
        (HDF5, "h5py", "hdf5"),
        (MLflow, "mlflow", "mlflow"),
        (Wandb, "wandb", "wandb"),
    ):
        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(UsageError, match=rf"there is no {library}; .*`pip install 'ta-lint\[{extra}\]'`"):
            kind(tmp_path / "x")


def test_the_sinks_load_no_library_before_they_are_made() -> None:
    text = """
import sys, torch
def loaded():
    return {name for name in ("h5py", "mlflow", "pyarrow", "tensorboard", "wandb") if name in sys.modules}
before = loaded()
import ta_runtime.monitor
print(loaded() - before)
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert done.stdout == "set()\n", done.stderr


# -- services -------------------------------------------------------------------------------------------------------


def test_tensorboard_shows_each_number(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    sent(TensorBoard(tmp_path))
    events = EventAccumulator(str(tmp_path)).Reload()
    read = by_step(
        (event.step, key, event.value) for key in events.Tags()["scalars"] for event in events.Scalars(key)
    )
    assert read == wanted(
        {step: {key: float32(value) for key, value in values.items()} for step, values in STEPS.items()}
    )


def float32(value: float) -> float:
    import numpy as np

    with np.errstate(over="ignore"):
        return float(np.float32(value))


def test_tensorboard_writes_into_a_writer_in_use(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(tmp_path) as writer:
        sent(TensorBoard(writer), {5: {"a": 1}})
        writer.add_scalar("loss", 2.0, 5)
    events = EventAccumulator(str(tmp_path)).Reload()
    assert events.Tags()["scalars"] == ["a", "loss"]


def history(folder: Path) -> list[dict[str, Any]]:
    """The rows in the file of an offline run: records of Protocol Buffers in the log format of LevelDB."""
    from wandb.proto.wandb_internal_pb2 import Record

    [path] = folder.glob("wandb/offline-run-*/*.wandb")
    data, at, whole, rows = path.read_bytes(), 7, b"", []
    while at + 7 <= len(data):
        if (left := 32768 - at % 32768) < 7:
            at += left
            continue
        length, kind = struct.unpack_from("<HB", data, at + 4)
        whole += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or the last part
            record = Record.FromString(whole)
            whole = b""
            if record.WhichOneof("record_type") == "history":
                items = record.history.item
                rows.append(
                    {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in items}
                )
    return [{key: value for key, value in row.items() if not key.startswith("_")} for row in rows]


def test_wandb_drops_nothing_however_the_training_numbers_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import wandb

    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"wandb\.init"):
        Wandb()
    settings = wandb.Settings(console="off", silent=True)
    with wandb.init(mode="offline", dir=tmp_path, settings=settings) as run:
        storage = StorageManager(sinks=[Wandb()])
        storage.add(0, {"a": 0.5})
        storage.add(1, {"a": 1.5})  # nobody logs in between
        run.log({"loss": 1.0})  # numbered by W&B
        storage.add(2, {"a": 2.5, "gradient/0.weight/norm": math.nan})
        run.log({"loss": 2.0}, step=100)  # beyond what the monitor counts
        storage.add(3, {"a": 3.5})
        run.log({"loss": 3.0}, step=101)
        storage.add(4, {"a": 4.5})
    wandb.teardown()  # until then its file is in the hands of another process
    rows = history(tmp_path)
    assert [(row["monitor/step"], row["a"]) for row in rows if "a" in row] == [(i, i + 0.5) for i in range(5)]
    assert [row["loss"] for row in rows if "loss" in row] == [1.0, 2.0, 3.0]
    assert [math.isnan(row["gradient/0.weight/norm"]) for row in rows if "gradient/0.weight/norm" in row] == [
        True
    ]


@pytest.fixture
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """MLflow with a folder of files."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    import mlflow

    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    yield mlflow
    mlflow.end_run()
    mlflow.set_tracking_uri(before)


def test_mlflow_keeps_each_number_under_a_name_of_its_own(experiment: Any) -> None:
    with pytest.raises(UsageError, match="start_run"):
        MLflow()
    keys = [
        "activation/[root module]/mean",
        "x(",
        "x_",
        "a",
        "a/b",
        "c/d",
        "c",
        "../e//f/",
        "",
        "/",
        "k" * 300,
    ]
    keys += ["k" * 301, "Ü/日本"]
    with experiment.start_run() as run:
        sent(MLflow(), {step: {key: 10.0 * step + i for i, key in enumerate(keys)} for step in (0, 20)})
    kept = experiment.MlflowClient().get_run(run.info.run_id).data.metrics
    assert sorted(kept.values()) == [200.0 + i for i in range(len(keys))]
    assert kept["activation/_root module_/mean"] == 200
    history = experiment.MlflowClient().get_metric_history(run.info.run_id, "x_")
    assert [(metric.step, metric.value) for metric in history] == [(0, 1.0), (20, 201.0)]


def test_mlflow_gets_more_numbers_than_it_takes_at_once(experiment: Any) -> None:
    with experiment.start_run() as run:
        sent(MLflow(run.info.run_id), {0: {f"a{i}": math.inf if i % 2 else math.nan for i in range(1500)}})
    assert len(experiment.MlflowClient().get_run(run.info.run_id).data.metrics) == 1500


def test_mlflow_that_fails_is_told_with_the_next_step(
    experiment: Any, caplog: pytest.LogCaptureFixture
) -> None:
    storage = StorageManager(sinks=[MLflow("no-such-run")])
    storage.add(0, {"a": 1})
    storage.flush()
    storage.add(1, {"a": 1})
    assert [message.split(":")[0] for message in caplog.messages] == ["MLflow"]
    assert list(storage.get_all()) == [0, 1]


def test_services_get_the_numbers_of_the_first_rank_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    for kind in (Wandb, MLflow):
        sent(kind(), STEPS)


def test_services_get_the_last_step_of_a_script_that_closes_nothing(tmp_path: Path) -> None:
    text = """
import mlflow, pathlib, wandb
from ta_runtime.monitor.sinks import MLflow, TensorBoard, Wandb
from ta_runtime.monitor.storage import StorageManager, at_end

mlflow.set_tracking_uri(pathlib.Path("mlruns").absolute().as_uri())
mlflow.start_run()
wandb.init(mode="offline", dir=".", settings=wandb.Settings(console="off", silent=True))
storage = StorageManager(sinks=[Wandb(), MLflow(), TensorBoard("logs")])
for step in range(3):
    storage.add(step, {"a": step})
on_its_way = type("Monitor", (), {})()
at_end(on_its_way, storage.add, 3, {"a": 3})  # as a monitor hands over what a device had not computed
"""
    process = script(text, tmp_path, MLFLOW_ALLOW_FILE_STORE="true")
    _, error = process.communicate(timeout=120)
    assert "no more numbers" not in error
    assert [row["a"] for row in history(tmp_path)] == [0, 1, 2, 3]
    [metric] = tmp_path.glob("mlruns/*/*/metrics/a")
    assert [line.split()[1:] for line in metric.read_text().splitlines()] == [
        [f"{i}.0", str(i)] for i in range(4)
    ]
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    assert len(EventAccumulator(str(tmp_path / "logs")).Reload().Scalars("a")) == 4


# -- the documentation ----------------------------------------------------------------------------------------------


def test_the_page_on_the_monitor_runs_as_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[1] / "docs" / "monitor.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 8
    monkeypatch.chdir(tmp_path)
    scope: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "monitor.md", "exec"), scope)  # noqa: S102
    scope["monitor"].storage.close()
    assert {path.name for path in (tmp_path / "logs").iterdir()} > {"metrics.csv", "metrics.h5"}
