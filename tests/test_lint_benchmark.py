"""`benchmarks/lint.py` computes what its table says: ratios within rounds, samples that share the mix, powers that fit."""

import sys
from itertools import pairwise
from pathlib import Path

import lint
import pytest
from corpus import Missing
from sections import section, write_section
from speed import commands, rows
from speed.growth import PARTS, Sample, divided, fitted, shares
from speed.rows import CLOCK, CPU, Row, compared, shown
from speed.sameness import Comparison, difference
from speed.timing import Command, Run, timed
from speed.trees import Edits


def run(wall_s: float, cpu_s: float = 1.0, peak_mb: float = 100.0) -> Run:
    return Run(wall_s, cpu_s, cpu_s, peak_mb)


def samples(exponent: float, start_s: float, noise: tuple[float, ...] = (1, 1, 1, 1, 1)) -> list[Sample]:
    sizes = [1_200_000 / parts for parts in PARTS]
    return [
        Sample(parts, size, (start_s + 1e-5 * size**exponent) * factor)
        for parts, size, factor in zip(PARTS, sizes, noise, strict=True)
    ]


def test_a_ratio_is_taken_within_a_round() -> None:
    row = Row("parse", "ours", "peer", CLOCK, 0.3, 0.12)
    # the machine became ten times slower: medians of each alone would give 1/11
    figure = compared(row, [run(1.0), run(10.0), run(11.0)], [run(10.0), run(100.0), run(110.0)])
    assert (figure.value, figure.least, figure.most) == pytest.approx((0.1, 0.1, 0.1))
    assert figure.reached == "aim"


def test_a_slow_peer_that_ran_once_is_compared_with_the_run_of_its_round() -> None:
    figure = compared(
        Row("torchfix", "ours", "peer", CLOCK, 1 / 50, 1 / 150), [run(2.0), run(9.0)], [run(200.0)]
    )
    assert figure.value == pytest.approx(1 / 100)
    assert figure.reached == "bar"


@pytest.mark.parametrize(
    ("bar", "aim", "reached"),
    [(0.5, None, "bar"), (0.5, 0.45, "bar"), (0.3, 0.1, "missed"), (None, None, "")],
)
def test_a_row_says_what_it_reaches(bar: float | None, aim: float | None, reached: str) -> None:
    figure = compared(Row("parse", "ours", "peer", CLOCK, bar, aim), [run(5.0)], [run(10.0)])
    assert figure.reached == reached
    assert figure.is_missed == (reached == "missed")


def test_a_row_is_judged_by_what_it_says_and_shows_the_other() -> None:
    waited, worked = run(wall_s=8.0, cpu_s=1.0), run(wall_s=4.0, cpu_s=2.0)
    by_cpu = compared(Row("help", "ours", "peer", CPU, 1.0, None), [waited], [worked])
    by_clock = compared(Row("help", "ours", "peer", CLOCK, 1.0, None), [waited], [worked])
    assert (by_cpu.value, by_cpu.other, by_cpu.ours, by_cpu.is_missed) == (0.5, 2.0, "1 s", False)
    assert (by_clock.value, by_clock.other, by_clock.ours, by_clock.is_missed) == (2.0, 0.5, "8 s", True)


def test_the_peak_is_that_of_the_worst_run() -> None:
    runs = {commands.COLD: [run(1, peak_mb=120), run(1, peak_mb=301)]}
    [figure] = rows.figures({rows.MEMORY}, runs, None)
    assert (figure.value, figure.is_missed) == (301, True)


def test_rows_without_their_commands_are_left_out() -> None:
    runs = {commands.HELP: [run(1)]}
    assert list(rows.figures({"help", "warm"}, runs, None)) == []


def test_every_name_has_its_commands() -> None:
    every = {command for row in rows.ROWS for command in (row.ours, row.peer)}
    assert rows.needed(set(rows.NAMES)) == every
    assert rows.needed({rows.MEMORY}) == {commands.COLD}
    assert every >= commands.SHORT | commands.SLOW


def test_small_ratios_are_shown_as_reciprocals() -> None:
    assert [shown(value) for value in (None, 0.3, 1.05, 1 / 50, 1 / 150)] == [
        "",
        "0.3",
        "1.05",
        "1/50",
        "1/150",
    ]


@pytest.mark.parametrize("exponent", [0.9, 1.0, 1.05, 1.2])
@pytest.mark.parametrize("start_s", [0.0, 0.3])
def test_the_power_and_the_start_up_behind_samples_are_found(exponent: float, start_s: float) -> None:
    growth = fitted(samples(exponent, start_s))
    assert growth.exponent == pytest.approx(exponent, abs=0.002)
    assert growth.start_s == pytest.approx(start_s, abs=0.02)


def test_noise_of_some_hundredths_does_not_hide_a_square() -> None:
    noise = (1.03, 0.98, 1.02, 0.97, 1.03)
    assert fitted(samples(1.0, 0.3, noise)).exponent < 1.1
    assert fitted(samples(2.0, 0.3, noise)).exponent > 1.9


