"""Fixes change what they name and no other byte, stop when nothing is left, and never make a file that does not parse."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import libcst as cst
import pytest

from ta_lint import checks, commands, fixing
from ta_lint.checks import Check
from ta_lint.checks.gate import Gate
from ta_lint.cli import main
from ta_lint.commands.check import fix as fix_command
from ta_lint.commands.check.files import Chosen
from ta_lint.core.config import Configs, Options
from ta_lint.core.finding import Applicability, Finding, TextEdit
from ta_lint.engine import lint_file
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.file import File
from ta_lint.fixing import Fixed, fix_file
from ta_lint.syntax.edits import (
    ProposedFix,
    add_argument,
    call_method,
    insert_line_after,
    insert_line_before,
    remove_argument,
    remove_statement,
    replace,
    replace_with_atom,
    unwrap,
    wrap,
)

Make = Callable[[FileFacts], Iterator[Suspicion]]

UNCALLED = """\
import torch

model = torch.nn.Linear(4, 1)
model.eval
"""


def fixed(data: bytes | str, folder: Path, *select: str, accepted: frozenset[str] = frozenset()) -> Fixed:
    path = folder / "train.py"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    options = Options(select=list(select) or ["TA603"], unsafe_fixes=True)
    return fix_file(File(path, "train.py", Configs(options, folder).root_config), accepted)


@pytest.fixture
def proposing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Make], None]]:
    """Puts a function in the place of the check of TA603, whose fixes are unsafe."""
    load = checks.load

    def put(check: Make) -> None:
        proposed = Check("TA603", Gate(()), check, None)
        monkeypatch.setattr(checks, "load", lambda rule: proposed if rule == "TA603" else load(rule))
        checks.enabled.cache_clear()

    yield put
    checks.enabled.cache_clear()


def calls(module: FileFacts, name: str) -> list[cst.Call]:
    return [call for call in module.tree.all(cst.Call) if module.code(call.func) == name]


def each(name: str, fix: Callable[[FileFacts, cst.Call], ProposedFix | None]) -> Make:
    """Suspects every call of a name, and fixes it as told."""

    def check(module: FileFacts) -> Iterator[Suspicion]:
        for call in calls(module, name):
            yield Suspicion(call, "it is suspicious", fix=fix(module, call))

    return check


# -- bytes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"import torch\r\nloss.backward\r\nx = 1\r\n", b"import torch\r\nloss.backward()\r\nx = 1\r\n"),
        (
            b"import torch\nloss.backward\r\nx = '''\r\n\n'''\r",
            b"import torch\nloss.backward()\r\nx = '''\r\n\n'''\r",
        ),
        (b"\xef\xbb\xbfimport torch\nloss.backward\n", b"\xef\xbb\xbfimport torch\nloss.backward()\n"),
        (
            b"# -*- coding: latin-1 -*-\nimport torch\nx = '\xe9'; loss.backward  # \xfc\n",
            b"# -*- coding: latin-1 -*-\nimport torch\nx = '\xe9'; loss.backward()  # \xfc\n",
        ),
        (b"import torch\nif x:\n\t  loss.backward\n", b"import torch\nif x:\n\t  loss.backward()\n"),
        (b"import torch\nloss.backward", b"import torch\nloss.backward()"),
        (
            b"import torch\n\x0c\nloss.backward\n\n\x0c\n",
            b"import torch\n\x0c\nloss.backward()\n\n\x0c\n",
        ),
        (
            "import torch\n'😀é'; loss.backward  \n".encode(),
            "import torch\n'😀é'; loss.backward()  \n".encode(),
        ),
    ],
    ids=["crlf", "mixed", "bom", "latin-1", "tabs", "no final newline", "form feed", "astral"],
)
def test_every_other_byte_stays(before: bytes, after: bytes, tmp_path: Path) -> None:
    result = fixed(before, tmp_path)
    assert result.after == after
    assert result.count == 1


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_new_lines_end_as_those_around_them(
    newline: str, tmp_path: Path, proposing: Callable[[Make], None]
) -> None:
    proposing(
        each(
            "step",
            lambda module, call: (
                ProposedFix("", (insert_line_after(module.tree, call, "a(\n    b\n)"),), ("import copy",))
                if "a(" not in module.source.text
                else None
            ),
        )
    )
    text = newline.join(["import torch", "for x in y:", "\tstep()", "z = 1", ""])
    expected = [
        "import copy",
        "",
        "import torch",
        "for x in y:",
        "\tstep()",
        "\ta(",
        "\t    b",
        "\t)",
        "z = 1",
        "",
    ]
    assert fixed(text, tmp_path).after.decode() == newline.join(expected)


def test_a_line_after_the_last_keeps_the_end_of_the_file(
    tmp_path: Path, proposing: Callable[[Make], None]
) -> None:
    def move(module: FileFacts, call: cst.Call) -> ProposedFix | None:
        step = calls(module, "step")[0]
        if module.tree.before(step, call):
            return None
        edits = (insert_line_after(module.tree, step, "clear()"), remove_statement(module.tree, call))
        return ProposedFix("move it", edits)

    proposing(each("clear", move))
    before = "import torch\nwith a:\n    clear()\n    step()"
    assert fixed(before, tmp_path).after.decode() == "import torch\nwith a:\n    step()\n    clear()"


def test_an_encoding_that_would_not_give_the_same_bytes_back_is_left_alone(tmp_path: Path) -> None:
    data = b"# coding: utf-7\nimport torch\nx = '+AGEAYg-'\nloss.backward\n"
    result = fixed(data, tmp_path)
    assert result.after == data
    assert "would not give the same bytes back" in result.complaints[0]


# -- edits of nodes -------------------------------------------------------------------------------------------


def test_what_is_detached_is_the_tensor_and_no_number_beside_it(tmp_path: Path) -> None:
    program = """
