"""Notebooks: cells joined so that names resolve, positions by cell, and fixes that keep every other byte of the file."""

import ast
import json
import os
from pathlib import Path
from typing import Any

import nbformat
import pytest
from commands import python
from corpus import FOLDER as CORPORA
from IPython.core.inputtransformer2 import TransformerManager

from ta_lint.cli import main
from ta_lint.core import ipython
from ta_lint.core.config import Configs, Options
from ta_lint.core.errors import Unreadable
from ta_lint.core.finding import Finding
from ta_lint.core.source import Source, bytes_of, source_of
from ta_lint.engine import lint_file
from ta_lint.file import File
from ta_lint.fixing import fix_file

NOTEBOOKS = sorted(CORPORA.rglob("*.ipynb"))


def notebook(*cells: str | list[str], language: str = "python", **more: Any) -> dict[str, Any]:
    """A notebook of code cells; a cell that starts with `#md` is text."""
    return {
        "cells": [
            {"cell_type": "markdown", "metadata": {}, "source": cell}
            if cell[:3] == "#md"
            else {
                "cell_type": "code",
                "execution_count": None,
                "metadata": {},
                "outputs": [],
                "source": cell if isinstance(cell, list) else cell.splitlines(keepends=True),
            }
            for cell in cells
        ],
        "metadata": {"kernelspec": {"name": "k", "display_name": "K", "language": language}},
        "nbformat": 4,
        "nbformat_minor": 4,
        **more,
    }


def written(folder: Path, content: dict[str, Any], **layout: Any) -> File:
    text = json.dumps(content, **({"indent": 1, "ensure_ascii": False} | layout)) + "\n"
    return file(folder, text.encode())


def file(folder: Path, data: bytes, name: str = "demo.ipynb", **options: Any) -> File:
    path = folder / name
    path.write_bytes(data)
    return File(path, name, Configs(Options(**({"unsafe_fixes": True} | options)), folder).root_config)


def places(findings: list[Finding]) -> list[str]:
    """`cell:line:column rule` of each finding."""
    return [
        f"{finding.site.cell.number if finding.site.cell else '-'}:{finding.site.line}:{finding.site.column} "
        f"{finding.rule}"
        for finding in findings
        if finding.counts
    ]


MODEL = "import torch\n\nmodel = torch.nn.Linear(4, 1)\noptimizer = torch.optim.SGD(model.parameters())\nbatches = iter(int, 0)"
STEP = "for x in batches:\n    optimizer.zero_grad()\n    model(x).sum().backward()\n    optimizer.step\n"


def test_a_name_of_one_cell_is_known_in_the_next_and_a_finding_is_placed_in_its_cell(tmp_path: Path) -> None:
    found = lint_file(written(tmp_path, notebook("#md Train", MODEL, STEP)))
    assert places(found) == ["3:4:5 TA603"]
    site = found[0].site
    assert site.cell is not None
    line = (tmp_path / "demo.ipynb").read_text().splitlines()[site.cell.file_line - 1]
    assert line.strip() == r'"    optimizer.step\n"'


@pytest.mark.parametrize(
    ("last", "is_found"),
    [
        ("x.relu()", False),
        ("x.relu()  # look\n# at it", False),
        ("x.relu();", True),
        ("x.relu(); x", True),
        ("x.relu()\nprint(x)", True),
    ],
)
def test_a_tensor_that_a_notebook_shows_is_not_dropped(last: str, is_found: bool, tmp_path: Path) -> None:
    found = lint_file(written(tmp_path, notebook(f"import torch\n\nx = torch.ones(2)\n{last}", "print(x)")))
    assert [one.rule for one in found if one.rule == "TA509"] == ["TA509"] * is_found


def test_the_value_that_a_notebook_shows_is_no_forgotten_call(tmp_path: Path) -> None:
    shown = notebook(
        MODEL, "optimizer.step", "x = torch.ones(4)\nx.add(1)", "model.weight.requires_grad == False"
    )
    assert places(lint_file(written(tmp_path, shown))) == []
    hidden = notebook(MODEL, "optimizer.step;", "optimizer.step\nprint()", "if batches:\n    optimizer.step")
    assert places(lint_file(written(tmp_path, hidden))) == ["2:1:1 TA603", "3:1:1 TA603", "4:2:5 TA603"]


