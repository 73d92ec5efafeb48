"""A trace: what was told comes back, whatever becomes of the run, wherever it lies; and `ta-runtime collect`."""

import json
import os
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import commands
import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from torch import distributed as dist
from traces import Timeline

from ta_lint.core.errors import UsageError
from ta_runtime import storage
from ta_runtime.runs import Run, RunWriter, schema, writer
from ta_runtime.trace import collecting
from ta_runtime.trace.event import Event
from ta_runtime.trace.trace import TraceWriter

TRAIN = """\
import os, signal, sys, torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).square().mean().backward()
    optimizer.step()
"""


def steps(count: int, each: int = 10) -> list[Event]:
    """So many events of each of so many steps."""
    told = Timeline()
    return [told("loop", "torch.optim.SGD.step", step=step) for step in range(count) for _ in range(each)]


def traced(folder: str | Path, events: list[Event], **options: int) -> TraceWriter:
    trace = TraceWriter(folder, **options)
    for event in events:
        trace.see(event)
    trace.close()
    return trace


def parts(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("events/*"))


# -- what is told comes back ----------------------------------------------------------------------------------


def test_events_come_back_as_they_were_told(tmp_path: Path) -> None:
    told = Timeline()
    events = [
        told("module", "torch.nn.Linear", subject="fc", inputs="float32[8,4]", dtype="float32", shape="8,2",
             arguments='{"p":0.1}', digest=-(2**63), step=7, phase="eval", parent=12, flags=1025),
        told("op", "torch.Tensor.item", value=float("nan"), file="", line=0),
        told("gradient", "torch.nn.Linear", digest=2**63 - 1),
    ]  # fmt: skip
    trace = traced(tmp_path / "run", events)
    run = Run(tmp_path / "run")
    table = run.read("events")
    assert table.schema.equals(schema.EVENTS, check_metadata=True)
    rows = table.to_pylist()
    same = {"run": run.about[0]["run"], "rank": 0}
    assert [str(row) for row in rows] == [
        str({**{name: {**event._asdict(), **same}[name] for name in schema.EVENTS.names}}) for event in events
    ]
    assert trace.count == 3
    assert trace.size == sum(path.stat().st_size for path in (tmp_path / "run").glob("events/*"))


def test_columns_and_rows_can_be_chosen(tmp_path: Path) -> None:
    traced(tmp_path / "run", steps(5))
    table = Run(tmp_path / "run").read("events", ["seq", "name"], pc.field("step") == 3)
    assert table.column_names == ["seq", "name"]
    assert table["seq"].to_pylist() == list(range(60, 80, 2))


def test_two_runs_in_folders_of_one_name_are_told_apart(tmp_path: Path) -> None:
    for parent in ("a", "b"):
        traced(tmp_path / parent / "run", steps(1))
    query = f"select distinct run from '{tmp_path}/*/run/events/*.parquet'"
    names = [name for (name,) in duckdb.sql(query).fetchall()]
    assert len(names) == 2
    assert all(re.fullmatch(r"run-\d{8}T\d{12}", name) for name in names)


def test_ranks_that_told_different_numbers_of_events_are_read_each_in_full(tmp_path: Path) -> None:
    for rank, count in enumerate((5, 3)):
        trace = TraceWriter(RunWriter(tmp_path, rank=rank, world_size=3))
        for event in steps(count):
            trace.see(event)
        trace.close()
    run = Run(tmp_path)
    assert sorted(run.about) == [0, 1]  # of three
    by_rank = run.read("events", ["rank"])["rank"].value_counts().to_pylist()
    assert [(each["values"], each["counts"]) for each in by_rank] == [(0, 50), (1, 30)]


def test_an_event_takes_two_bytes_where_events_repeat(tmp_path: Path) -> None:
    trace = traced(tmp_path, steps(1000, each=20))
    assert trace.size < 2 * trace.count


def test_a_trace_and_metrics_share_a_folder(tmp_path: Path) -> None:
    run = RunWriter(tmp_path)
    run.metrics.add([{"step": 0, "key": "step/loss", "value": 0.5}])
    run.flush()
    traced(run, steps(1))
    assert (Run(tmp_path).metrics.num_rows, Run(tmp_path).read("events").num_rows) == (1, 10)


