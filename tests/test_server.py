"""`ta-lint server`, driven over its standard input and output by a client of the protocol."""

import json
import os
import random
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from editor import Editor, edited, opened
from lsprotocol import types

from ta_lint.cli import main

BUGGY = """\
import torch

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters())
optimizer.step
"""
FIXED = BUGGY.replace("optimizer.step\n", "optimizer.step()\n")

SAFE = """\
import torch

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def train():
    total = 0.0
    for batch in range(10):
        optimizer.zero_grad()
        loss = model(torch.randn(8, 4)).square().mean()
        loss.backward()
        optimizer.step()
        total += loss
    print(f"{total:.3f}")
"""

DOCUMENT_CHANGES = {"workspaceEdit": {"documentChanges": True}}


@pytest.fixture(scope="module")
def long_open(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    with opened(tmp_path_factory.mktemp("workspace"), workspace=DOCUMENT_CHANGES) as editor:
        yield editor


@pytest.fixture
def editor(long_open: Editor, tmp_path: Path) -> Editor:
    """An editor on a project of its own; the server goes on, as in a day of work."""
    (tmp_path / "pyproject.toml").write_text("[tool.ta]\n")
    long_open.turn_to(tmp_path)
    return long_open


@pytest.fixture
def own_editor(tmp_path: Path) -> Iterator[Editor]:
    """An editor with a server of its own, which may end."""
    with opened(tmp_path, workspace=DOCUMENT_CHANGES) as editor:
        yield editor


def codes(diagnostics: list[types.Diagnostic]) -> list[str]:
    return [str(diagnostic.code) for diagnostic in diagnostics]


def text_edits(action: types.CodeAction, uri: str) -> list[types.TextEdit]:
    """The edits of an action, which are all of one text."""
    assert action.edit is not None
    if action.edit.changes:
        assert list(action.edit.changes) == [uri]
        return list(action.edit.changes[uri])
    assert action.edit.document_changes is not None
    (change,) = action.edit.document_changes
    assert isinstance(change, types.TextDocumentEdit)
    assert change.text_document.uri == uri
    return [edit for edit in change.edits if isinstance(edit, types.TextEdit)]


def fixed_by_the_command(folder: Path, text: str, *arguments: str) -> str:
    path = folder / "by_command.py"
    path.write_bytes(text.encode())
    main(["check", "--fix", "--quiet", "--exit-zero", *arguments, str(path)])
    return path.read_bytes().decode()


# What is shown


def test_it_says_what_it_can_do(editor: Editor) -> None:
    capabilities = editor.initialized.capabilities
    assert editor.initialized.server_info is not None
    assert editor.initialized.server_info.name == "ta-lint"
    assert isinstance(capabilities.code_action_provider, types.CodeActionOptions)
    assert capabilities.code_action_provider.code_action_kinds == ("quickfix", "source.fixAll.ta-lint")
    assert capabilities.hover_provider
    assert capabilities.diagnostic_provider is not None


def test_an_open_file_shows_its_findings(editor: Editor) -> None:
    (diagnostic,) = editor.open("train.py", BUGGY)
    assert diagnostic.code == "TA603"
    assert diagnostic.source == "ta-lint"
    assert diagnostic.severity is types.DiagnosticSeverity.Error
    assert diagnostic.message == "`optimizer.step` is not called and does nothing: add `()`"
    assert diagnostic.range == types.Range(types.Position(4, 0), types.Position(4, 14))
    assert diagnostic.code_description is not None
    assert diagnostic.code_description.href.endswith("/rules/TA603-uncalled-method.md")


def test_findings_come_and_go_with_what_is_written(editor: Editor) -> None:
    assert codes(editor.open("train.py", "import torch\n")) == []
    assert codes(editor.write("train.py", BUGGY)) == ["TA603"]
    assert codes(editor.write("train.py", FIXED)) == []


def test_a_file_that_is_closed_shows_nothing(editor: Editor) -> None:
    editor.open("train.py", BUGGY)
    editor.close("train.py")
    editor.wait(lambda: not editor.published[editor.uri("train.py")].diagnostics)


def test_what_is_on_disk_does_not_matter(editor: Editor) -> None:
    (editor.folder / "train.py").write_text(FIXED)
    assert codes(editor.open("train.py", BUGGY)) == ["TA603"]
    assert (editor.folder / "train.py").read_text() == FIXED


def test_other_files_of_the_project_count_as_they_were_saved_last(editor: Editor) -> None:
    model = "from torch import nn\n\nclass Net(nn.Module):\n    def forward(self, x):\n        return x.softmax(-1)\n"
    train = "from net import Net\nfrom torch import nn\n\nmodel, loss = Net(), nn.CrossEntropyLoss()\nprint(loss(model(x), y))\n"
    (editor.folder / "net.py").write_text(model)
    assert "TA406" in codes(editor.open("train.py", train))
    (editor.folder / "net.py").write_text(model.replace(".softmax(-1)", ""))
    assert "TA406" not in codes(editor.write("train.py", train + "\n"))


def test_of_fast_changes_only_the_last_is_looked_at(editor: Editor) -> None:
    editor.open("train.py", BUGGY)
    seen: list[int | None] = []
    for number in range(30):
        editor.change("train.py", types.TextDocumentContentChangeWholeDocument(BUGGY + "\n" * number))
        seen.append(editor.published[editor.uri("train.py")].version)
    assert codes(editor.shown("train.py")) == ["TA603"]
    assert editor.published[editor.uri("train.py")].version == 31
    assert len(set(seen)) < 15


def test_a_stub_and_a_file_never_saved_are_linted_and_other_languages_are_not(editor: Editor) -> None:
    assert codes(editor.open("train.pyi", "import torch\n\nx: torch.qint9 = torch.symeig(1)\n")) == ["TA900"]
    assert codes(editor.open("untitled:Untitled-1", BUGGY)) == ["TA603"]
    editor.open_unanswered("notes.txt", BUGGY, language="plaintext")
    editor.open_unanswered("git:/train.py?old", BUGGY)
    editor.open("last.py", BUGGY)
    assert {editor.uri("notes.txt"), "git:/train.py?old"}.isdisjoint(editor.published)


def test_a_syntax_error_is_shown_where_it_is(editor: Editor) -> None:
    (diagnostic,) = editor.open("train.py", BUGGY + "\ndef broken(:\n")
    assert diagnostic.code == "TA001"
    assert diagnostic.range.start.line == 6
    assert "invalid syntax" in diagnostic.message
    assert codes(editor.write("train.py", BUGGY)) == ["TA603"]


def test_suppressed_and_baselined_findings_are_not_shown(
    editor: Editor, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert codes(editor.open("train.py", BUGGY.replace("step\n", "step  # noqa: TA603\n"))) == []
    monkeypatch.chdir(editor.folder)
    (editor.folder / "pyproject.toml").write_text("[tool.ta]\nbaseline = 'known.json'\n")
    (editor.folder / "old.py").write_text(BUGGY)
    assert main(["check", "--update-baseline", "--quiet"]) == 0
    assert codes(editor.open("old.py", BUGGY)) == []
    assert codes(editor.write("old.py", BUGGY + "model.eval\n")) == ["TA603"]


def test_unused_suppressions_and_deprecated_names_are_marked_as_such(editor: Editor) -> None:
    (unused,) = editor.open("train.py", "import torch  # noqa: TA603\n")
    assert (unused.code, unused.tags) == ("TA002", (types.DiagnosticTag.Unnecessary,))
    (deprecated,) = editor.open("old.py", "import torch\n\nprint(torch.cuda.amp.GradScaler())\n")
    assert (deprecated.code, deprecated.tags) == ("TA901", (types.DiagnosticTag.Deprecated,))


def test_other_places_come_with_a_finding_to_a_client_that_shows_them(tmp_path: Path) -> None:
    with opened(tmp_path, textDocument={"publishDiagnostics": {"relatedInformation": True}}) as editor:
        (diagnostic,) = editor.open("train.py", SAFE)
        assert diagnostic.code == "TA206"
        assert diagnostic.related_information is not None
        (related,) = diagnostic.related_information
        assert related.location.uri == editor.uri("train.py")
        assert related.location.range.start.line == 9


@pytest.mark.parametrize(("encoding", "start"), [("utf-16", 12), ("utf-8", 14), ("utf-32", 11), (None, 12)])
def test_columns_count_as_the_client_counts(tmp_path: Path, encoding: str | None, start: int) -> None:
    text = BUGGY.replace("optimizer.step\n", "x = '🔥ab'; optimizer.step\n")
    general = {"positionEncodings": [encoding]} if encoding else {}
    with opened(tmp_path, general=general) as editor:
        (diagnostic,) = editor.open("train.py", text)
        assert diagnostic.range.start == types.Position(4, start)
        action = editor.actions("train.py", diagnostic.range)["TA603: call it (unsafe)"]
        edits = text_edits(action, editor.uri("train.py"))
        assert edited(text, edits, f"{encoding or 'utf-16'}{'-le' * (encoding != 'utf-8')}").endswith(
            "step()\n"
        )


def test_small_changes_are_put_where_the_client_means_them(editor: Editor) -> None:
    """Form feeds and line separators end no line of the protocol, and some characters are two units wide."""
    random.seed(7)
    head, body, tail = (
        BUGGY.replace("optimizer.step\n", "'''"),
        "\x0c \u2028 🔥🔥\x85\nword",
        "'''; optimizer.step\n",
    )
    editor.open("train.py", head + body + tail)
    above = head.count("\n")
    for number in range(200):
        lines = body.split("\n")
        line = random.randrange(len(lines))
        columns = sorted(random.choices(range(len(lines[line]) + 1), k=2))
        before = len("'''") if line == 0 else 0
        start, end = (before + len(lines[line][:column].encode("utf-16-le")) // 2 for column in columns)
        new = random.choice(["", "🔥", "a\nb", "\x0c", "x"])
        where = types.Range(types.Position(above + line, start), types.Position(above + line, end))
        editor.change("train.py", types.TextDocumentContentChangePartial(where, new))
        lines[line] = lines[line][: columns[0]] + new + lines[line][columns[1] :]
        body = "\n".join(lines)
        if number % 20 == 19:
            (diagnostic,) = editor.shown("train.py")
            last = (head + body).split("\n")[-1]
            column = len((last + "'''; ").encode("utf-16-le")) // 2
            assert diagnostic.range.start == types.Position((head + body).count("\n"), column)


# Settings


def test_settings_of_the_project_hold(editor: Editor) -> None:
    (editor.folder / "pyproject.toml").write_text("[tool.ta]\nignore = ['TA603']\n")
    assert codes(editor.open("train.py", BUGGY)) == []
    (editor.folder / "sub").mkdir()
    (editor.folder / "sub" / "pyproject.toml").write_text("[tool.ta]\n")
    assert codes(editor.open("sub/train.py", BUGGY)) == ["TA603"]


def test_an_excluded_file_shows_nothing(editor: Editor) -> None:
    (editor.folder / "pyproject.toml").write_text("[tool.ta]\nextend-exclude = ['third_party']\n")
    assert codes(editor.open("third_party/train.py", BUGGY)) == []
    assert codes(editor.open(".venv/lib/site-packages/x/train.py", BUGGY)) == []
    assert codes(editor.open("train.py", BUGGY)) == ["TA603"]


def test_settings_that_change_hold_at_once_where_the_client_watches_them(tmp_path: Path) -> None:
    watching = {"didChangeWatchedFiles": {"dynamicRegistration": True}}
    with opened(tmp_path, workspace=watching) as editor:
        editor.wait(lambda: editor.registered)
        assert editor.registered[0].method == "workspace/didChangeWatchedFiles"
        assert codes(editor.open("train.py", BUGGY)) == ["TA603"]
        (tmp_path / "pyproject.toml").write_text("[tool.ta]\nignore = ['TA603']\n")
        editor.files_changed("pyproject.toml")
        editor.wait(lambda: not editor.published[editor.uri("train.py")].diagnostics)


def test_settings_that_change_hold_with_the_next_change_anyway(editor: Editor) -> None:
    assert codes(editor.open("train.py", BUGGY)) == ["TA603"]
    (editor.folder / "pyproject.toml").write_text("[tool.ta]\nignore = ['TA603']\n")
    assert codes(editor.write("train.py", BUGGY)) == []
    (editor.folder / "ta-lint.toml").write_text("ignore = ['TA401']\n")
    assert codes(editor.write("train.py", BUGGY)) == ["TA603"]


def test_wrong_settings_are_a_message_said_once_and_no_end(editor: Editor) -> None:
    (editor.folder / "pyproject.toml").write_text("[tool.ta]\nignores = ['TA603']\n")
    assert codes(editor.open("train.py", BUGGY)) == []
    assert codes(editor.write("train.py", BUGGY + "\n")) == []
    assert codes(editor.open("other.py", BUGGY)) == []
    (message,) = editor.messages
    assert "has no key 'ignores'; did you mean ignore?" in message
    (editor.folder / "pyproject.toml").write_text("[tool.ta]\n")
    assert codes(editor.write("train.py", BUGGY)) == ["TA603"]


# Other files


HELPER = "def clear(optimizer):\n    optimizer.zero_grad()\n"
USER = """\
import torch
from helpers import clear

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    clear(optimizer)
    model(torch.randn(8, 4)).square().mean().backward()
    optimizer.step()
"""


def test_an_open_file_is_linted_again_when_one_that_it_depends_on_is_saved(editor: Editor) -> None:
    helper = editor.folder / "helpers.py"
    helper.write_text(HELPER)
    assert codes(editor.open("train.py", USER)) == []
    editor.open("helpers.py", HELPER)
    helper.write_text(HELPER.replace("optimizer.zero_grad()", "pass"))
    editor.save("helpers.py")
    editor.wait(lambda: codes(list(editor.published[editor.uri("train.py")].diagnostics)) == ["TA600"])
    helper.write_text(HELPER)
    editor.save("helpers.py")
    editor.wait(lambda: not editor.published[editor.uri("train.py")].diagnostics)


def test_an_open_file_is_linted_again_when_one_that_it_looked_for_appears_or_goes(editor: Editor) -> None:
    empty = "def clear(optimizer):\n    pass\n"
    assert codes(editor.open("train.py", USER)) == []
    (editor.folder / "helpers.py").write_text(empty)
    editor.files_changed("helpers.py")
    editor.wait(lambda: codes(list(editor.published[editor.uri("train.py")].diagnostics)) == ["TA600"])
    (editor.folder / "helpers.py").unlink()
    editor.files_changed("helpers.py")
    editor.wait(lambda: not editor.published[editor.uri("train.py")].diagnostics)


def test_open_files_are_linted_again_when_another_branch_is_checked_out(editor: Editor) -> None:
    """Many files change at once, outside of the editor; an open one that is gone stays open."""
    other = USER.replace("from helpers", "from models.helpers")
    (editor.folder / "helpers.py").write_text(HELPER)
    assert codes(editor.open("helpers.py", HELPER)) == []
    assert codes(editor.open("train.py", USER)) == []
    assert codes(editor.open("other.py", other)) == []
    (editor.folder / "helpers.py").unlink()
    (editor.folder / "models").mkdir()
    (editor.folder / "models/helpers.py").write_text("def clear(optimizer):\n    pass\n")
    editor.files_changed("helpers.py", "models/helpers.py")
    editor.wait(lambda: codes(list(editor.published[editor.uri("other.py")].diagnostics)) == ["TA600"])
    (editor.folder / "models/helpers.py").unlink()
    (editor.folder / "models").rmdir()
    (editor.folder / "helpers.py").write_text("def clear(optimizer):\n    pass\n")
    editor.files_changed("helpers.py", "models/helpers.py")
    editor.wait(lambda: codes(list(editor.published[editor.uri("train.py")].diagnostics)) == ["TA600"])
    editor.wait(lambda: not editor.published[editor.uri("other.py")].diagnostics)


def test_an_open_file_is_not_linted_again_for_one_that_is_saved_as_it_was(editor: Editor) -> None:
    for name, text in (("helpers.py", HELPER), ("other.py", "import torch\n")):
        (editor.folder / name).write_text(text)
    editor.open("train.py", USER)
    editor.open("other.py", "import torch\n")
    editor.published.clear()
    editor.save("other.py")
    editor.save("helpers.py")
    assert codes(editor.open("late.py", BUGGY)) == ["TA603"]  # by then what the server was to do is done
    assert editor.uri("train.py") not in editor.published


# Actions


def test_the_action_of_a_finding_does_what_the_command_does(
    editor: Editor, capsys: pytest.CaptureFixture[str]
) -> None:
    for text, arguments, title in (
        (SAFE, (), "TA206: detach it"),
        (BUGGY, ("--unsafe-fixes",), "TA603: call it (unsafe)"),
    ):
        (diagnostic,) = editor.open("train.py", text)
        action = editor.actions("train.py", diagnostic.range)[title]
        assert action.kind == types.CodeActionKind.QuickFix
        assert bool(action.is_preferred) is not title.endswith("(unsafe)")
        assert list(action.diagnostics or []) == [diagnostic]
        result = edited(text, text_edits(action, editor.uri("train.py")))
        assert result == fixed_by_the_command(editor.folder, text, *arguments) != text
        assert codes(editor.write("train.py", result)) == []
        editor.close("train.py")


def test_actions_are_about_the_findings_at_the_place(editor: Editor) -> None:
    editor.open("train.py", BUGGY)
    assert editor.actions("train.py", types.Range(types.Position(0, 0), types.Position(0, 3))) == {}
    inside = types.Range(types.Position(4, 3), types.Position(4, 3))
    assert list(editor.actions("train.py", inside)) == ["TA603: call it (unsafe)", "TA603: ignore here"]
    assert editor.actions("train.py", inside, only=["refactor"]) == {}
    assert len(editor.actions("train.py", inside, only=["quickfix"])) == 2


def test_an_edit_names_the_version_that_it_is_for(editor: Editor) -> None:
    editor.open("train.py", "import torch\n")
    editor.write("train.py", BUGGY)
    inside = types.Range(types.Position(4, 3), types.Position(4, 3))
    action = editor.actions("train.py", inside)["TA603: call it (unsafe)"]
    assert action.edit is not None
    assert action.edit.document_changes is not None
    (change,) = action.edit.document_changes
    assert isinstance(change, types.TextDocumentEdit)
    assert change.text_document.version == 2


def test_all_safe_fixes_of_a_file_are_what_the_command_makes(
    editor: Editor, capsys: pytest.CaptureFixture[str]
) -> None:
    other = textwrap.indent(SAFE + "train()\nmodel.eval\n", "    ")
    text = f"{SAFE}\n\ndef other():\n{other}x = 1  # noqa: TA603\n"
    editor.open("train.py", text)
    (action,) = editor.actions("train.py", only=["source.fixAll"]).values()
    assert (action.kind, action.title) == (
        "source.fixAll.ta-lint",
        "ta-lint: fix all safe problems of this file",
    )
    edits = text_edits(action, editor.uri("train.py"))
    assert len(edits) == 3
    assert edited(text, edits) == fixed_by_the_command(editor.folder, text)
    (editor.folder / "pyproject.toml").write_text("[tool.ta]\nunsafe-fixes = true\n")
    (action,) = editor.actions("train.py", only=["source"]).values()
    assert action.title == "ta-lint: fix all problems of this file"
    result = edited(text, text_edits(action, editor.uri("train.py")))
    assert result == fixed_by_the_command(editor.folder, text, "--unsafe-fixes")
    assert editor.write("train.py", result) == []
    assert editor.actions("train.py", only=["source.fixAll"]) == {}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_all_fixes_keep_line_ends_and_a_missing_last_one(
    editor: Editor, end: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = SAFE.replace("\n", end) + "total -= loss  # noqa: TA603"
    editor.open("train.py", text)
    (action,) = editor.actions("train.py", only=["source.fixAll"]).values()
    result = edited(text, text_edits(action, editor.uri("train.py")))
    assert result == fixed_by_the_command(editor.folder, text) != text


def test_a_client_that_can_ask_later_gets_the_edit_when_the_user_has_chosen(tmp_path: Path) -> None:
    later = {"codeAction": {"resolveSupport": {"properties": ["edit"]}}}
    with opened(tmp_path, textDocument=later) as editor:
        editor.open("train.py", SAFE)
        (action,) = editor.actions("train.py", only=["source.fixAll"]).values()
        assert action.edit is None
        edits = text_edits(editor.resolve(action), editor.uri("train.py"))
        assert codes(editor.write("train.py", edited(SAFE, edits))) == []


@pytest.mark.parametrize(
    ("statement", "silenced"),
    [
        ("optimizer.step", "optimizer.step  # noqa: TA603"),
        ("optimizer.step  ", "optimizer.step  # noqa: TA603"),
        ("optimizer.step  # soon", "optimizer.step  # soon  # noqa: TA603"),
        ("optimizer.step  # noqa: E501 - long", "optimizer.step  # noqa: E501, TA603 - long"),
        (
            "if model: optimizer.step; print(\n    1)",
            "if model: optimizer.step; print(  # noqa: TA603\n    1)",
        ),
        ("optimizer.step; print('''\n''')", "optimizer.step; print('''\n''')  # noqa: TA603"),
        ("optimizer.step; x = 1 + \\\n    2", "optimizer.step; x = 1 + \\\n    2  # noqa: TA603"),
    ],
)
def test_a_finding_is_ignored_by_a_comment_where_one_can_stand(
    editor: Editor, statement: str, silenced: str
) -> None:
    text = BUGGY.replace("optimizer.step\n", statement + "\n")
    (diagnostic,) = editor.open("train.py", text)
    action = editor.actions("train.py", diagnostic.range)["TA603: ignore here"]
    assert not action.is_preferred
    result = edited(text, text_edits(action, editor.uri("train.py")))
    assert result == BUGGY.replace("optimizer.step\n", silenced + "\n")
    assert editor.write("train.py", result) == []


def test_a_syntax_error_cannot_be_ignored(editor: Editor) -> None:
    (diagnostic,) = editor.open("train.py", BUGGY + "\ndef broken(:\n")
    assert editor.actions("train.py", diagnostic.range) == {}


# Hover


def test_the_pointer_on_a_finding_shows_what_the_rule_means(editor: Editor) -> None:
    editor.open("train.py", BUGGY)
    page = editor.hover("train.py", 4, 5)
    assert page is not None
    assert page.startswith("### [TA603: uncalled-method](https://")
    assert "Add the parentheses." in page
    assert "#### Bad\n```python\n" in page
    assert "#### Good\n```python\n" in page
    assert "severity =" not in page
    assert editor.hover("train.py", 2, 1) is None


def test_the_pointer_on_a_suppression_shows_the_rule_it_names(editor: Editor) -> None:
    line = (
        "adam = torch.optim.Adam([], weight_decay=1); model.eval  # noqa: E501, TA603, adam-with-weight-decay"
    )
    assert editor.open("train.py", BUGGY.replace("optimizer.step", line)) == []
    assert (editor.hover("train.py", 4, line.index("TA603") + 2) or "").startswith("### [TA603: ")
    assert (editor.hover("train.py", 4, line.rindex("weight")) or "").startswith("### [TA401: ")
    assert editor.hover("train.py", 4, line.index("E501") + 2) is None


# Notebooks


def cells_shown(editor: Editor, name: str, count: int) -> list[list[str]]:
    return [codes(editor.shown(editor.cell(name, number))) for number in range(count)]


def test_a_notebook_shows_findings_in_its_cells(editor: Editor) -> None:
    first, second = BUGGY.split("\noptimizer", 1)
    editor.open_notebook("demo.ipynb", "%matplotlib inline\n" + first, "", "optimizer" + second + "print(1)")
    assert cells_shown(editor, "demo.ipynb", 3) == [[], [], ["TA603"]]
    (diagnostic,) = editor.shown(editor.cell("demo.ipynb", 2))
    assert diagnostic.range.start == types.Position(1, 0)
    editor.write_cell("demo.ipynb", 2, "optimizer" + second.replace(".step", ".step()"))
    assert cells_shown(editor, "demo.ipynb", 3) == [[], [], []]


def test_actions_in_a_notebook_edit_the_cell(editor: Editor) -> None:
    cells = ["import torch\nmodel = torch.nn.Linear(4, 1)", "model.train\nprint(model)"]
    editor.open_notebook("demo.ipynb", *cells)
    cell = editor.cell("demo.ipynb", 1)
    (diagnostic,) = editor.shown(cell)
    actions = editor.actions(cell, diagnostic.range)
    assert (
        edited(cells[1], text_edits(actions["TA603: call it (unsafe)"], cell))
        == "model.train()\nprint(model)"
    )
    assert edited(cells[1], text_edits(actions["TA603: ignore here"], cell)).startswith(
        "model.train  # noqa: TA603\n"
    )
    assert (editor.hover(cell, 0, 2) or "").startswith("### [TA603: ")
    (editor.folder / "pyproject.toml").write_text("[tool.ta]\nunsafe-fixes = true\n")
    (action,) = editor.actions(cell, only=["source.fixAll"]).values()
    assert edited(cells[1], text_edits(action, cell)) == "model.train()\nprint(model)"


def test_a_cell_in_another_language_is_passed_over(editor: Editor) -> None:
    editor.open_notebook("demo.ipynb", "SELECT torch FROM", BUGGY + "print(1)", languages={0: "sql"})
    assert cells_shown(editor, "demo.ipynb", 2) == [[], ["TA603"]]


def test_a_notebook_that_is_open_as_text_shows_findings_on_its_lines(editor: Editor) -> None:
    lines = (BUGGY + "print(1)").splitlines(keepends=True)
    cells: list[dict[str, object]] = [
        {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": lines}
    ]
    text = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)
    (diagnostic,) = editor.open("demo.ipynb", text, language="json")
    assert "optimizer.step" in text.split("\n")[diagnostic.range.start.line]
    (editor.folder / "pyproject.toml").write_text("[tool.ta]\nunsafe-fixes = true\n")
    (action,) = editor.actions("demo.ipynb", diagnostic.range).values()
    result = edited(text, text_edits(action, editor.uri("demo.ipynb")))
    assert result == text.replace("optimizer.step\\n", "optimizer.step()\\n")


# Clients that ask


def test_a_client_that_asks_for_diagnostics_is_not_sent_them_as_well(tmp_path: Path) -> None:
    asking: dict[str, Any] = {"textDocument": {"diagnostic": {}}}
    asking["workspace"] = {"diagnostics": {"refreshSupport": True}}
    with opened(tmp_path, **asking) as editor:
        editor.open_unanswered("train.py", BUGGY)
        assert codes(editor.pulled("train.py")) == ["TA603"]
        assert editor.published == {}
        editor.files_changed("pyproject.toml")
        editor.wait(lambda: editor.refreshed == 1)
        assert editor.pulled("unknown.py") == []


# Bad input, and the end


def test_what_makes_no_sense_does_not_end_it(own_editor: Editor) -> None:
    def message(body: bytes) -> bytes:
        return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)

    for body in (b"{", b"[]", b"3", b'{"jsonrpc": "2.0"}', b'{"jsonrpc": "2.0", "id": 9, "method": "no/such"}',
                 b'{"jsonrpc": "2.0", "id": 8, "method": "textDocument/hover", "params": {"position": 3}}',
                 b'{"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": null}', b"\xff\xfe" * 9):  # fmt: skip
        own_editor.send_bytes(message(body))
    own_editor.change_unknown("never_opened.py")
    assert codes(own_editor.open("train.py", BUGGY)) == ["TA603"]
    beyond = types.Range(types.Position(900, 0), types.Position(901, 7))
    assert own_editor.actions("train.py", beyond) == {}
    assert own_editor.hover("train.py", 900, 900) is None
    for text in (BUGGY + "\x00\n", "# coding: nonsense\n" + BUGGY):
        assert codes(own_editor.write("train.py", text)) == ["TA001"]
    lone = BUGGY + "x = '\ud800'\n"  # cannot be encoded, and the rest is read on
    assert codes(own_editor.write("train.py", lone)) == ["TA603", "TA001"]
    deep = BUGGY + "x = " + "(" * 3000 + "1" + ")" * 3000 + "\n"
    assert codes(own_editor.write("train.py", deep)) == ["TA001"]
    assert codes(own_editor.write("train.py", BUGGY + "x = " + "+".join("1" * 3000) + "\n")) == ["TA603"]
    assert codes(own_editor.write("train.py", BUGGY)) == ["TA603"]
    assert own_editor.leave() == 0


@pytest.mark.parametrize(("how", "status"), [("shutdown", 0), ("eof", 0), ("exit", 1)])
def test_it_ends_when_the_client_leaves(own_editor: Editor, how: str, status: int) -> None:
    own_editor.open("train.py", BUGGY)
    assert own_editor.leave(how) == status
    assert own_editor.logged() == ""


def test_it_ends_at_once_also_while_it_lints(own_editor: Editor) -> None:
    own_editor.open_unanswered("huge.py", BUGGY + "x = model(optimizer)\n" * 200_000)
    assert own_editor.leave("eof") == 0
    assert own_editor.published == {}


def run(*words: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ta_lint", *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, **environment},
    )


def test_without_pygls_it_says_how_to_get_it(tmp_path: Path) -> None:
    (tmp_path / "pygls.py").write_text("raise ModuleNotFoundError('gone', name='pygls')\n")
    ran = run("server", folder=tmp_path, PYTHONPATH=str(tmp_path))
    assert ran.returncode == 2
    assert ran.stderr == (
        "ta-lint: error: server: the module pygls is missing; pip install 'ta-lint[server]'\n"
    )


def test_an_editor_may_say_how_it_talks(tmp_path: Path) -> None:
    assert run("server", "--stdio", folder=tmp_path).returncode == 0