def test_a_notebook_is_one_process_and_its_checkpoints_are_written_once(tmp_path: Path) -> None:
    code = "import torch\n\ntorch.distributed.init_process_group()\ntorch.save({}, 'model.pt')"
    assert places(lint_file(written(tmp_path, notebook(code)))) == []
    assert [found.rule for found in lint_file(file(tmp_path, code.encode(), "save.py"))] == ["TA803"]


def test_the_keys_that_a_partial_load_leaves_out_are_shown_at_the_end_of_a_cell(tmp_path: Path) -> None:
    load = 'model.load_state_dict(torch.load("a.pt"), strict=False)'
    assert places(lint_file(written(tmp_path, notebook(MODEL, load)))) == []
    assert places(lint_file(written(tmp_path, notebook(MODEL, f"{load}\nprint()")))) == ["2:1:1 TA705"]


def test_a_finding_of_the_same_code_is_in_a_script(tmp_path: Path) -> None:
    code = f"{MODEL}\noptimizer.step\n"
    found = lint_file(file(tmp_path, code.encode(), "train.py"))
    assert places(found) == ["-:6:1 TA603"]


MAGICS = [
    "%matplotlib inline",
    "!pip install torch",
    "!!ls",
    "?torch",
    "torch.nn.Linear?",
    "torch??",
    "%timeit?",
    "%time model(1)",
    "files = !ls",
    "a, b = %sx ls",
    "/print 1",
    ",print 1",
    "!pip install \\\n    torch \\\n  numpy\nx = 1",
    "%cd \\\n..",
    "if True:\n    !ls\n    x = 1",
    "for name in files:\n    %run $name\nelse:\n\t!true",
    'text = """\n%not a magic\n!nor this\n"""\n%matplotlib inline',
    "rest = (17\n% 5)\n!ls",
    "rest = 17 \\\n% 5\n!ls",
    "# a question?\n%pwd",
    "%%time\nx = 1",
    "%%capture out\n%matplotlib inline\nx = 1",
    "x = 1\n!ls\ny = (7\n% 3)\n!ls",
    "if True:\n    x = '''\n% tex\n'''\n    !ls\n% pwd",
]


@pytest.mark.parametrize("cell", MAGICS)
def test_what_ipython_reads_we_read_line_for_line_and_give_back(cell: str) -> None:
    ast.parse(TransformerManager().transform_cell(cell))
    data = json.dumps(notebook("import torch", cell, "done = 1")).encode()
    source = source_of("a.ipynb", data)
    ast.parse(source.text)
    assert len(source.text.split("\n")) == len(f"import torch\n\n\n{cell}\n\n\ndone = 1\n".split("\n"))
    assert bytes_of(source, data) == data
    assert source.notebook is not None
    assert source.notebook.rewritten(source.text.replace("done = 1", "done = 2")) == data.decode().replace(
        "done = 1", "done = 2"
    )


@pytest.mark.parametrize(
    "cell", ["text = '?'", "rest = (17\n% 5)", 'text = """\n%s\n"""', "# why?", "a = b  # so?"]
)
def test_python_that_looks_like_a_magic_is_left_alone(cell: str) -> None:
    assert source_of("a.ipynb", json.dumps(notebook(cell)).encode()).text == f"{cell}\n"


@pytest.mark.parametrize("magic", ["%%bash", "%%html", "%%writefile a.py", "%%javascript", "%%R -o x"])
def test_a_cell_in_another_language_is_passed_over(magic: str, tmp_path: Path) -> None:
    found = lint_file(written(tmp_path, notebook(MODEL, f"\n{magic}\nthis is + not ( Python", STEP)))
    assert places(found) == ["3:4:5 TA603"]


TITLE = "#@title Install\n"


@pytest.mark.parametrize(
    "cell",
    [
        f"{TITLE}%%capture\n!pip install torch\nhelper = 1",
        f"{TITLE}%%bash\npip install torch -q\necho $helper is",
        "%sql\nselect * from helper",
        "%sh\nls",
        "%md Some text\nand more of it",
        "    helper = 1\n    if helper:\n        pass",
        "%%time\n    helper = 1\n    print(helper)",
        ">>> helper = 1\n... print(helper)",
        "In [1]: helper = 1",
        "pip install torch",
        "cd ..",
        "a = 1\r\n!ls \\\r\n  -l\r\nb = 2\r\n",
    ],
)
def test_what_runs_only_in_a_notebook_is_no_error(cell: str, tmp_path: Path) -> None:
    assert places(lint_file(written(tmp_path, notebook(MODEL, cell, STEP)))) == ["3:4:5 TA603"]