# -- the writer -----------------------------------------------------------------------------------------------


def test_events_wait_for_others_until_there_are_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "ROWS", 256)
    trace = TraceWriter(tmp_path)
    for number, event in enumerate(steps(100), 1):
        trace.see(event)
        assert trace.count == number // 256 * 256
        assert len(trace._waiting) + len(trace._table.steps) < 256
    trace.close()
    assert Run(tmp_path).read("events")["seq"].to_pylist() == list(range(0, 2000, 2))


def test_an_event_waits_30_seconds_and_then_a_hundredth_of_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(writer.time, "monotonic", lambda: now)
    trace = TraceWriter(tmp_path / "all")
    ring = TraceWriter(tmp_path / "ring", last=1_000_000)
    for event in steps(61, each=64):
        now = 29.9 if event.step == 0 else 10_000.0 + 30 * event.step
        trace.see(event)
        ring.see(event)
        assert trace.count == 0 or now >= 30
    assert len(parts(tmp_path / "all")) == 15
    assert len(parts(tmp_path / "ring")) == 60


def test_a_ring_keeps_the_last_steps_from_the_beginning_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "ROWS", 64)
    events = steps(500)
    trace = traced(tmp_path, events, last=20)
    kept = Run(tmp_path).read("events", ["step", "seq"]).to_pylist()
    first = kept[0]["step"]
    assert 470 < first <= 479
    assert [row["seq"] for row in kept] == [event.seq for event in events if event.step >= first]
    assert trace.count == len(kept)
    assert trace.size == sum(path.stat().st_size for path in tmp_path.glob("events/*"))
    assert len(parts(tmp_path)) < 6


def test_a_ring_writes_a_step_of_very_many_events_before_it_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "ROWS", 64)
    trace = TraceWriter(tmp_path, last=1)
    for event in steps(1, each=1000):
        trace.see(event)
    assert trace.count == 960
    trace.close()
    assert Run(tmp_path).read("events").num_rows == 1000


def test_what_cannot_be_written_is_said_once_and_no_event_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "ROWS", 64)
    trace = TraceWriter(tmp_path)
    for number, event in enumerate(steps(100)):
        trace.see(
            event._replace(file="\udcff") if number == 70 else event
        )  # which no file of Parquet can hold
        assert len(trace._waiting) + len(trace._table.steps) <= 64
    trace.close()
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "cannot record the run in" in told
    assert told.endswith("; the training goes on, and no more of it is recorded\n")
    assert Run(tmp_path).read("events").num_rows == 64


def test_a_forked_process_writes_nothing(tmp_path: Path) -> None:
    trace = TraceWriter(tmp_path)
    trace.see(steps(1)[0])
    if (child := os.fork()) == 0:
        for event in steps(100):
            trace.see(event)
        trace.close()
        os._exit(0)
    os.waitpid(child, 0)
    trace.close()
    assert Run(tmp_path).read("events").num_rows == 1


# -- the reader -----------------------------------------------------------------------------------------------


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def foreign(path: Path) -> None:
    pq.write_table(pa.table({"step": [1]}), path)


def lacking(path: Path) -> None:
    pq.write_table(pa.table({"step": [1]}).replace_schema_metadata({"ta": "1"}), path)


def text(path: Path) -> None:
    path.write_text("what I noted on Monday")


def newer(path: Path) -> None:
    pq.write_table(pq.read_table(path).replace_schema_metadata({"ta": str(schema.VERSION + 1)}), path)


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (truncated, "damaged, or no part of a run: "),
        (lacking, "damaged, or no part of a run: 'arguments'; delete it to read the rest of the run"),
        (text, "damaged, or no part of a run: "),
        (foreign, "not written by ta-runtime; delete it to read the rest of the run"),
        (newer, "written by a newer ta-runtime, with schema 2 where this one reads 1; update by "),
    ],
)
@pytest.mark.parametrize("read", [Run.parts, Run.read])
def test_a_part_that_cannot_be_read_is_named_with_what_to_do(
    read: Callable[[Run, str], object], spoil: Callable[[Path], None], told: str, tmp_path: Path
) -> None:
    traced(tmp_path / "run", steps(1))
    part = tmp_path / "run/events/rank0-00000.parquet"
    spoil(part)
    with pytest.raises(UsageError, match=re.escape(f"{part}: {told}")):
        read(Run(tmp_path / "run"), "events")