import torch

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
weighted = torch.zeros(1)
for x in [torch.ones(2, 4)] * 9:
    optimizer.zero_grad()
    loss = model(x).mean()
    loss.backward()
    optimizer.step()
    weighted.mul_(0.9).add_(loss, alpha=0.1)
"""
    assert b"add_(loss.detach(), alpha=0.1)" in fixed(program, tmp_path, "TA206").after


@pytest.mark.parametrize(
    ("make", "before", "after"),
    [
        (lambda m, c: add_argument(c, "z=1"), "f()", "f(z=1)"),
        (lambda m, c: add_argument(c, "z=1"), "f(a, b,)", "f(a, b, z=1,)"),
        (lambda m, c: add_argument(c, "z=1"), "f(\n    a,\n    b=(2),\n)", "f(\n    a,\n    b=(2),\n    z=1,\n)"),
        (lambda m, c: add_argument(c, "z=1"), "f(x for x in y)", None),
        (lambda m, c: add_argument(c, "z=1"), "f(a, **k)", None),
        (lambda m, c: remove_argument(c, c.args[0]), "f(a, b)", "f(b)"),
        (lambda m, c: remove_argument(c, c.args[-1]), "f(\n    a,\n    b,\n)", "f(\n    a,\n)"),
        (lambda m, c: remove_argument(c, c.args[0]), "f((a))", "f()"),
        (lambda m, c: remove_argument(c, c.args[0]), "f(a,  # why\n  b)", None),
        (lambda m, c: replace(c, "g"), "x = (f(a)) + 1", "x = (g) + 1"),
        (lambda m, c: replace_with_atom(c, "g"), "x = (( f(a) )) + 1", "x = g + 1"),
        (lambda m, c: replace_with_atom(c, "g"), "x = (y, (f(a)))", "x = (y, g)"),
        (lambda m, c: replace_with_atom(c, "g"), "x = not(f(a))", "x = not(g)"),
        (lambda m, c: replace_with_atom(c, "g"), "x = (\n    f(a)\n)", "x = (\n    g\n)"),
        (lambda m, c: insert_line_before(m.tree, c, "new"), "if x:\n    f()", "if x:\n    new\n    f()"),
        (lambda m, c: insert_line_before(m.tree, c, "new"), "if x:\n    # why\n    f()", "if x:\n    new\n    # why\n    f()"),
        (lambda m, c: insert_line_before(m.tree, c, "new"), "a\n# b\n\n# why\n# so\nf()", "a\n# b\n\nnew\n# why\n# so\nf()"),
        (lambda m, c: insert_line_before(m.tree, c, "@new"), "# why\ndef g(x=f()): pass", "# why\n@new\ndef g(x=f()): pass"),
        (lambda m, c: insert_line_before(m.tree, c, "new"), "a  # why\nf()", "a  # why\nnew\nf()"),
        (lambda m, c: insert_line_before(m.tree, c, "new"), "if x: f()", None),
        (lambda m, c: insert_line_before(m.tree, c, "new"), "a; f()", None),
        (lambda m, c: insert_line_before(m.tree, c, "new"), "if a:\n    b\nelif f():\n    d", None),
        (lambda m, c: insert_line_before(m.tree, c, "new"), "@d\n# c\ndef g(x=f()): pass", "new\n@d\n# c\ndef g(x=f()): pass"),
        (lambda m, c: insert_line_after(m.tree, c, "new"), "for x in f():\n    a\n    b\nc", "for x in f():\n    a\n    b\nnew\nc"),
        (lambda m, c: remove_statement(m.tree, c), "a\nf(\n  b\n)\nc", "a\nc"),
        (lambda m, c: remove_statement(m.tree, c), "f();\nc", "c"),
        (lambda m, c: remove_statement(m.tree, c), "if x:\n    f()\nc", None),
        (lambda m, c: remove_statement(m.tree, c), "a\nf()  # why", None),
        (lambda m, c: remove_statement(m.tree, c), "a; f()", None),
        (lambda m, c: remove_statement(m.tree, c), "# above\nf()\n# below", "# above\n# below"),
    ],
)  # fmt: skip
def test_an_edit_does_what_it_says_or_is_not_made(
    make: Callable[[FileFacts, cst.Call], object],
    before: str,
    after: str | None,
    tmp_path: Path,
    proposing: Callable[[Make], None],
) -> None:
    def fix(module: FileFacts, call: cst.Call) -> ProposedFix | None:
        if "new" in module.source.text or "z=1" in module.source.text or call is not calls(module, "f")[0]:
            return None
        if module.source.text == f"import torch\n{after}\n":
            return None
        edit = make(module, call)
        return ProposedFix("edit it", (edit,)) if edit is not None else None  # type: ignore[arg-type]

    proposing(each("f", fix))
    result = fixed(f"import torch\n{before}\n", tmp_path)
    assert result.after.decode() == f"import torch\n{before if after is None else after}\n"
    assert not result.complaints


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("y = f(x)", "y = x"),
        ("y = g(f(a + b, 1))", "y = g(a + b)"),
        ("y = -f(a + b)", "y = -(a + b)"),
        ("y = f(a + b).c", "y = (a + b).c"),
        ("y = f((a + b))", "y = (a + b)"),
        ("y = f(a\n      - b)", "y = (a\n      - b)"),
        ("y = (f(g(\n  1), 2))", "y = (g(\n  1))"),
        ("y = f(x,  # why\n      1)", "y = f(x,  # why\n      1)"),
    ],
)
def test_what_is_unwrapped_means_the_same(
    before: str, after: str, tmp_path: Path, proposing: Callable[[Make], None]
) -> None:
    proposing(each("f", lambda _, call: ProposedFix("", unwrap(call, call.args[0].value))))
    assert fixed(f"import torch\n{before}\n", tmp_path).after.decode() == f"import torch\n{after}\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [("f(x)", "f(x.d())"), ("f(a.b[0](1))", "f(a.b[0](1).d())"), ("f(a + b)", "f((a + b).d())"), ("f(1)", "f((1).d())")],
)  # fmt: skip
def test_a_method_is_called_on_the_whole_expression(
    before: str, after: str, tmp_path: Path, proposing: Callable[[Make], None]
) -> None:
    def fix(module: FileFacts, call: cst.Call) -> ProposedFix | None:
        return (
            None if ".d()" in module.source.text else ProposedFix("", call_method(call.args[0].value, ".d()"))
        )

    proposing(each("f", fix))
    assert fixed(f"import torch\n{before}\n", tmp_path).after.decode() == f"import torch\n{after}\n"


# -- imports --------------------------------------------------------------------------------------------------


def copying(module: FileFacts, call: cst.Call) -> ProposedFix | None:
    spelled = module.spelled("copy.deepcopy", at=call)
    if spelled is None or module.code(call.args[0].value).startswith(spelled[0]):
        return None
    return ProposedFix("copy", wrap(call.args[0].value, f"{spelled[0]}(", ")"), spelled[1])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import torch", "import copy\n\nimport torch"),
        ("import os\nimport torch", "import copy\nimport os\nimport torch"),
        ('"""Doc."""\nfrom __future__ import annotations\nimport torch', '"""Doc."""\nfrom __future__ import annotations\nimport copy\n\nimport torch'),
        ("#!/usr/bin/python\n# torch\n\ntry:\n    import x\nexcept E:\n    x = 1", "#!/usr/bin/python\n# torch\n\nimport copy\n\ntry:\n    import x\nexcept E:\n    x = 1"),
        ("# torch", "# torch\nimport copy\n"),
        ("from copy import deepcopy as dc\nimport torch", None),
        ("import torch\ncopy = 1", None),
    ],
)  # fmt: skip
def test_an_import_is_added_once_where_imports_begin(
    before: str, after: str | None, tmp_path: Path, proposing: Callable[[Make], None]
) -> None:
    proposing(each("f", copying))
    result = fixed(f"{before}\nf(a)\nf(b)\n", tmp_path)
    if "as dc" in before:
        assert result.after.decode() == f"{before}\nf(dc(a))\nf(dc(b))\n"
    elif after is None:
        assert result.after == result.before
    else:
        assert result.after.decode() == f"{after}\nf(copy.deepcopy(a))\nf(copy.deepcopy(b))\n"


# -- what is fixed --------------------------------------------------------------------------------------------


def test_suppressed_and_accepted_findings_are_not_fixed(tmp_path: Path) -> None:
    text = "import torch\na.backward  # noqa: TA603\nb.backward\nc.backward\n"
    accepted = fixed(text.replace("c.", "d."), tmp_path).file
    (tmp_path / "train.py").write_text(text)
    _, known, _ = lint_file(accepted)
    result = fixed(text, tmp_path, accepted=frozenset({known.fingerprint}))
    assert result.after.decode() == "import torch\na.backward  # noqa: TA603\nb.backward\nc.backward()\n"


def test_twins_of_an_accepted_finding_stay_since_they_would_take_its_number(tmp_path: Path) -> None:
    text = "import torch\nb.backward\nb.backward\n"
    file = fixed(text.replace("b.backward", "b"), tmp_path).file
    (tmp_path / "train.py").write_text(text)
    _, second = lint_file(file)
    assert not fixed(text, tmp_path, accepted=frozenset({second.fingerprint})).changes


def test_of_two_fixes_that_overlap_the_second_waits_for_the_next_round(
    tmp_path: Path, proposing: Callable[[Make], None]
) -> None:
    proposing(each("f", lambda _, call: ProposedFix("", unwrap(call, call.args[0].value))))
    result = fixed("import torch\ny = f(f(f(x)))\n", tmp_path)
    assert result.after.decode() == "import torch\ny = x\n"
    assert result.count == 3


def test_a_fix_that_would_break_the_file_is_dropped_and_the_others_are_made(
    tmp_path: Path, proposing: Callable[[Make], None]
) -> None:
    proposing(
        each(
            "f",
            lambda module, call: ProposedFix(
                "", (replace(call, module.code(call.args[0].value).strip("'")),)
            ),
        )
    )
    result = fixed("import torch\nf('a')\nf(')')\nf('break')\nf('b')\n", tmp_path)
    assert result.after.decode() == "import torch\na\nf(')')\nf('break')\nb\n"
    assert result.complaints == (
        "train.py:3:1: the fix of TA603 would break the file; it was not made",
        "train.py:4:1: the fix of TA603 would break the file; it was not made",
    )
    assert [finding.site.line for finding in result.findings] == [3, 4]


def test_a_fix_that_brings_itself_again_ends(tmp_path: Path, proposing: Callable[[Make], None]) -> None:
    proposing(each("f", lambda _, call: ProposedFix("", wrap(call.args[0].value, "(", ")"))))
    result = fixed("import torch\nf(x)\n", tmp_path)
    assert result.count == fixing.ROUNDS
    assert result.complaints == ("train.py: fixes of TA603 still bring new ones after 10 rounds",)


def test_a_second_run_changes_nothing(tmp_path: Path) -> None:
    first = fixed(UNCALLED, tmp_path)
    assert first.changes
    assert not fixed(first.after, tmp_path).changes


def test_a_file_that_cannot_be_read_is_reported_and_left(tmp_path: Path) -> None:
    result = fixed(b"import torch\nloss.backward\n\0", tmp_path, "TA603", "TA001")
    assert not result.changes
    assert [finding.rule for finding in result.findings] == ["TA001"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1  # noqa: TA600", "x = 1"),
        ("x = 1  # noqa: TA600, E501 why", "x = 1  # noqa: E501 why"),
        ("x = 1  # type: ignore  # noqa: TA999", "x = 1  # type: ignore"),
        ("x = 1  # noqa: TA999 # type: ignore", "x = 1  # type: ignore"),
        ("x = 1  # noqa: TA998, TA999: because", "x = 1  # because"),
        ("if x:\n    # ta: noqa: TA999\n    pass", "if x:\n    pass"),
    ],
)
def test_an_unused_suppression_goes_and_the_rest_of_the_comment_stays(
    before: str, after: str, tmp_path: Path
) -> None:
    result = fixed(f"import torch\n{before}\n", tmp_path, "TA002", "TA600")
    assert result.after.decode() == f"import torch\n{after}\n"


# -- settings -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "applicability"),
    [
        ("", Applicability.UNSAFE),
        ("extend-safe-fixes = ['uncalled-method']", Applicability.SAFE),
        ("extend-safe-fixes = ['TA603']\nextend-unsafe-fixes = ['TA6']", Applicability.SAFE),
        ("extend-safe-fixes = ['TA6']\nextend-unsafe-fixes = ['TA603']", Applicability.UNSAFE),
        ("fixable = ['TA4']", None),
        ("unfixable = ['loop']", None),
        ("fixable = ['TA603']\nunfixable = ['ALL']", Applicability.UNSAFE),
    ],
)
def test_settings_say_what_may_be_fixed_and_what_is_safe(
    settings: str, applicability: Applicability | None, tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.ta]\n{settings}\n")
    (finding,) = lint_once(tmp_path)
    assert (finding.fix.applicability if finding.fix is not None else None) == applicability


def lint_once(folder: Path) -> list[Finding]:
    (folder / "train.py").write_text(UNCALLED)
    config = Configs(Options(select=["TA603"]), folder).root_config
    return lint_file(File(folder / "train.py", "train.py", config))


# -- the command ----------------------------------------------------------------------------------------------


class Command:
    """`ta-lint check` in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str) -> int:
        status = main(["check", *arguments])
        self.out, self.err = self._capsys.readouterr()
        return status


