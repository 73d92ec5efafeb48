"""The files of a run with anything else in any place: each command ends with one line that names the file, or reads on."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_runs import metric
from traces import Timeline, written

from ta_lint.core.errors import UsageError
from ta_runtime.cli import main
from ta_runtime.runs import Run, RunWriter, schema

ODD = [None, True, 5, -1, 1e300, "²", [], {}, [1], [["x"]], {"a": 1}, 1 << 80]
DEEP = "[" * 200_000
FINDING = {
    "rule": "TA600", "name": "missing-zero-grad", "severity": "error", "message": "it", "path": "train.py", "cell": None,
    "line": 1, "column": 1, "end_line": 1, "end_column": 2, "scope": "", "observer": "both", "verdict": "confirmed",
    "evidence": {"step": 1, "times": 2, "norm": 0.5}, "fingerprint": "0:1", "suppression": None, "baselined": False,
    "related": [{"path": "a.py", "cell": None, "line": 1, "column": 1, "end_line": 1, "end_column": 2, "message": "here"}],
    "fix": None, "url": "",
}  # fmt: skip


def odd(value: Any) -> Iterator[Any]:
    """The document with something else in each of its places, one at a time, and with each of its keys left out."""
    yield from ODD
    if isinstance(value, dict):
        for key, item in value.items():
            yield {name: other for name, other in value.items() if name != key}
            yield from ({**value, key: other} for other in odd(item))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from ([*value[:index], other, *value[index + 1 :]] for other in odd(item))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with a run in `run` and the same one in `again`."""
    monkeypatch.chdir(tmp_path)
    for name in ("run", "again"):
        run = RunWriter(tmp_path / name, rank=0, world_size=1)
        run.metrics.add([metric(step) for step in range(3)])
        run.records.add([{"step": 0, "kind": "parameter", "name": "weight", "order": 0, "digest": "0"}])
        run.flush()
        (tmp_path / name / "findings.json").write_text(json.dumps([FINDING]))
    return tmp_path


COMMANDS = (
    ["report", "run"],
    ["diff", "run", "again"],
    ["check", "run"],
    ["infer", "run", "-o", "invariants.json"],
)


def ends(command: list[str], capsys: pytest.CaptureFixture[str], damaged: str = "") -> int:
    """A command ends, and without a defect: with status 2 it says in a line what is the matter."""
    capsys.readouterr()
    status = main(command)
    err = capsys.readouterr().err
    assert "Traceback" not in err, err
    if status == 2:
        *_, line = err.splitlines()
        assert line.startswith("ta-runtime: error: "), err
    if damaged:
        assert status == 2
        assert line.startswith(f"ta-runtime: error: {damaged}: "), line
    return status


@pytest.mark.parametrize("name", ["rank0.json", "findings.json"])
def test_json_with_anything_in_any_place_is_damaged_or_harmless(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A12: such as a command that is a number."""
    path = folder / "run" / name
    whole = json.loads(path.read_text())
    refused = 0
    for other in odd(whole):
        path.write_text(json.dumps(other))
        if (told := complaint()) is not None:
            refused += 1
            assert told.startswith("run")
            assert "\n" not in told
        else:
            ends(COMMANDS[0], capsys)
            ends(COMMANDS[1], capsys)
    assert refused > 40


def complaint() -> str | None:
    """Why the run cannot be read, if it cannot."""
    try:
        assert Run("run").findings is not None
    except UsageError as error:
        return str(error)
    return None


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize(
    "content", ['{"rank": 0, "schema": 1, "command": 5}', DEEP, "{", '{"a": ' * 50_000], ids=len
)
def test_each_command_names_the_file_that_is_damaged(
    command: list[str], content: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A12: also one of 200,000 brackets."""
    (folder / "run" / "rank0.json").write_text(content)
    ends(command, capsys, damaged="run/rank0.json")
    if command[0] == "report":
        (folder / "run" / "rank0.json").write_text((folder / "again" / "rank0.json").read_text())
        (folder / "run" / "findings.json").write_text(content)
        ends(command, capsys, damaged="run/findings.json")


@pytest.mark.parametrize("table", ["metrics", "records"])
def test_tables_with_another_type_or_nothing_in_any_column_are_damaged_or_harmless(
    table: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A12: of a part written by somebody else."""
    path = folder / "run" / table / "rank0-00000.parquet"
    whole = pq.read_table(path)
    rows = whole.num_rows
    for index, field in enumerate(whole.schema):
        for column in (pa.nulls(rows, field.type), pa.array([b"\xff"] * rows), pa.array([["a"]] * rows)):
            other = whole.set_column(index, field.name, column)
            pq.write_table(other.replace_schema_metadata(whole.schema.metadata), path)
            if column.type != field.type or field.name in schema.NEEDED[table]:
                with pytest.raises(
                    UsageError, match=f"^run/{table}/rank0-00000.parquet: damaged, or no part of a run: "
                ):
                    Run("run").read(table)
            ends(COMMANDS[0], capsys)
            ends(COMMANDS[1], capsys)


@pytest.mark.parametrize("table", ["metrics", "records", "events"])
def test_a_flipped_bit_or_a_missing_end_is_damage_that_is_named_or_harmless(
    table: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """D15: of a table on a disk that fails."""
    if table == "events":
        make = Timeline()
        steps = [
            [make("gradient", name, step=step, digest=step) for name in ("a", "b")] for step in range(20)
        ]
        written(folder / "run", {0: [event for step in steps for event in step]})
    path = folder / "run" / table / "rank0-00000.parquet"
    whole = path.read_bytes()
    drawn = random.Random(0)
    commands = COMMANDS[2:] if table == "events" else COMMANDS[:2]
    named = 0
    for number in range(60):
        data = bytearray(whole)
        if number % 4:
            data[drawn.randrange(len(data))] ^= 1 << drawn.randrange(8)
        else:
            del data[drawn.randrange(len(data)) if number else 0 :]
        path.write_bytes(data)
        for command in commands:
            named += ends(command, capsys) == 2
    assert named > 15