@pytest.mark.parametrize(
    "cell",
    [
        "%%cython\ndef helper(int x): pass",
        "%%bash --out helper\nls",
        "%%skip True\nhelper = 1",
        "%time helper = 1",
        "%%time helper = 1\nprint()",
        "    helper = 1",
        "helper = = 1",
    ],
)
def test_a_name_that_an_unread_cell_may_bring_is_not_called_undefined(cell: str, tmp_path: Path) -> None:
    found = places(lint_file(written(tmp_path, notebook("import argparse, torch", cell, "helper(torch)"))))
    assert not [place for place in found if "TA910" in place]
    content = notebook("import argparse, torch", "%%bash\nls", "helper(torch)")
    assert places(lint_file(written(tmp_path, content))) == ["3:1:1 TA910"]


def test_names_that_jupyter_and_spark_bring_are_known(tmp_path: Path) -> None:
    code = "import torch\nprint(torch, In[1], Out[1], sc, sqlContext)"
    assert places(lint_file(written(tmp_path, notebook(code)))) == []


def test_a_cell_of_vs_code_has_a_language_of_its_own(tmp_path: Path) -> None:
    content = notebook(MODEL, "select * from batches", STEP)
    content["cells"][1]["metadata"] = {"vscode": {"languageId": "sql"}}
    assert places(lint_file(written(tmp_path, content))) == ["3:4:5 TA603"]


@pytest.mark.parametrize(
    ("metadata", "is_python"),
    [
        ({"kernelspec": {"name": "ir", "display_name": "R"}}, False),
        ({"application/vnd.databricks.v1+notebook": {"language": "scala"}}, False),
        ({"application/vnd.databricks.v1+notebook": {"language": "python"}}, True),
        ({"language_info": {"name": "pyspark"}}, True),
        ({"language_info": None, "kernelspec": {"name": 3}}, True),
    ],
)
def test_the_language_stands_in_several_places(
    metadata: dict[str, Any], is_python: bool, tmp_path: Path
) -> None:
    found = lint_file(written(tmp_path, notebook(MODEL, "optimizer.step;", metadata=metadata)))
    assert bool(found) is is_python


def test_cells_that_are_no_python_are_reported_and_the_others_linted_and_fixed(tmp_path: Path) -> None:
    broken = ["%pwd\nx = = 1", "y = (1,\n2", "print 'a'"]
    target = written(tmp_path, notebook(MODEL, *broken, STEP))
    found = lint_file(target)
    assert sorted(places(found)) == ["2:2:5 TA001", "3:1:5 TA001", "4:1:1 TA001", "5:4:5 TA603"]
    assert len({finding.fingerprint for finding in found}) == 4
    fixed = fix_file(target)
    assert fixed.after == fixed.before.replace(b"optimizer.step", b"optimizer.step()")


def test_of_a_comment_in_a_cell_that_is_no_python_nobody_knows_what_it_suppresses(tmp_path: Path) -> None:
    target = written(tmp_path, notebook(MODEL, "import  #noqa: TA401, TA9999"))
    assert places(lint_file(target)) == ["2:1:9 TA001"]
    assert not fix_file(target).changes


def test_a_notebook_of_a_newer_python_is_left_to_libcst(tmp_path: Path) -> None:
    metadata = {"language_info": {"name": "python", "version": "3.99.1"}}
    found = lint_file(written(tmp_path, notebook(MODEL, "x = = 1", "y = = 1", metadata=metadata)))
    assert places(found) == ["2:1:5 TA001"]


def test_the_lines_of_a_long_cell_with_magics_are_looked_at_once_or_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_at: list[int] = []
    is_open = ipython._is_open
    monkeypatch.setattr(ipython, "_is_open", lambda lines: looked_at.append(len(lines)) or is_open(lines))
    cell = "%pwd\n" + "x = 1\n" * 500 + "s = '''\n" + "% tex\n" * 500 + "'''\n!ls"
    source_of("a.ipynb", json.dumps(notebook("import torch", cell)).encode())
    assert 0 < sum(looked_at) <= 3 * len(cell.splitlines())  # it was each line for each line


@pytest.mark.parametrize("language", ["R", "julia", "scala"])
def test_a_notebook_in_another_language_is_passed_over(language: str, tmp_path: Path) -> None:
    assert lint_file(written(tmp_path, notebook("torch <- 1 +", language=language))) == []