@pytest.fixture
def check(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command, in a project with three files: two unsafe fixes in one, a safe one in another."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[tool.ta]\nselect = ['TA002', 'TA600', 'TA603']\n")
    (tmp_path / "a.py").write_bytes(UNCALLED.replace("\n", "\r\n").encode() + b"loss.backward")
    (tmp_path / "b c.py").write_text("import torch\nx = 'é'  # noqa: TA600\n", encoding="utf-8")
    (tmp_path / "d.py").write_text("import torch\n")
    return Command(capsys)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.py")}


def test_without_fix_the_report_says_what_it_would_do(check: Command, tmp_path: Path) -> None:
    before = contents(tmp_path)
    assert check("--format=concise") == 1
    assert check.out.endswith("[*] 1 fixable with --fix (2 more with --unsafe-fixes)\n")
    assert "b c.py:2:10: TA002 [*] note:" in check.out
    assert "a.py:4:1: TA603 error:" in check.out
    check("--format=concise", "--unsafe-fixes")
    assert "a.py:4:1: TA603 [*] error:" in check.out
    assert check.out.endswith("[*] 3 fixable with --fix\n")
    assert contents(tmp_path) == before


def test_fix_makes_the_safe_fixes_and_reports_the_rest(check: Command, tmp_path: Path) -> None:
    assert check("--fix", "--format=concise") == 1
    assert (tmp_path / "b c.py").read_text(encoding="utf-8") == "import torch\nx = 'é'\n"
    assert check.out.endswith(
        "Fixed 1 finding in 1 file.\nFound 2 errors in 1 file.\n2 fixable with --fix --unsafe-fixes\n"
    )
    assert check("--fix", "--unsafe-fixes") == 0
    assert check.out == "Fixed 2 findings in 1 file.\nAll checks passed.\n"
    assert check("--fix", "--unsafe-fixes", "--exit-non-zero-on-fix") == 0
    assert check.out == "All checks passed.\n"