def test_parts_are_listed_by_rank_and_number_for_other_engines(tmp_path: Path) -> None:
    for rank in (10, 9):
        trace = TraceWriter(RunWriter(tmp_path, rank=rank))
        for event in steps(2):
            trace.see(event)
            trace.flush()
    (tmp_path / "events/rank9-00020.part").write_text("of a writer that was killed")
    (tmp_path / "events/notes.parquet").write_text("mine")
    listed = Run(tmp_path).parts("events")
    assert listed == [
        f"{tmp_path}/events/rank{rank}-{number:05}.parquet" for rank in (9, 10) for number in range(20)
    ]
    assert duckdb.read_parquet(listed).count("*").fetchall() == [(40,)]


# -- places ---------------------------------------------------------------------------------------------------


def test_a_run_lies_wherever_fsspec_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "ROWS", 64)
    folder = "memory://traces/kept"
    traced(folder, steps(100), last=20)
    run = Run(folder)
    listed = run.parts("events")
    assert listed[0].startswith("memory:///traces/kept/events/rank0-000")
    assert listed[0] != "memory:///traces/kept/events/rank0-00000.parquet"  # which the ring has removed
    assert run.read("events", ["step"], pc.field("step") == 99).num_rows == 10
    assert str(TraceWriter(folder).run.folder) == "memory:///traces/kept-2"
    part = run.folder / "events" / listed[0].rpartition("/")[2]
    part.write_bytes(b"PAR1")
    with pytest.raises(UsageError, match=re.escape(f"{listed[0]}: damaged, or no part of a run: ")):
        Run(folder).parts("events")
    with pytest.raises(UsageError, match="memory:///traces/none: no such folder; "):
        Run("memory://traces/none")


def test_numbers_and_findings_are_recorded_wherever_fsspec_leads(tmp_path: Path) -> None:
    """With the page of the report, and a comparison of the run with itself."""
    (tmp_path / "train.py").write_text(
        "import ta_runtime\n"
        "from ta_runtime.cli import main\n"
        "ta_runtime.enable(record='memory://runs/1', output=None, live=False, snapshots='first 1')\n"
        f"{TRAIN}"
        "ta_runtime.disable()\n"
        "print(main(['diff', 'memory://runs/1', 'memory://runs/1']))\n"
        "print(main(['report', 'memory://runs/1']))\n"
        "import fsspec\n"
        "print(sorted(fsspec.filesystem('memory').find('/runs/1')))\n"
    )
    ran = commands.warm(tmp_path, "train.py")
    *_, equal, made, files = ran.stdout.splitlines()
    assert (ran.returncode, equal, made) == (0, "0", "0"), ran.stderr
    names = ["findings.json", "metrics/rank0-00000.parquet", "rank0.json", "records/rank0-00000.parquet"]
    assert set(json.loads(files.replace("'", '"'))) >= {f"/runs/1/{name}" for name in [*names, "report.html"]}
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


@pytest.mark.parametrize(
    ("location", "told"),
    [
        (
            "nowhere://bucket/run",
            "nowhere://bucket/run: Protocol not known: nowhere; write a folder, or a URL",
        ),
        (
            Path("s3://bucket/run"),
            "s3:/bucket/run: a Path drops a slash of a URL; write it as text, 's3://...'",
        ),
    ],
)
def test_a_place_that_nothing_leads_to_is_named(location: str | Path, told: str) -> None:
    for reads in (Run, RunWriter, TraceWriter):
        with pytest.raises(UsageError, match=re.escape(told)):
            reads(location)


def test_a_file_system_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(
        UsageError, match="s3://bucket/run: there is no s3fs; install it by `pip install s3fs`"
    ):
        Run("s3://bucket/run")


