"""The folder of a run: what is written comes back, whatever becomes of the writer, and what is no run is refused."""

import json
import os
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import commands
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ta_lint.core.errors import UsageError
from ta_runtime.runs import Run, RunWriter, schema, writer
from ta_runtime.storage import shown


def metric(step: int, value: float = 0.5, key: str = "step/loss") -> dict[str, object]:
    return {"step": step, "key": key, "value": value}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """That of a run of two ranks with two parts each."""
    for rank in range(2):
        run = RunWriter(tmp_path / "run", rank=rank, world_size=2)
        for step in range(2):
            run.metrics.add([metric(step, rank + step / 2)])
            run.flush()
    return tmp_path / "run"


# -- what is written comes back -------------------------------------------------------------------------------


def test_metrics_come_back_by_rank_and_step(tmp_path: Path) -> None:
    for rank in (10, 2):
        run = RunWriter(tmp_path, rank=rank, world_size=11)
        for step in (1, 0, 2):
            run.metrics.add([metric(step, step / 4), metric(step, float("inf"), "step/gradient_norm")])
            run.flush()
    rows = Run(tmp_path).metrics.to_pylist()
    assert [(row["rank"], row["step"]) for row in rows[::2]] == [
        (rank, n) for rank in (2, 10) for n in range(3)
    ]
    assert [row["value"] for row in rows if row["key"] == "step/loss"] == [0.0, 0.25, 0.5] * 2
    assert {row["value"] for row in rows if row["key"] == "step/gradient_norm"} == {float("inf")}


def test_records_come_back_as_they_were_taken_with_null_for_what_was_left_out(tmp_path: Path) -> None:
    run = RunWriter(tmp_path)
    taken = [
        {
            "step": 0,
            "kind": "parameter",
            "order": 0,
            "name": "b",
            "shape": [2, 3],
            "values": b"\0\1",
            "blocks": [-1],
        },
        {"step": 0, "kind": "environment", "order": 0, "name": "HOME", "text": "/root"},
        {"step": 0, "kind": "parameter", "order": 1, "name": "a", "shape": [], "nan": 1.0},
    ]
    run.records.add(taken)
    run.flush()
    records = Run(tmp_path).records
    assert records.schema.equals(schema.RECORDS, check_metadata=True)
    nothing = dict.fromkeys(schema.RECORDS.names) | {"rank": 0}
    assert records.to_pylist() == [
        nothing | {key: value for key, value in row.items() if key in nothing} for row in taken
    ]


def test_records_come_back_by_the_numbers_of_their_ranks_and_parts(tmp_path: Path) -> None:
    for rank in (10, 9):
        run = RunWriter(tmp_path, rank=rank)
        run.records._parts = 99_999
        for step in range(2):
            run.records.add([{"step": step, "kind": "parameter", "name": f"{rank}.{step}"}])
            run.flush()
    records = Run(tmp_path).records
    assert len({str(chunk.dictionary) for chunk in records["name"].chunks}) == 1
    assert list(zip(records["rank"].to_pylist(), records["step"].to_pylist(), strict=True)) == [
        (9, 0), (9, 1), (10, 0), (10, 1)
    ]  # fmt: skip


def test_each_rank_says_who_wrote_its_files(folder: Path) -> None:
    about = Run(folder).about
    assert sorted(about) == [0, 1]
    assert about[1]["world_size"] == 2
    assert about[1]["command"] == sys.orig_argv
    assert about[1].keys() == {
        "schema",
        "tool",
        "trackers",
        "started",
        "command",
        "rank",
        "world_size",
        "python",
        "torch",
        "run",
    }


def test_a_run_of_which_only_another_rank_is_there_is_read(folder: Path) -> None:
    for path in (folder / "rank0.json", *folder.glob("metrics/rank0-*")):
        path.unlink()
    run = Run(folder)
    assert list(run.about) == [1]
    assert run.metrics["value"].to_pylist() == [1.0, 1.5]


def test_a_run_without_a_row_has_empty_tables_and_no_report(tmp_path: Path) -> None:
    RunWriter(tmp_path).begin()
    run = Run(tmp_path)
    assert (run.metrics.num_rows, run.records.num_rows, run.findings) == (0, 0, None)
    assert run.metrics.schema.equals(schema.METRICS)