def test_a_fixed_file_can_fail_the_run(check: Command) -> None:
    assert check("--fix", "--unsafe-fixes", "--exit-non-zero-on-fix") == 1


def test_machines_get_their_report_alone(check: Command) -> None:
    assert check("--fix", "--unsafe-fixes", "--format=json") == 0
    assert check.out == "[]\n"
    assert check.err == "Fixed 3 findings in 2 files.\n"


@pytest.mark.parametrize("program", ["patch", "git"])
def test_a_diff_applies_to_give_what_fix_gives(check: Command, tmp_path: Path, program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    before = contents(tmp_path)
    assert check("--diff", "--unsafe-fixes", "--output=changes.diff") == 1
    assert check.err == "Would have fixed 3 findings in 2 files.\n"
    assert contents(tmp_path) == before
    command = ["patch", "--binary", "-p0", "-i"] if program == "patch" else ["git", "apply", "-p0"]
    subprocess.run([*command, "changes.diff"], cwd=tmp_path, check=True, capture_output=True)
    patched = contents(tmp_path)
    for name, data in before.items():
        (tmp_path / name).write_bytes(data)
    check("--fix", "--unsafe-fixes")
    assert contents(tmp_path) == patched
    assert check("--diff", "--unsafe-fixes") == 0
    assert check.out == ""


def test_a_diff_says_what_it_leaves_out(check: Command, tmp_path: Path) -> None:
    before = contents(tmp_path)
    assert check("--diff", "a.py") == 0
    assert (check.out, check.err) == ("", "2 fixable with --fix --unsafe-fixes\n")
    assert check("--diff") == 1
    assert check.err == "Would have fixed 1 finding in 1 file.\n2 fixable with --fix --unsafe-fixes\n"
    assert check("--diff", "--quiet", "a.py") == 0
    assert check.err == ""
    assert contents(tmp_path) == before


def test_a_diff_goes_to_standard_output_as_the_bytes_it_is(check: Command, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ta_lint", "check", "--diff", "--unsafe-fixes", "a.py"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True)
    assert ran.returncode == 1
    assert ran.stdout.startswith(b"--- a.py\n+++ a.py\n@@ -1,5 +1,5 @@\n import torch\r\n")
    assert ran.stdout.endswith(
        b"\\ No newline at end of file\n+model.eval()\r\n+loss.backward()\n\\ No newline at end of file\n"
    )


def test_many_files_are_fixed_by_several_processes(check: Command, tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"m{number:02}.py").write_text(UNCALLED)
    assert check("--fix", "--unsafe-fixes", "--jobs=2") == 0
    assert check.out.startswith("Fixed 33 findings in 32 files.")
    assert all(b"eval()" in (tmp_path / f"m{number:02}.py").read_bytes() for number in range(30))


def test_the_mode_and_the_link_of_a_file_stay(check: Command, tmp_path: Path) -> None:
    (tmp_path / "a.py").chmod(0o751)
    (tmp_path / "link.py").symlink_to("a.py")
    assert check("--fix", "--unsafe-fixes", "link.py", "a.py") == 0
    assert (tmp_path / "link.py").is_symlink()
    assert (tmp_path / "a.py").stat().st_mode & 0o777 == 0o751
    assert b"eval()" in (tmp_path / "a.py").read_bytes()


def test_a_file_that_cannot_be_written_is_named_and_the_others_are_done(
    check: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "a.py" and access(path, mode))
    before = (tmp_path / "a.py").read_bytes()
    assert check("--fix", "--unsafe-fixes", "--format=concise") == 2
    assert check.err == "ta-lint: error: cannot write a.py: it is read-only\n"
    assert (tmp_path / "a.py").read_bytes() == before
    assert "a.py:4:1: TA603 [*] error:" in check.out
    assert "Fixed 1 finding in 1 file.\n" in check.out


def test_a_file_that_changed_meanwhile_is_not_overwritten(
    check: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = fix_command.write

    def edited_first(results: list[Fixed], chosen: Chosen, root: Path) -> object:
        (tmp_path / "a.py").write_text("edited\n")
        return write(results, chosen, root)

    monkeypatch.setattr(fix_command, "write", edited_first)
    assert check("--fix", "--unsafe-fixes") == 2
    assert "cannot write a.py: it has changed since it was read" in check.err
    assert (tmp_path / "a.py").read_text() == "edited\n"


def test_ctrl_c_leaves_whole_files_and_nothing_beside_them(
    check: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(tmp_path)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(SystemExit) as ended:
        check("--fix", "--unsafe-fixes")
    assert ended.value.code == commands.INTERRUPTED
    assert contents(tmp_path) == before
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_what_the_baseline_holds_is_not_fixed(check: Command, tmp_path: Path) -> None:
    check("--baseline=known.json", "--update-baseline")
    before = contents(tmp_path)
    assert check("--baseline=known.json", "--fix", "--unsafe-fixes") == 0
    assert contents(tmp_path) == before


def test_a_baseline_is_not_recorded_while_fixing(check: Command) -> None:
    assert check("--baseline=known.json", "--update-baseline", "--fix") == 2
    assert "not together with --fix" in check.err


def test_settings_are_shown_and_wrong_ones_refused(check: Command, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.ta]\nunfixable = ['TA603']\nunsafe-fixes = true\n")
    check("--show-settings")
    assert 'unfixable = ["TA603"]' in check.out
    assert "unsafe-fixes = true" in check.out
    check("--show-settings", "--no-unsafe-fixes")
    assert "unsafe-fixes = false" in check.out
    (tmp_path / "pyproject.toml").write_text("[tool.ta]\nextend-safe-fixes = ['TA6O3']\n")
    assert check() == 2
    assert "[tool.ta] extend-safe-fixes: no rule, prefix, tag or alias is called 'TA6O3'" in check.err
    (tmp_path / "pyproject.toml").write_text("[tool.ta]\nunsafe-fixes = 'yes'\n")
    assert check() == 2
    assert "[tool.ta] unsafe-fixes: expected `bool`" in check.err


def test_an_edit_of_text_says_where_as_a_site_does(tmp_path: Path) -> None:
    (finding,) = lint_once(tmp_path)
    assert finding.fix is not None
    assert finding.fix.edits == (TextEdit(4, 11, 4, 11, "()"),)


WRITES = """
import lightning as L
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("gpt2")
prompt = tokenizer("Hello", return_tensors="pt").input_ids


class Writer(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.lm = get_peft_model(AutoModelForCausalLM.from_pretrained("gpt2"), LoraConfig(r=16, lora_dropout=0.1))

    def training_step(self, batch, index):
        if index % 1000 == 0:
            text = self.lm.generate(input_ids=prompt, max_length=20)
            print(tokenizer.decode(text[0]))
        return self.lm(**batch).loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-4)
"""


def test_the_model_is_put_into_evaluation_mode_and_not_its_method(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(WRITES, "utf-8")
    main(["check", "--isolated", "--select", "TA612", "--fix", "--unsafe-fixes", str(script)])
    assert "            self.lm.eval()\n" in script.read_text("utf-8")
    assert "generate.eval" not in script.read_text("utf-8")