def test_a_name_that_a_magic_may_bring_is_not_called_undefined(tmp_path: Path) -> None:
    content = notebook("import argparse, torch\n%run helpers.ipynb", "helper(torch)")
    assert places(lint_file(written(tmp_path, content))) == []
    assert places(
        lint_file(written(tmp_path, notebook("import argparse, torch\n%pwd", "helper(torch)")))
    ) == ["2:1:1 TA910"]


@pytest.mark.parametrize("line", ["watermark -iv", "pwd", "ls -l"])
def test_a_magic_without_its_percent_sign_is_no_undefined_name(line: str, tmp_path: Path) -> None:
    assert places(lint_file(written(tmp_path, notebook("import argparse, torch", line)))) == []
    assert (
        "TA910"
        in places(lint_file(written(tmp_path, notebook("import argparse, torch", f"if torch:\n    {line}"))))[
            0
        ]
    )


def test_await_at_the_top_of_a_cell_and_a_late_future_import_are_no_errors(tmp_path: Path) -> None:
    cells = ("import torch, asyncio", "await asyncio.sleep(0)", "from __future__ import annotations")
    assert places(lint_file(written(tmp_path, notebook(*cells)))) == []


def test_what_python_refuses_is_reported_in_its_cell(tmp_path: Path) -> None:
    found = lint_file(written(tmp_path, notebook("import torch", "print 1")))
    assert places(found) == ["2:1:1 TA001"]


@pytest.mark.parametrize(
    ("data", "place", "reason"),
    [
        (b'{"cells": [\n  torch,]}', "-:2:3", "the notebook is not JSON: Expecting value"),
        (b'["torch"]', "-:1:1", "not a notebook: it has no list of cells"),
        (b'{"cells": 1, "torch": 1}', "-:1:1", "not a notebook: it has no list of cells"),
        (b'{"cells": [],\n "torch\xff": 1}', "-:2:1", "the notebook is not UTF-8"),
        (b'{"cells": ' + b"[" * 100_000 + b"torch", "-:1:1", "the notebook is nested too deep"),
    ],
)
def test_what_is_no_notebook_is_said_with_the_line_of_the_file(
    data: bytes, place: str, reason: str, tmp_path: Path
) -> None:
    [finding] = lint_file(file(tmp_path, data))
    assert places([finding]) == [f"{place} TA001"]
    assert finding.message == reason


@pytest.mark.parametrize(
    "content",
    [
        {"cells": []},
        {"cells": [None, 1, {"cell_type": "code"}, {"cell_type": "code", "source": 5}], "x": "torch"},
        {"worksheets": [], "x": "torch"},
        {"worksheets": [3], "x": "torch"},
        {"cells": {"a": 1}, "metadata": 7, "x": "torch"},
        {"cells": [], "metadata": {"language_info": {"name": ["python"], "version": 3}, "x": "torch"}},
        {"cells": [], "metadata": {"kernelspec": {"name": {}, "language": None}, "language_info": "torch"}},
    ],
)
def test_odd_notebooks_stop_nothing(content: dict[str, Any], tmp_path: Path) -> None:
    """A1, A9: whatever type a part of it has."""
    odd = written(tmp_path, content)
    assert {finding.rule for finding in lint_file(odd)} <= {"TA001"}
    fixed = fix_file(odd)
    assert not fixed.changes
    assert fixed.complaints == ()


@pytest.mark.parametrize("version", ["9" * 5000, f"{'9' * 5000}.1", f"3.{'9' * 5000}", "3", "x.y", "٣.١١"])
def test_a_version_of_any_size_is_only_text(version: str, tmp_path: Path) -> None:
    """A9: Python reads no integer of 5,000 digits."""
    metadata = {"language_info": {"name": "python", "version": version}}
    found = lint_file(written(tmp_path, notebook(MODEL, STEP, metadata=metadata)))
    assert places(found) == ["2:4:5 TA603"]


def test_a_number_of_any_size_is_read(tmp_path: Path) -> None:
    """A9: of an output, or of how often a cell ran."""
    data = json.dumps(notebook(MODEL, STEP)).replace(
        '{"cell_type"', f'{{"size": {"9" * 5000}, "cell_type"', 1
    )
    assert places(lint_file(file(tmp_path, data.encode()))) == ["2:4:5 TA603"]