def test_findings_are_those_of_all_ranks_each_once(folder: Path) -> None:
    assert Run(folder).findings is None
    for name, fingerprints in {"findings": "ab", "findings.rank1": "bc", "findings.rank1.old": "x"}.items():
        found = [{"rule": "TA401", "fingerprint": fingerprint} for fingerprint in fingerprints]
        (folder / f"{name}.json").write_text(json.dumps(found))
    found = Run(folder).findings
    assert found is not None
    assert [item["fingerprint"] for item in found] == ["a", "b", "c"]


def test_duckdb_reads_the_folder_as_a_table(folder: Path) -> None:
    query = f"select rank, sum(value) from '{folder}/metrics/*.parquet' where key = 'step/loss' group by all order by all"
    assert duckdb.sql(query).fetchall() == [(0, 0.5), (1, 2.5)]


def test_a_metric_takes_24_bytes_of_memory_when_it_is_read(tmp_path: Path) -> None:
    """As many as its numbers: keys are words of a dictionary, also where each part has its own."""
    run = RunWriter(tmp_path)
    for step in range(100):
        run.metrics.add(
            [metric(step, 0.5, f"gradient/layers.{(step + layer) % 120}.weight/norm") for layer in range(50)]
        )
        if step % 25 == 0:
            run.flush()
    run.flush()
    metrics = Run(tmp_path).metrics
    assert metrics.num_rows == 5000
    assert metrics.nbytes < 5000 * 24 + metrics["key"].num_chunks * 120 * 50


# -- the writer -----------------------------------------------------------------------------------------------


def parts(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("metrics/*"))


def test_rows_wait_for_others_and_are_written_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "ROWS", 3)
    run = RunWriter(tmp_path)
    for step in range(2):
        run.metrics.add([metric(step)])
    assert parts(tmp_path) == []
    run.metrics.add([metric(2), metric(3)])
    run.metrics.add([metric(4)])
    assert parts(tmp_path) == ["rank0-00000.parquet"]
    run.flush()
    run.flush()
    assert parts(tmp_path) == ["rank0-00000.parquet", "rank0-00001.parquet"]
    assert Run(tmp_path).metrics["step"].to_pylist() == [0, 1, 2, 3, 4]


def test_a_row_waits_30_seconds_and_in_a_run_of_ten_days_there_are_not_too_many_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(writer.time, "monotonic", lambda: now)
    run = RunWriter(tmp_path)
    for hundredth in range(3000):
        now = hundredth / 100
        run.metrics.add([metric(hundredth)])
    assert parts(tmp_path) == []
    now = 30.0
    run.metrics.add([metric(3000)])
    assert len(parts(tmp_path)) == 1
    while now < 10 * 24 * 3600:
        now += 15
        run.metrics.add([metric(3001)])
    assert 200 < len(parts(tmp_path)) < 1000


def test_what_a_killed_writer_left_unfinished_is_passed_over(folder: Path) -> None:
    (folder / "metrics" / "rank0-00002.part").write_bytes(b"PAR1")
    assert Run(folder).metrics.num_rows == 4


def test_the_rank_is_the_one_that_is_known_when_the_first_row_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunWriter(tmp_path)
    run.metrics.add([metric(0)])
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")
    run.flush()
    assert Run(tmp_path).about[3]["world_size"] == 4
    assert Run(tmp_path).metrics["rank"].to_pylist() == [3]


def test_a_second_run_goes_to_the_next_folder_and_the_first_stays_as_it_is(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    second = RunWriter(folder, rank=0)
    assert second.folder == folder.with_name(f"{folder.name}-2")
    assert capsys.readouterr().err.endswith(
        f"run holds a run already; this one goes to {shown(second.folder)}\n"
    )
    second.begin()
    assert RunWriter(folder, rank=0).folder == folder.with_name(f"{folder.name}-3")
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert RunWriter(folder, rank=2).folder == folder  # one more rank of the same job


def test_each_rank_of_a_second_run_goes_to_the_next_folder_also_one_that_the_first_had_not(
    folder: Path,
) -> None:
    for path in folder.glob("rank*.json"):
        os.utime(path, (1, 1))
    assert {RunWriter(folder, rank=rank).folder.name for rank in range(4)} == {f"{folder.name}-2"}


def test_a_file_and_what_cannot_be_written_to_are_no_folder_for_a_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="file: is a file; name a folder for the run"):
        RunWriter(tmp_path / "file")
    with pytest.raises(UsageError, match="Not a directory; name another folder for the run"):
        RunWriter(tmp_path / "file" / "run")
    if os.geteuid() != 0:  # to whom all is permitted
        (tmp_path / "closed").mkdir(mode=0o500)
        with pytest.raises(UsageError, match="closed: no permission to write in it"):
            RunWriter(tmp_path / "closed")