def test_the_url_of_a_folder_of_this_machine_is_that_folder(tmp_path: Path) -> None:
    assert storage.located(f"file://{tmp_path}/run") == tmp_path / "run"


def test_a_place_that_cannot_be_written_to_is_known_before_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    from fsspec.implementations.memory import MemoryFileSystem

    def forbidden(*_: object, **__: object) -> None:
        raise RuntimeError("no credentials")

    monkeypatch.setattr(MemoryFileSystem, "pipe_file", forbidden)
    with pytest.raises(
        UsageError, match="memory:///closed: RuntimeError: no credentials; name another folder"
    ):
        RunWriter("memory://closed")


# -- ta-runtime collect ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[commands.Ran, Path]]:
    """Scripts that end in different ways, each traced into the folder `trace` beside it."""
    often = "from ta_runtime.runs import writer\nwriter.ROWS = 64\n"
    scripts = {
        "well": ("train.py", TRAIN + "print('the end', sys.argv[1:])\nsys.exit(3)\n"),
        "fails": ("train.py", TRAIN + "    if step == 9: model(torch.randn(8, 5))\n"),
        "interrupted": ("train.py", TRAIN + "    if step == 9: os.kill(os.getpid(), signal.SIGINT)\n"),
        "killed": ("train.py", often + TRAIN + "    if step == 19: os.kill(os.getpid(), signal.SIGKILL)\n"),
        "nothing": ("train.py", "print('nothing')\n"),
    }
    folders = {name: tmp_path_factory.mktemp(name) for name in scripts}
    for name, (path, code) in scripts.items():
        (folders[name] / path).write_text(code)
    words = {
        "well": ("-o", "trace", "--level", "ops", "--every", "5", "--warm-up", "2", "train.py", "-o", "mine"),
        "fails": ("--output=trace", "-m", "train"),
    }
    ends = [
        lambda name=name: commands.ta_runtime(
            folders[name], "collect", *words.get(name, ("train.py", "-o", "trace"))
        )
        for name in scripts
    ]
    return {
        name: (ran, folders[name] / "trace")
        for name, ran in zip(scripts, commands.at_once(ends), strict=True)
    }


Collected = dict[str, tuple[commands.Ran, Path]]


def stepped(folder: Path) -> list[int]:
    """The steps in which the optimizer was called."""
    return (
        Run(folder).read("events", ["step"], pc.field("name") == "torch.optim.SGD.step")["step"].to_pylist()
    )


def test_collect_runs_the_script_and_says_what_there_is_and_what_comes_next(collected: Collected) -> None:
    ran, folder = collected["well"]
    assert (ran.returncode, ran.stdout) == (3, "the end ['-o', 'mine']\n")
    [told] = ran.stderr.splitlines()
    count = Run(folder).read("events").num_rows
    assert re.fullmatch(
        rf"ta-runtime: the trace is in trace: {count:,} events of 20 steps at the level ops, \d+ kB; "
        "`ta-runtime infer trace` learns what always holds",
        told,
    )
    assert stepped(folder) == list(range(20))
    assert Run(folder).about[0]["trace"] == {"level": "ops", "every": 5, "warm_up": 2, "last": None}


def test_of_a_script_that_fails_all_is_there_and_its_traceback_is_pythons(collected: Collected) -> None:
    ran, folder = collected["fails"]
    assert ran.returncode == 1
    trace, told = ran.stderr.rsplit("\n", 2)[:2]
    assert trace.startswith('Traceback (most recent call last):\n  File "')
    assert "RuntimeError: mat1 and mat2 shapes cannot be multiplied" in trace
    assert "ta_runtime" not in trace
    assert told.startswith("ta-runtime: the trace is in trace: ")
    assert stepped(folder) == list(range(10))


def test_of_a_script_that_ctrl_c_ends_all_is_there(collected: Collected) -> None:
    ran, folder = collected["interrupted"]
    assert ran.returncode == 130
    assert ran.stderr.splitlines()[-1].startswith("ta-runtime: the trace is in trace: ")
    assert stepped(folder) == list(range(10))