def test_a_notebook_of_the_old_format_is_linted_and_fixed(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "code", "input": [f"{MODEL}\n", "optimizer.step\n", "print()"], "language": "python"}
    ]
    old = {"metadata": {}, "nbformat": 3, "nbformat_minor": 0, "worksheets": [{"cells": cells}]}
    fixed = fix_file(written(tmp_path, old))
    assert fixed.count == 1
    assert b"optimizer.step()" in fixed.after


def test_suppressions_work_in_a_cell_and_for_the_whole_notebook(tmp_path: Path) -> None:
    assert places(lint_file(written(tmp_path, notebook(MODEL, "optimizer.step;  # noqa: TA603")))) == []
    assert (
        places(lint_file(written(tmp_path, notebook(f"# ta: noqa: TA603\n{MODEL}", "optimizer.step;")))) == []
    )
    assert places(lint_file(written(tmp_path, notebook(MODEL, "print()  # noqa: TA603")))) == ["2:1:10 TA002"]


def test_a_finding_keeps_its_fingerprint_when_cells_and_outputs_come_and_go(tmp_path: Path) -> None:
    [before] = lint_file(written(tmp_path, notebook(MODEL, STEP)))
    changed = notebook("#md Hello", MODEL, "print(batches)\n!ls", STEP)
    changed["cells"][2]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": ["[]\n"]}]
    [after] = lint_file(written(tmp_path, changed))
    assert before.fingerprint == after.fingerprint


# -- fixes ----------------------------------------------------------------------------------------------------

LAYOUTS: list[dict[str, Any]] = [
    {},
    {"indent": 2},
    {"indent": None},
    {"indent": "\t"},
    {"ensure_ascii": True},
    {"separators": (",", ":"), "indent": None},
]


def changed_lines(before: bytes, after: bytes) -> list[bytes]:
    kept = set(before.splitlines())
    return [line for line in after.splitlines() if line not in kept]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("shape", [list, str])
def test_a_fix_changes_the_lines_it_names_and_no_other_byte(
    layout: dict[str, Any], shape: type, tmp_path: Path
) -> None:
    content = notebook(
        "#md é \u2028", MODEL, "s = 'ü\\n\\\\n'\n%pwd\noptimizer.step\nt = '\U0001f600'", "!ls"
    )
    if shape is str:
        for cell in content["cells"]:
            cell["source"] = "".join(cell["source"])
    target = written(tmp_path, content, **layout)
    fixed = fix_file(target)
    assert fixed.count == 1
    expected = fixed.before.replace(b"optimizer.step", b"optimizer.step()")
    assert fixed.after == expected
    nbformat.validate(nbformat.reads(fixed.after.decode(), as_version=4))


def test_a_fix_that_adds_lines_adds_strings_as_the_notebook_writes_them(tmp_path: Path) -> None:
    loop = "for x in batches:\n    model(x).sum().backward()\n    optimizer.step()"
    fixed = fix_file(written(tmp_path, notebook(MODEL, loop)))
    assert changed_lines(fixed.before, fixed.after) == [rb'    "    optimizer.zero_grad()\n",']
    assert fixed.findings == []


def test_an_import_that_a_fix_needs_goes_where_the_imports_are(tmp_path: Path) -> None:
    train = (
        "for epoch in range(9):\n    for x in batches:\n        optimizer.zero_grad()\n"
        "        model(x).sum().backward()\n        optimizer.step()\n"
        "    if float(model(x).sum()) < 3:\n        best = model.state_dict()\nmodel.load_state_dict(best)"
    )
    fixed = fix_file(
        written(tmp_path, notebook(MODEL.replace("iter(int, 0)", "[torch.ones(2, 4)] * 3"), train))
    )
    cells = json.loads(fixed.after)["cells"]
    assert "".join(cells[0]["source"]).startswith("import copy\n")
    assert "copy.deepcopy(model.state_dict())" in "".join(cells[1]["source"])


def test_several_lines_in_one_string_of_a_list_are_written_anew(tmp_path: Path) -> None:
    fixed = fix_file(written(tmp_path, notebook(MODEL, ["print()\noptimizer.step", "\n", "print()"])))
    assert json.loads(fixed.after)["cells"][1]["source"] == ["print()\n", "optimizer.step()\n", "print()"]


