"""`--add-noqa`: comments against findings, where they are read, and not a byte else."""

import json
from pathlib import Path

import pytest
from test_cli import ADAM, BUGGY, Command, project, settings, ta_lint

__all__ = ["project", "ta_lint"]  # fixtures


def added(
    project: Path, ta_lint: Command, text: str | bytes, *arguments: str, name: str = "train.py"
) -> bytes:
    """The file after comments were added against what TA401 and TA900 find; after that nothing is found."""
    (project / name).write_bytes(text.encode() if isinstance(text, str) else text)
    words = ("--select=TA401,TA900,TA002", *arguments)
    assert ta_lint("check", "--add-noqa", *words) == 0
    said, told = ta_lint.out, ta_lint.err
    assert ta_lint("check", *words) == 0, ta_lint.out
    ta_lint.out, ta_lint.err = said, told
    return (project / name).read_bytes()


def test_each_finding_gets_a_comment(project: Path, ta_lint: Command) -> None:
    text = f"import torch\na = {ADAM}\nstate = torch.symeig(p)  # ours\n"
    assert added(project, ta_lint, text).decode() == (
        f"import torch\na = {ADAM}  # noqa: TA401\nstate = torch.symeig(p)  # ours  # noqa: TA900\n"
    )
    assert ta_lint.out == "Added 2 suppressions in 1 file.\n"
    assert ta_lint.err == ""


def test_a_comment_of_several_lines_stands_where_it_is_read(project: Path, ta_lint: Command) -> None:
    text = (
        "import torch\n"
        "a = torch.optim.Adam(\n    torch.nn.Linear(2, 2).parameters(),\n    weight_decay=0.1,\n)\n"
        'b = f"""\n{torch.symeig(p)}\n"""\n'
    )
    assert added(project, ta_lint, text).decode() == (
        "import torch\n"
        "a = torch.optim.Adam(  # noqa: TA401\n    torch.nn.Linear(2, 2).parameters(),\n    weight_decay=0.1,\n)\n"
        'b = f"""\n{torch.symeig(p)}\n"""  # noqa: TA900\n'
    )


def test_no_comment_stands_behind_a_backslash_and_others_get_theirs(project: Path, ta_lint: Command) -> None:
    text = (
        "import torch\n"
        "a = torch.optim.Adam(net.parameters(), weight_decay=0.1), \\\n"
        "    torch.symeig(p)\n"
        "b = torch.symeig(p)\n"
    ).replace("net", "torch.nn.Linear(2, 2)")
    after = added(project, ta_lint, text).decode()
    assert [line.partition("  # noqa: ")[2] for line in after.splitlines()] == [
        "",
        "",
        "TA401, TA900",
        "TA900",
    ]
    assert ta_lint.out == "Added 3 suppressions in 1 file.\n"


def test_what_a_comment_says_already_stays(project: Path, ta_lint: Command) -> None:
    line = f"a = {ADAM}; b = torch.symeig(p)"
    for comment, then in {
        "": "  # noqa: TA401, TA900",
        "  # noqa: E501": "  # noqa: E501, TA401, TA900",
        "  # noqa: TA401 - the paper has it": "  # noqa: TA401, TA900 - the paper has it",
        "  # noqa": "  # noqa",
    }.items():
        text = f"import torch\n{line}{comment}\n"
        assert added(project, ta_lint, text).decode() == f"import torch\n{line}{then}\n"


@pytest.mark.parametrize(
    "text",
    [
        BUGGY.replace("\n", "\r\n").encode(),
        BUGGY.rstrip("\n").encode(),
        b"\xef\xbb\xbf" + BUGGY.encode(),
        f"# -*- coding: latin-1 -*-\n# \xe9\n{BUGGY}".encode("latin-1"),
        f"{BUGGY}\tx = 1\n".replace("\tx", "if x:\n\tx").encode(),
        f"import torch\n\x0cif x:\n    a = {ADAM}   \n".replace("0.1)   ", "0.1)").encode(),
    ],
    ids=["CRLF", "no end of line", "BOM", "Latin 1", "tab", "form feed"],
)
def test_every_other_byte_stays(project: Path, ta_lint: Command, text: bytes) -> None:
    after = added(project, ta_lint, text)
    assert after != text
    assert after.replace(b"  # noqa: TA401", b"") == text


def test_once_more_changes_nothing(project: Path, ta_lint: Command) -> None:
    first = added(project, ta_lint, BUGGY)
    assert added(project, ta_lint, first) == first
    assert ta_lint.out == "Added 0 suppressions in 0 files.\n"


def test_a_notebook_gets_them_in_its_cells(project: Path, ta_lint: Command) -> None:
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["# Title"]},
        {
            "cell_type": "code",
            "execution_count": 1,
            "metadata": {},
            "outputs": [],
            "source": ["%matplotlib inline\n", "import torch\n", f"a = {ADAM}"],
        },
    ]
    text = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}, indent=1)
    after = added(project, ta_lint, text, name="demo.ipynb").decode()
    assert after == text.replace("weight_decay=0.1)", "weight_decay=0.1)  # noqa: TA401")


def test_suppressed_and_accepted_findings_get_none(project: Path, ta_lint: Command) -> None:
    (project / "train.py").write_text(BUGGY)
    ta_lint("check", "--select=TA401", "--baseline=known.json", "--update-baseline")
    settings(
        project, "select = ['TA4']\nbaseline = 'known.json'\n[tool.ta.per-file-ignores]\n'old.py' = ['TA401']"
    )
    (project / "old.py").write_text(BUGGY)
    assert ta_lint("check", "--add-noqa") == 0
    assert (project / "train.py").read_text() == (project / "old.py").read_text() == BUGGY
    assert ta_lint.out == "Added 0 suppressions in 0 files.\n"


def test_notes_get_one_where_they_are_shown(project: Path, ta_lint: Command) -> None:
    model = "import torch\nm = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8))\n"
    (project / "model.py").write_text(model)
    ta_lint("check", "--select=TA400", "--add-noqa")
    assert (project / "model.py").read_text() == model
    ta_lint("check", "--select=TA400", "--add-noqa", "--show-notes")
    assert (project / "model.py").read_text() == model.replace("8))", "8))  # noqa: TA400")


def test_what_no_comment_suppresses_is_told(project: Path, ta_lint: Command) -> None:
    broken = "import torch\nx = (\n"
    (project / "broken.py").write_text(broken)
    assert ta_lint("check", "--add-noqa") == 0
    assert (project / "broken.py").read_text() == broken
    assert ta_lint.err.startswith("ta-lint: warning: broken.py:2:")
    assert ta_lint.err.endswith(": no comment suppresses TA001\n")


def test_a_file_that_cannot_be_written_is_told_and_the_others_are(project: Path, ta_lint: Command) -> None:
    (project / "train.py").write_text(BUGGY)
    (project.parent / "theirs.py").write_text(BUGGY)
    (project / "link.py").symlink_to("../theirs.py")
    assert ta_lint("check", "--select=TA401", "--add-noqa") == 2
    assert "link.py is a link out of the project" in ta_lint.err
    assert ta_lint.out == "Added 1 suppression in 1 file.\n"
    assert (project.parent / "theirs.py").read_text() == BUGGY


@pytest.mark.parametrize("other", ["--fix", "--diff", "--update-baseline", "--output=x", "--watch", "-"])
def test_it_stands_alone(project: Path, ta_lint: Command, other: str) -> None:
    assert ta_lint("check", "--add-noqa", other) == 2
    assert "not together with" in ta_lint.err
