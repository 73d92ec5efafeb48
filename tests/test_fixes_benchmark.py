"""The benchmark of real fixes: a repository of our own is broken and mended, and what is found of it is counted."""

import json
import subprocess
from pathlib import Path

import fixes as benchmark
import pytest
from corpus import Missing
from fixes import Hunk, Outcome, Place, Verdict

BROKEN = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x):
        x = self.layer(x)
        return nn.functional.softmax(x)
"""
MENDED = BROKEN.replace("softmax(x)", "softmax(x, dim=-1)")
AT_SOFTMAX = {"net.py": [[12, 1, 12, 1]]}


def git(folder: Path, *words: str) -> str:
    command = ["git", "-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false", *words]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def fixed(repository: Path, before: dict[str, str], after: dict[str, str]) -> str:
    """Commit files as they were before a fix, and as it left them; the commit of the fix."""
    for files in (before, after):
        for name, text in files.items():
            (repository / name).parent.mkdir(parents=True, exist_ok=True)
            (repository / name).write_text(text)
        git(repository, "add", ".")
        git(repository, "commit", "-qm", "a state")
    return git(repository, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """That of `somebody/nets`, in a folder of repositories."""
    folder = tmp_path / "repositories" / "somebody+nets"
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    return folder


def row(
    commit: str, rule: str, ranges: dict[str, list[list[int]]], repo: str = "somebody/nets", reason: str = ""
) -> str:
    quoted = json.dumps(ranges).replace('"', '""')
    return f'{repo}\t{commit}\t"{quoted}"\t{rule}\t{reason}\n'


def table(folder: Path, *rows: str) -> Path:
    path = folder / "fixes.tsv"
    path.write_text("repo\tcommit\tranges\trule\treason_class\n" + "".join(rows))
    return path


def outcomes(folder: Path, *rows: str) -> list[Outcome]:
    repositories = folder / "repositories"
    return [benchmark.outcome_of(fix, repositories) for fix in benchmark.read(table(folder, *rows))]


def test_the_tables_count_what_is_found_missed_and_skipped(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = fixed(repository, {"net.py": BROKEN}, {"net.py": MENDED})
    # a tensor from elsewhere may well need no gradient
    unseen = fixed(
        repository, {"draw.py": "import torch\nx = boxes.numpy()\n"}, {"draw.py": "import torch\n"}
    )
    rows = table(
        tmp_path,
        row(seen, "TA418", AT_SOFTMAX),
        row(unseen, "TA506", {"draw.py": [[2, 1, 1, 0]]}, reason="unknown-kind"),
        row("0" * 40, "TA418", AT_SOFTMAX, repo="nobody/nothing"),
        row("1" * 40, "TA418", AT_SOFTMAX),
        row("2" * 40, "none", AT_SOFTMAX),
    )
    result = tmp_path / "result.json"
    command = ["fixes.py", str(repository.parent), "--rows", str(rows), "--json", str(result)]
    monkeypatch.setattr("sys.argv", command)
    assert benchmark.main() == 0
    assert capsys.readouterr().out.splitlines() == [
        f"somebody/nets {seen[:10]} TA418: found: net.py:12",
        f"somebody/nets {unseen[:10]} TA506: missed",
        "nobody/nothing 0000000000 TA418: skipped: no repository",
        "somebody/nets 1111111111 TA418: skipped: no commit 1111111111",
        "somebody/nets 2222222222 none: no rule",
        "",
        "| rule                        | fixes | found before | gone after | found elsewhere |",
        "|-----------------------------|------:|-------------:|-----------:|----------------:|",
        "| TA418 softmax-without-dim   |     1 |            1 |          1 |               0 |",
        "| TA506 numpy-on-graph-tensor |     1 |            0 |          0 |               0 |",
        "| all                         |     2 |            1 |          1 |               0 |",
        "",
        "| silent at first | fixes | found before | gone after | found elsewhere |",
        "|-----------------|------:|-------------:|-----------:|----------------:|",
        "| no              |     1 |            1 |          1 |               0 |",
        "| unknown-kind    |     1 |            0 |          0 |               0 |",
        "| all             |     2 |            1 |          1 |               0 |",
        "",
        "Of 5 fixes, 1 are of bugs that no rule is about, 2 are skipped.",
    ]
    assert [outcome["verdict"] for outcome in json.loads(result.read_text())] == [
        "found", "missed", "skipped", "skipped", "no rule",
    ]  # fmt: skip


def test_a_finding_that_the_fix_leaves_is_not_gone(repository: Path, tmp_path: Path) -> None:
    commit = fixed(repository, {"net.py": BROKEN}, {"net.py": BROKEN.replace("softmax(x)", "softmax(2 * x)")})
    [outcome] = outcomes(tmp_path, row(commit, "TA418", AT_SOFTMAX))
    assert outcome.verdict == Verdict.STAYS


def test_a_finding_in_a_file_that_is_imported_and_goes_with_the_fix_is_found_elsewhere(
    repository: Path, tmp_path: Path
) -> None:
    before = {"train.py": "from nets.net import Net\n", "nets/net.py": BROKEN}
    after = {"train.py": "from nets.net import Net\nprint()\n", "nets/net.py": MENDED}
    commit = fixed(repository, before, after)
    [outcome] = outcomes(tmp_path, row(commit, "TA418", {"train.py": [[1, 0, 2, 1]]}))
    assert (outcome.verdict, outcome.places) == (Verdict.ELSEWHERE, ("nets/net.py:12",))


def test_a_finding_in_a_file_that_imports_the_fixed_one_counts_too(repository: Path, tmp_path: Path) -> None:
    before = {"sizes.py": "SIZE = 4\n", "net.py": f"import sizes\n{BROKEN}"}
    commit = fixed(repository, before, {"sizes.py": "SIZE = 2\n", "net.py": f"import sizes\n{MENDED}"})
    [outcome] = outcomes(tmp_path, row(commit, "TA418", {"sizes.py": [[1, 1, 1, 1]]}))
    assert (outcome.verdict, outcome.places) == (Verdict.ELSEWHERE, ("net.py:13",))


@pytest.mark.parametrize(
    ("text", "after"),
    [
        pytest.param("import net\n", BROKEN, id="that the fix leaves"),
        pytest.param("import sizes\n", MENDED, id="in a file that has nothing to do with it"),
    ],
)
def test_a_finding_elsewhere_names_no_bug(text: str, after: str, repository: Path, tmp_path: Path) -> None:
    before = {"train.py": text, "net.py": BROKEN}
    commit = fixed(repository, before, {"train.py": f"{text}print()\n", "net.py": after})
    [outcome] = outcomes(tmp_path, row(commit, "TA418", {"train.py": [[1, 0, 2, 1]]}))
    assert outcome.verdict == Verdict.MISSED


def test_a_fix_that_adds_its_file_is_missed(repository: Path, tmp_path: Path) -> None:
    commit = fixed(repository, {"other.py": "print()\n"}, {"net.py": MENDED})
    [outcome] = outcomes(tmp_path, row(commit, "TA418", {"net.py": [[0, 0, 1, 12]]}))
    assert outcome.verdict == Verdict.MISSED


def test_a_suppressed_finding_is_none(repository: Path, tmp_path: Path) -> None:
    hidden = BROKEN.replace("softmax(x)", "softmax(x)  # noqa: TA418")
    commit = fixed(repository, {"net.py": hidden}, {"net.py": MENDED})
    [outcome] = outcomes(tmp_path, row(commit, "TA418", AT_SOFTMAX))
    assert outcome.verdict == Verdict.MISSED


def test_what_only_a_run_sees_is_not_linted(tmp_path: Path) -> None:
    [outcome] = outcomes(tmp_path, row("0" * 40, "TA810", AT_SOFTMAX))
    assert outcome.verdict == Verdict.RUN_ONLY


def test_a_program_that_has_modules_like_those_of_python_is_linted_and_not_run(
    repository: Path, tmp_path: Path
) -> None:
    trap = dict.fromkeys(("json.py", "attr.py", "ta_lint.py"), "raise SystemExit('this was imported')\n")
    commit = fixed(repository, {"net.py": BROKEN, **trap}, {"net.py": MENDED})
    [outcome] = outcomes(tmp_path, row(commit, "TA418", AT_SOFTMAX))
    assert outcome.verdict == Verdict.FOUND


CLASS = "class Net:\n    a = 1\n    b = 2\n    c = 3\n    d = 4\n    e = 5\n\n    def forward(self): ...\n"
CALL = "call(\n    1,\n    2,\n    3,\n    4,\n    5,\n    6,\n    7,\n)\nprint()\n" + 9 * "print()\n"


@pytest.mark.parametrize(
    ("hunk", "text", "line", "is_at"),
    [
        pytest.param(Hunk(15, 1, 15, 1), CALL, 12, True, id="three lines away"),
        pytest.param(Hunk(15, 1, 15, 1), CALL, 11, False, id="four lines away"),
        pytest.param(Hunk(10, 0, 11, 1), CALL, 14, True, id="three lines below an insertion"),
        pytest.param(Hunk(8, 1, 8, 1), CALL, 1, True, id="in the call whose argument changes"),
        pytest.param(Hunk(8, 1, 8, 1), CLASS, 1, True, id="at the class whose method changes"),
        pytest.param(Hunk(8, 1, 8, 1), CLASS, 3, False, id="elsewhere in the class"),
        pytest.param(Hunk(15, 1, 15, 1), "print(\n", 12, True, id="what Python cannot read has lines"),
    ],
)
def test_a_finding_is_at_a_fix_if_it_is_near_a_change_or_at_the_head_of_what_changes(
    hunk: Hunk, text: str, line: int, is_at: bool
) -> None:
    finding = Place("a.py", line, line)
    verdict, _ = benchmark.judged({"a.py": (hunk,)}, [finding], [], lambda path: text)
    assert verdict == (Verdict.FOUND if is_at else Verdict.ELSEWHERE)


def test_a_finding_is_at_a_fix_if_it_names_a_place_there() -> None:
    finding = Place("train.py", 50, 50, related=(("net.py", 3, 3),))
    verdict, _ = benchmark.judged({"net.py": (Hunk(3, 1, 3, 1),)}, [finding], [], lambda path: "")
    assert verdict == Verdict.FOUND


def test_a_finding_in_a_file_that_was_renamed_is_not_gone() -> None:
    verdict, _ = benchmark.judged({}, [Place("a.py", 1, 1)], [Place("b.py", 1, 1)], lambda path: "")
    assert verdict == Verdict.MISSED


@pytest.mark.parametrize("inside", ["", "repo", ".git", "repo/.git"])
def test_a_git_directory_may_lie_in_the_folder_of_its_repository(inside: str, tmp_path: Path) -> None:
    folder = tmp_path / inside
    folder.mkdir(parents=True, exist_ok=True)
    git(tmp_path, "init", "-q", "--bare", str(folder))
    assert benchmark.git_directory(tmp_path) == folder


def test_a_table_without_what_is_needed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Missing, match="No such file"):
        benchmark.read(tmp_path / "none.tsv")
    (tmp_path / "other.tsv").write_text("repo\tcommit\na/b\t0\n")
    with pytest.raises(Missing, match="no column 'ranges'"):
        benchmark.read(tmp_path / "other.tsv")


def test_every_bug_that_is_left_has_a_reason() -> None:
    assert benchmark.reason_to_leave("kornia/kornia", "fc0ac03d1a11").startswith("the tables are buffers")
    assert benchmark.reason_to_leave("kornia/kornia", "0" * 40) == ""


def test_the_reasons_are_listed_for_what_is_missed_and_for_what_stays() -> None:
    results = [
        {"repo": "a/b", "commit": "c" * 40, "rule": "TA413", "verdict": verdict, "note": note}
        for verdict, note in (
            ("missed", "why"),
            ("found, and stays", "so"),
            ("missed", ""),
            ("skipped", "no commit"),
        )
    ]
    assert list(benchmark.left(results)) == [
        "- a/b cccccccccc, TA413: why",
        "- a/b cccccccccc, TA413, found, and stays: so",
    ]