def test_a_byte_order_mark_and_line_ends_of_windows_stay(tmp_path: Path) -> None:
    text = json.dumps(notebook(MODEL, "optimizer.step;"), indent=1).replace("\n", "\r\n")
    fixed = fix_file(file(tmp_path, b"\xef\xbb\xbf" + text.encode()))
    assert fixed.after == b"\xef\xbb\xbf" + text.replace("optimizer.step", "optimizer.step()").encode()


def test_a_repeated_key_is_not_fixed_and_not_broken(tmp_path: Path) -> None:
    text = json.dumps(notebook(MODEL, "optimizer.step;"), indent=1)
    text = text.replace(
        '"optimizer.step;"\n   ]', '"optimizer.step;"\n   ],\n   "source": ["optimizer.step;"]'
    )
    fixed = fix_file(file(tmp_path, text.encode()))
    assert fixed.after == fixed.before


def test_the_last_line_of_a_cell_can_go(tmp_path: Path) -> None:
    fixed = fix_file(written(tmp_path, notebook("import torch\nprint(torch)\n# noqa: TA603", "print(1)")))
    assert [cell["source"] for cell in json.loads(fixed.after)["cells"]] == [
        ["import torch\n", "print(torch)"],
        ["print(1)"],
    ]


def test_every_notebook_of_the_corpora_comes_back_byte_for_byte() -> None:
    if not NOTEBOOKS:
        if os.environ.get("CI") == "true":
            pytest.fail("python benchmarks/corpus.py has not been run")
        pytest.skip("python benchmarks/corpus.py brings the corpora")
    for path in NOTEBOOKS:
        data = path.read_bytes()
        source = source_of(path.name, data)
        assert source.notebook is not None
        assert bytes_of(source, data) == data
        lines = source.text.split("\n")
        for cell in reversed(source.notebook.cells):  # a line more at the end of each
            lines.insert(cell.line + cell.text.count("\n"), "added = 1")
        after = source.notebook.rewritten("\n".join(lines)).encode()
        assert source_of(path.name, after).text == "\n".join(lines)
        written_anew = len(changed_lines(data, after))
        assert written_anew <= 2 * len(source.notebook.cells), (
            path
        )  # a line that was the last gets a line feed


def test_what_is_no_unicode_is_unreadable_and_nothing_worse() -> None:
    data = b'{"cells": [{"cell_type": "code", "source": "torch = \'\\ud800\'"}]}'
    source = source_of("a.ipynb", data)
    with pytest.raises(Unreadable):
        _ = source.syntax


# -- reports --------------------------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[tool.ta]\n")
    written(tmp_path, notebook("#md Train", MODEL, "%pwd\n" + STEP))
    return tmp_path