def test_of_a_killed_script_all_but_the_last_part_is_there(collected: Collected) -> None:
    """Here parts of 64 events, as none waits for others: a few steps."""
    ran, folder = collected["killed"]
    assert ran.returncode == -signal.SIGKILL
    assert len(Run(folder).parts("events")) > 2
    found = stepped(folder)
    assert found == list(range(len(found)))
    assert len(found) >= 14


def test_a_script_that_trains_nothing_is_said_to(collected: Collected) -> None:
    ran, folder = collected["nothing"]
    assert (ran.returncode, ran.stdout) == (0, "nothing\n")
    assert ran.stderr == (
        "ta-runtime: no training step was seen: no optimizer stepped in this process; "
        "trace has 0 events of 0 steps at the level digests, 0 kB\n"
    )
    assert Run(folder).parts("events") == []


RANKS = """\
import sys, torch
import torch.distributed as dist

dist.init_process_group("gloo")
torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3 + dist.get_rank()):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).square().mean().backward()
    optimizer.step()
dist.destroy_process_group()
"""


@pytest.mark.skipif(not dist.is_gloo_available(), reason="needs gloo")
def test_under_torchrun_each_rank_writes_its_own_files_of_one_run(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(RANKS)
    torchrun = ("-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone")
    ran = commands.warm(tmp_path, *torchrun, "-m", "ta_runtime", "collect", "-o", "trace", "train.py")
    assert ran.returncode == 0, ran.stderr
    told = re.findall(
        r"ta-runtime: the trace is in trace: [\d,]+ events of 3 steps .* by rank 0 of 2, ", ran.stderr
    )
    assert len(told) == ran.stderr.count("ta-runtime: ") == 1
    run = Run(tmp_path / "trace")
    assert sorted(run.about) == [0, 1]
    table = run.read("events", ["run", "rank"], pc.field("name") == "torch.optim.SGD.step")
    assert set(table["run"].to_pylist()) == {run.about[0]["run"]}
    assert table["rank"].to_pylist() == [0] * 3 + [1] * 4


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "usage: ta-runtime collect -o TRACE [options] SCRIPT"),
        (("train.py",), "name a folder for the trace: `ta-runtime collect -o TRACE train.py`"),
        (("-o", "x", "none.py"), "none.py: no such file; to run a module, write -m before its name"),
        (
            ("-o", "x", "--every", "0", "train.py"),
            "argument --every: '0' is not a number of steps, 1 or more",
        ),
        (
            ("-o", "nowhere://x", "train.py"),
            "nowhere://x: Protocol not known: nowhere; write a folder, or a URL",
        ),
        (("-o", "train.py", "train.py"), "train.py: is a file; name a folder for the run"),
    ],
)
def test_what_is_wrong_in_the_command_line_is_said_before_the_script_runs(
    words: tuple[str, ...],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from ta_runtime.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path("train.py").write_text("raise SystemError('it ran')")
    try:
        status: object = main(["collect", *words])
    except SystemExit as error:
        status = error.code
    assert status == 2
    assert told in capsys.readouterr().err


def test_a_part_of_a_program_is_traced_by_a_context_manager(tmp_path: Path) -> None:
    import torch

    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters())

    def train(count: int) -> None:
        for _ in range(count):
            model(torch.randn(2, 4)).sum().backward()
            optimizer.step()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), collecting(tmp_path / "run", level="modules"):
        train(3)
    with pytest.raises(ZeroDivisionError):
        train(1)
    assert stepped(tmp_path / "run") == [0, 1, 2]
    assert Run(tmp_path / "run").about[0]["trace"]["level"] == "modules"
    with (
        pytest.raises(UsageError, match="last: 0 must be at least 1"),
        collecting(tmp_path / "other", last=0),
    ):
        pass


def test_the_page_is_executed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a line prints stands behind it."""
    page = (Path(__file__).parents[1] / "docs/traces.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(tmp_path)
    for block in blocks:
        exec(compile(block, "traces.md", "exec"), {"__name__": "__main__"})  # noqa: S102 - the page is what is tested
    assert len(blocks) == 2
    assert capsys.readouterr().out.splitlines() == re.findall(r"print\(.*  # (.*)", page)
