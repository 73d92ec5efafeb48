"""The files of a program: bodies of functions are kept while a script runs, and parsed again when they are called later."""

import ast
from pathlib import Path

import pytest

from ta_lint.dryrun import program
from ta_lint.dryrun.dryrun import of_project
from ta_lint.dryrun.machine.entries import run_script
from ta_lint.dryrun.machine.machine import Machine

STEPS = """import torch


class Steps:
    def __init__(self, model):
        self.optimizer = torch.optim.SGD(model.parameters(), 0.1)

    if True:
        @torch.no_grad()
        def update(self,
                   text=\"\"\"
no indent here
\"\"\"):
        # a comment
            self.optimizer.step()

    async def clear(self): self.optimizer.zero_grad()
"""
MAIN = "import torch\nfrom steps import Steps\nsteps = Steps(torch.nn.Linear(1, 1))\nsteps.update()\nsteps.clear()\n"
SPELLED = {
    "as it is": STEPS.encode(),
    "with tabs": STEPS.replace("    ", "\t").encode(),
    "with line ends of Windows": STEPS.replace("\n", "\r\n").encode(),
    "in another encoding": f"# coding: latin-1\n{STEPS}# é\n".encode("latin-1"),
    "with a mark of UTF-8": b"\xef\xbb\xbf" + STEPS.encode(),
}


@pytest.fixture(autouse=True)
def keep_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "MOST_LINES", 0)


def actions(machine: Machine, since: int) -> list[tuple[str, int, int]]:
    return [
        (one.action, one.place.line, one.place.node.col_offset)
        for one in machine.events[since:]
        if one.action in ("step", "clear")
    ]


@pytest.mark.parametrize("source", SPELLED.values(), ids=SPELLED.keys())
def test_a_function_does_the_same_after_its_body_was_forgotten(source: bytes, tmp_path: Path) -> None:
    (tmp_path / "steps.py").write_bytes(source)
    for name in ("first", "second"):
        (tmp_path / f"{name}.py").write_text(MAIN, "utf-8")
    machine = of_project(str(tmp_path))
    run_script(machine, str(tmp_path / "first.py"))
    once = actions(machine, 0)
    count = len(machine.events)
    run_script(machine, str(tmp_path / "second.py"))
    assert len(once) == 2
    assert actions(machine, count) == once


def test_bodies_of_files_that_ran_before_are_not_kept(tmp_path: Path) -> None:
    (tmp_path / "steps.py").write_text(STEPS, "utf-8")
    (tmp_path / "first.py").write_text(MAIN, "utf-8")
    (tmp_path / "second.py").write_text("import steps\n", "utf-8")
    machine = of_project(str(tmp_path))
    run_script(machine, str(tmp_path / "first.py"))
    run_script(machine, str(tmp_path / "second.py"))
    cls = machine.program.module(machine, str(tmp_path / "steps.py"), "steps").fields["Steps"].node
    assert [
        len(one.body) for one in ast.walk(cls) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
    ] == [0, 0, 0]


def test_an_encoding_may_give_more_lines_than_the_bytes_have(tmp_path: Path) -> None:
    source = b"# coding: unicode_escape\nimport torch\ndef f(model):\\n    model.zero_grad()\\n\\n\\ndef g(model):\\n    f(model)\n"
    (tmp_path / "main.py").write_bytes(source)
    run_script(machine := of_project(str(tmp_path)), str(tmp_path / "main.py"))
    assert [one.action for one in machine.events][:1] == ["clear"]