def test_a_folder_is_searched_for_notebooks(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--format=concise", "--quiet"]) == 1
    assert capsys.readouterr().out.startswith("demo.ipynb:cell 3:5:5: TA603 error: ")


def test_text_shows_the_line_of_the_cell(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["check"])
    out = capsys.readouterr().out
    assert "--> demo.ipynb:cell 3:5:5\n" in out
    assert "5 |     optimizer.step\n" in out


def test_a_notebook_is_read_once_for_a_report(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    written(project, notebook(MODEL, *["optimizer.step;"] * 5))
    asked: list[str] = []

    def counted(name: str, data: bytes) -> Source:
        asked.append(name)
        return source_of(name, data)

    monkeypatch.setattr("ta_lint.core.source.source_of", counted)
    main(["check"])
    assert "5 x TA603" in capsys.readouterr().out
    assert len(asked) == 1


def test_json_names_the_cell_of_a_finding_and_of_its_edits(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["check", "--format=json"])
    [item] = json.loads(capsys.readouterr().out)
    assert (item["cell"], item["line"], item["column"]) == (3, 5, 5)
    assert [(edit["cell"], edit["line"], edit["column"], edit["text"]) for edit in item["fix"]["edits"]] == [
        (3, 5, 19, "()")
    ]


def test_code_hosts_are_given_the_line_of_the_file(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = (project / "demo.ipynb").read_text().splitlines()
    number = next(number for number, line in enumerate(lines, start=1) if "optimizer.step" in line)
    main(["check", "--format=github"])
    assert f"::error file=demo.ipynb,line={number},endLine={number},title=" in capsys.readouterr().out
    main(["check", "--format=sarif"])
    [result] = json.loads(capsys.readouterr().out)["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": number, "endLine": number}
    assert result["message"]["text"].endswith("(cell 3, line 5).")
    assert "fixes" not in result


def test_the_baseline_knows_a_finding_in_a_notebook(project: Path) -> None:
    assert main(["check", "--baseline=known.json", "--update-baseline"]) == 0
    assert main(["check", "--baseline=known.json"]) == 0


def test_fix_writes_the_notebook_and_says_so(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (project / "demo.ipynb").read_bytes()
    assert main(["check", "--fix", "--unsafe-fixes"]) == 0
    assert (project / "demo.ipynb").read_bytes() == before.replace(b"optimizer.step", b"optimizer.step()")
    assert "Fixed 1 finding in 1 file." in capsys.readouterr().out


def test_a_fixed_notebook_runs(tmp_path: Path) -> None:
    fixed = fix_file(written(tmp_path, notebook(MODEL.replace("[]", "[torch.ones(2, 4)]"), STEP, "!true")))
    code = "\n".join(
        TransformerManager().transform_cell("".join(cell["source"]))
        for cell in json.loads(fixed.after)["cells"]
    )
    (tmp_path / "run.py").write_text(code.replace("get_ipython()", "__import__('unittest.mock').mock.Mock()"))
    assert python(tmp_path, "run.py").returncode == 0


def test_a_carriage_return_ends_a_line_of_a_cell_as_it_does_for_python(tmp_path: Path) -> None:
    """Places count such lines, and comments against magics and broken cells stand on each of them."""
    content = notebook(
        ["import torch\rx = 1\r%matplotlib\rmodel.eval\n", "y"],
        ["if\r89:\r    )"],
        ["z = 1\r", 'torch.load("a", weights_only=False)'],
    )
    given = written(tmp_path, content)
    assert places(lint_file(given)) == ["1:4:1 TA603", "2:3:5 TA001", "3:2:1 TA700"]
    source = source_of(given.name, given.path.read_bytes())
    assert bytes_of(source, given.path.read_bytes()) == given.path.read_bytes()
    ast.parse(source.text)


def test_a_finding_on_a_line_that_is_a_comment_to_python_has_its_column_in_the_cell(tmp_path: Path) -> None:
    """Before what IPython alone understands, and in a cell that is no Python, stands our own comment."""
    content = notebook("import torch\n%pip install x  # noqa: TA401", "if:  # noqa: TA401")
    found = lint_file(written(tmp_path, content))
    assert sorted(places(found)) == ["1:2:1 TA002", "2:1:3 TA001"]
    assert sorted(finding.site.end_column for finding in found) == [3, 30]
    [fixed] = [json.loads(fix_file(written(tmp_path, content)).after)]
    assert ["".join(cell["source"]) for cell in fixed["cells"]] == [
        "import torch\n%pip install x",
        "if:  # noqa: TA401",
    ]


LOADING = 'torch.load("a", weights_only=False)'


def test_a_refused_cell_moves_no_line_of_the_next(tmp_path: Path) -> None:
    """A carriage return before the line feed that joins cells is one line end with it, as it is for Python."""
    found = lint_file(written(tmp_path, notebook("import torch", "import \\\r", LOADING)))
    assert places(found) == ["2:2:1 TA001", "3:1:1 TA700"]


def test_a_refused_line_for_ipython_has_its_own_column(tmp_path: Path) -> None:
    found = lint_file(written(tmp_path, notebook("import torch\nfor x in y:\n    x\n  %cd z\nx")))
    assert places(found) == ["1:4:8 TA001"]


def test_cells_that_are_python_together_alone_are_none(tmp_path: Path) -> None:
    """A bracket that the next cell closes, an `else` for the `if` of the cell before, a decorator of nothing."""
    pairs = (
        ("f(", ")"),
        ("if x:\n    y", "else:\n    z"),
        ("@f", "def g(): pass"),
        ('x = """', '"""'),
        ("if x:", "# a\n    y"),
    )
    for first, second in pairs:
        found = lint_file(written(tmp_path, notebook("import torch", first, second, LOADING)))
        assert [place.partition(":")[0] for place in places(found) if "TA001" in place], (first, second)
        assert "4:1:1 TA700" in places(found), (first, second)


def test_half_a_character_is_what_cannot_be_read_and_no_bug_of_ours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "train.ipynb"
    path.write_text(json.dumps(notebook("import torch", "\ud800")), "utf-8")
    assert main(["check", "--isolated", "--no-cache", "-f", "concise", str(path)]) == 1
    said = capsys.readouterr().out
    assert "TA001 error: Python cannot parse this" in said
    assert "TA000" not in said