def test_of_two_that_begin_in_one_folder_the_second_records_nothing_and_says_so_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = RunWriter(tmp_path), RunWriter(tmp_path)
    for run in (first, second):
        for step in range(2):
            run.metrics.add([metric(step)])
            run.flush()
    assert Run(tmp_path).metrics.num_rows == 2
    told = capsys.readouterr().err
    assert told.count("holds a run already") == 1
    assert told.endswith("; the training goes on, and no more of it is recorded\n")
    assert not second.open


def test_a_folder_that_is_deleted_is_told_once_and_nothing_is_kept_for_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = RunWriter(tmp_path / "run")
    run.metrics.add([metric(0)])
    run.flush()
    for path in sorted((tmp_path / "run").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    (tmp_path / "run").rmdir()
    for step in range(1, 4):
        run.metrics.add([metric(step)])
        run.records.add([{"step": step}])
        run.flush()
    told = capsys.readouterr().err
    assert told.count("cannot record the run in") == told.count("No such file or directory") == 1
    assert not any(run.metrics._columns.values())
    assert not any(run.records._columns.values())
    assert not (tmp_path / "run").exists()


def test_a_full_disk_is_told_once_and_leaves_whole_parts(tmp_path: Path) -> None:
    """Full at 4,000 bytes a file, which is what a limit of the process can do without a disk of its own."""
    (tmp_path / "fill.py").write_text(
        "import random, resource\n"
        "from pathlib import Path\n"
        "from ta_runtime.runs import RunWriter\n"
        "run = RunWriter(Path('run'))\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))\n"
        "for count in (10, 5000, 10):\n"
        "    run.metrics.add([{'step': n, 'key': 'x', 'value': random.random()} for n in range(count)])\n"
        "    run.flush()\n"
        "print('the end')\n"
    )
    ran = commands.python(tmp_path, "fill.py")
    assert (ran.returncode, ran.stdout) == (0, "the end\n")
    [told] = ran.stderr.splitlines()
    assert told.startswith("ta-runtime: cannot record the run in run: ")
    assert "File too large" in told
    assert parts(tmp_path / "run") == ["rank0-00000.parquet"]
    assert Run(tmp_path / "run").metrics.num_rows == 10


@pytest.mark.parametrize("column", ["key", "value"])
def test_ctrl_c_within_a_row_loses_that_row_alone(column: str, tmp_path: Path) -> None:
    class Interrupted(dict[str, object]):
        def get(self, name: str, default: object = None) -> object:
            if name == column:
                raise KeyboardInterrupt
            return super().get(name, default)

    run = RunWriter(tmp_path / "run", rank=0)
    run.metrics.add([metric(0)])
    with pytest.raises(KeyboardInterrupt):
        run.metrics.add([Interrupted(metric(1))])
    run.metrics.add([metric(2)])
    run.flush()
    assert Run(tmp_path / "run").metrics.column("step").to_pylist() == [0, 2]


def test_a_forked_process_writes_nothing(tmp_path: Path) -> None:
    run = RunWriter(tmp_path)
    run.metrics.add([metric(0)])
    if (child := os.fork()) == 0:
        run.metrics.add([metric(1)])
        run.flush()
        os._exit(0)
    os.waitpid(child, 0)
    assert not list(tmp_path.iterdir())
    run.flush()
    assert Run(tmp_path).metrics["step"].to_pylist() == [0]


# -- the reader -----------------------------------------------------------------------------------------------


def test_what_is_no_run_is_said_with_what_makes_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    makes_one = "; `ta-runtime run --record FOLDER SCRIPT` records one, `ta-runtime collect SCRIPT -o FOLDER` traces one"
    for name, what in {"file": "is a file", "empty": "holds no run", "missing": "no such folder"}.items():
        with pytest.raises(UsageError) as raised:
            Run(tmp_path / name)
        assert str(raised.value) == f"{tmp_path / name}: {what}{makes_one}"


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def flip(path: Path) -> None:
    """One bit of a value."""
    data = bytearray(path.read_bytes())
    data[data.index(struct.pack("<d", 1.0))] ^= 1
    path.write_bytes(data)


def foreign(path: Path) -> None:
    pq.write_table(pa.table({"step": [1], "value": [1.0]}), path)


def lacking(path: Path) -> None:
    pq.write_table(
        pa.table({"step": [1]}, schema=pa.schema([("step", pa.int64())], metadata={"ta": "1"})), path
    )


def empty(path: Path) -> None:
    path.write_bytes(b"")


def newer(path: Path) -> None:
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({"ta": str(schema.VERSION + 1)}), path)


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (truncate, "damaged, or no part of a run: "),
        (flip, "damaged, or no part of a run: "),
        (empty, "damaged, or no part of a run: "),
        (lacking, "damaged, or no part of a run: "),
        (foreign, "not written by ta-runtime; delete it to read the rest of the run"),
        (
            newer,
            "written by a newer ta-runtime, with schema 2 where this one reads 1; update by `pip install -U",
        ),
    ],
)
def test_a_part_that_cannot_be_read_is_named_with_what_to_do(
    spoil: Callable[[Path], None], told: str, folder: Path
) -> None:
    part = folder / "metrics" / "rank1-00000.parquet"
    spoil(part)
    with pytest.raises(UsageError) as raised:
        _ = Run(folder).metrics
    text = str(raised.value)
    assert text.startswith(f"{part}: {told}")
    assert "delete it to read the rest of the run" in text or "update by" in text
    assert "\n" not in text
    if "delete it" in text:
        part.unlink()
        assert Run(folder).metrics.num_rows == 3


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("rank0.json", "", "damaged, or cannot be read: "),
        ("rank0.json", "[]", "damaged, or not of a run: "),
        ("rank0.json", '{"rank": "0", "schema": 1}', "damaged, or not of a run: "),
        (
            "rank0.json",
            '{"rank": 0, "schema": 7}',
            "written by a newer ta-runtime, with schema 7 where this one reads 1",
        ),
        ("rank0.json", '{"rank": 0}', "not written by ta-runtime; "),
        ("findings.json", "{", "damaged, or cannot be read: "),
        ("findings.json", "[1]", "damaged, or no report: "),
        ("findings.json", "[" * 200_000, "damaged, or cannot be read: "),
    ],
)
def test_a_file_that_says_nothing_of_a_run_is_named(name: str, content: str, told: str, folder: Path) -> None:
    (folder / name).write_text(content)
    with pytest.raises(UsageError) as raised:
        _ = Run(folder).findings
    assert str(raised.value).startswith(f"{folder / name}: {told}")


def test_other_files_in_the_folder_are_left_alone(folder: Path) -> None:
    for name in ("notes.txt", "rank0.json.orig", "metrics/rank0-00000.parquet~", "metrics/other.parquet"):
        (folder / name).write_text("mine")
    assert Run(folder).metrics.num_rows == 4


def test_to_read_a_run_loads_no_torch_and_without_pyarrow_it_is_said_what_to_install(folder: Path) -> None:
    read = (
        "import sys\n"
        "from pathlib import Path\n"
        "from ta_runtime.runs import Run\n"
        "print(Run(Path(sys.argv[1])).metrics.num_rows, 'torch' in sys.modules)\n"
    )
    ran = commands.python(folder, "-c", read, str(folder))
    assert (ran.stdout, ran.stderr) == ("4 False\n", "")
    ran = commands.python(folder, "-c", "import sys; sys.modules['pyarrow'] = None\n" + read, str(folder))
    remedy = "install it by `pip install 'ta-lint[record]'`"
    assert f"UsageError: a run is recorded and read by pyarrow: there is no pyarrow; {remedy}" in ran.stderr