def test_the_start_up_is_never_negative() -> None:
    growth = fitted([Sample(1, size, size**1.5) for size in (1.0, 4.0, 16.0)])
    assert growth.start_s == pytest.approx(0, abs=1e-3)
    bent = fitted([Sample(1, 100, 0.1), Sample(1, 200, 2.0), Sample(1, 400, 4.0)])
    assert bent.start_s >= 0


def test_parts_are_of_about_one_size_and_in_order() -> None:
    assert shares([1] * 6, 3) == [0, 0, 1, 1, 2, 2]
    assert shares([5, 1, 1, 1, 1, 1], 2) == [0, 1, 1, 1, 1, 1]
    assert all(larger % smaller == 0 for larger, smaller in pairwise(PARTS))


def test_samples_hold_every_file_once_and_are_the_same_each_time(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "package").mkdir(parents=True)
    for number in range(40):
        (tree / "package" / f"m{number}.py").write_text("pass\n" * (number + 1))
    first, second = (divided(tree, 4, tmp_path / name) for name in ("first", "second"))
    held = [[path.relative_to(folder) for path in sorted(folder.rglob("*.py"))] for folder in first]
    assert sorted(path for part in held for path in part) == sorted(
        path.relative_to(tree) for path in tree.rglob("*.py")
    )
    assert all(5 <= len(part) <= 15 for part in held)
    assert held == [[path.relative_to(folder) for path in sorted(folder.rglob("*.py"))] for folder in second]


def test_each_edit_changes_one_training_file_and_all_can_be_undone(tmp_path: Path) -> None:
    texts = {"a.py": "loss.backward()\n", "b.py": "optimizer.step()\n", "plain.py": "pass\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    edits = Edits(tmp_path)
    seen = dict(texts)
    for _ in range(5):
        edits.edit()
        now = {name: (tmp_path / name).read_text() for name in texts}
        changed = [name for name in texts if now[name] != seen[name]]
        assert len(changed) == 1
        assert changed != ["plain.py"]
        seen = now
    edits.undo()
    assert {name: (tmp_path / name).read_text() for name in texts} == texts


def test_logs_differ_where_a_line_does_or_is_missing() -> None:
    assert difference(b"a\nb\n", b"a\nb\n") is None
    assert difference(b"a\nb\n", b"a\nc\n") == "line 2: plain b'b\\n', fast b'c\\n'"
    assert difference(b"a\n", b"a\nb\n") == "line 2: plain None, fast b'b\\n'"
    assert difference(b"a\n", b"a") == "line 1: plain b'a\\n', fast b'a'"


def test_a_command_that_fails_is_no_measurement(tmp_path: Path) -> None:
    code = "import sys; print('no such flag', file=sys.stderr); sys.exit(2)"
    with pytest.raises(Missing, match="broken: exit status 2: no such flag"):
        timed(Command("broken", (sys.executable, "-c", code), tmp_path, (0, 1)), tmp_path)


def test_a_linter_that_crashed_is_not_one_that_found_something(tmp_path: Path) -> None:
    with pytest.raises(Missing, match="ZeroDivisionError"):
        timed(Command("broken", (sys.executable, "-c", "1 / 0"), tmp_path, (0, 1)), tmp_path)


def test_a_command_is_prepared_before_it_is_timed(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    code = f"import pathlib, sys; sys.exit(not pathlib.Path({str(ready)!r}).exists())"
    measured = timed(Command("ready", (sys.executable, "-c", code), tmp_path, prepare=ready.touch), tmp_path)
    assert 0 < measured.user_s <= measured.cpu_s
    assert measured.peak_mb > 1


def test_what_a_command_imports_is_seen(tmp_path: Path) -> None:
    python = [sys.executable, "-c"]
    assert commands.heavy_imports(Command("light", (*python, "import json"), tmp_path)) == []
    assert commands.heavy_imports(Command("heavy", (*python, "import libcst.tool"), tmp_path)) == ["libcst"]


def test_a_section_of_a_document_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    document = tmp_path / "page.md"
    other = "<!-- made by docs/other.py -->\nkept\n<!-- end -->\n"
    document.write_text(f"Before.\n<!-- made by me.py -->\nold\n<!-- end -->\n{other}")
    write_section(document, "me.py", "new\\1\n")
    assert section(document, "me.py") == "new\\1\n"
    assert document.read_text() == f"Before.\n<!-- made by me.py -->\nnew\\1\n<!-- end -->\n{other}"
    with pytest.raises(ValueError, match="not enough values"):
        write_section(document, "nobody.py", "new\n")


def test_the_document_has_a_section_for_the_table() -> None:
    assert section(lint.DOCUMENT, lint.MAKER) is not None


def test_the_report_says_what_differs_and_fails() -> None:
    report = lint.Report("today", "a machine", {"ta-lint": "1.0"}, 0.0)
    assert not report.is_missed
    report.same = [
        Comparison("timm", "all in the cache", None),
        Comparison("timm", "two processes", "line 7: ..."),
    ]
    assert report.is_missed
    assert "differs from that of a run without gates: two processes: line 7" in "\n".join(  # type: ignore[unreachable]
        lint.rendered(report)
    )
    report.same = report.same[:1]
    assert not report.is_missed
    assert "byte for byte" in "\n".join(lint.rendered(report))
    report.imports = {"ta-lint --help": ["libcst"]}
    assert report.is_missed
