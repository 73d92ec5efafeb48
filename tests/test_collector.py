"""The garbage collector stays away from files, and comes back; nothing of a file waits for it."""

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from marked import blocks

from ta_lint import engine
from ta_lint.checks import flakes
from ta_lint.core.collector import paused, resume
from ta_lint.core.config import Configs, Options
from ta_lint.core.source import Source
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.facts.program.program import program_of
from ta_lint.file import File
from ta_lint.runner import lint_files
from ta_lint.syntax import parse
from ta_lint.syntax.tree import Tree

PAGES = sorted((Path(__file__).parent.parent / "rules").glob("TA*.md"))


@pytest.fixture(autouse=True)
def _nothing_frozen() -> Iterator[None]:
    """Here, what a command does to the collector is the subject."""
    gc.unfreeze()
    yield
    gc.enable()
    gc.freeze()  # as in all other tests


def test_it_is_away_for_a_while_and_then_back() -> None:
    with paused():
        assert not gc.isenabled()
        with paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_comes_back_early_to_a_command_that_goes_on() -> None:
    with paused():
        resume()
        assert gc.isenabled()
        assert gc.get_freeze_count() > 0
    assert gc.isenabled()


def test_a_program_that_sent_it_away_keeps_it_away() -> None:
    gc.disable()
    with paused():
        resume()
        assert not gc.isenabled()
    assert not gc.isenabled()
    assert gc.get_freeze_count() == 0


def test_nothing_of_pyflakes_waits_for_the_collector() -> None:
    code = "import torch\n\ndef train(model):\n    total = [loss for loss in model]\n    return totl\n"
    source = Source("train.py", code)
    flakes.messages(source)  # which imports pyflakes
    flakes.messages.cache_clear()
    gc.collect()
    gc.disable()
    syntax = weakref.ref(source.syntax)
    assert [message.lineno for message in flakes.messages(source)] == [1, 4, 5]
    flakes.messages.cache_clear()
    del source
    assert syntax() is None


def test_no_tree_waits_for_the_collector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A circle of facts that reaches the tree would keep the memory of every file."""
    trees: list[weakref.ref[Tree]] = []

    class Watched(Tree):
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments)  # type: ignore[arg-type]
            trees.append(weakref.ref(self))

    monkeypatch.setattr(parse, "Tree", Watched)
    config = Configs(Options(select=["ALL"]), tmp_path).root_config
    gc.collect()
    gc.disable()
    left = []
    for page in PAGES:
        for block in blocks(page):
            engine.lint(File(tmp_path / "train.py", "train.py", config), block.code.encode())
            program_of.cache_clear()  # it keeps files for the next ones, within a budget
            left += [str(block) for tree in trees if tree() is not None]
            trees.clear()
    assert left == []


def test_what_a_dry_run_leaves_behind_is_freed_after_each_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alive: list[int] = []
    machines: weakref.WeakSet[Machine] = weakref.WeakSet()
    begin = Machine.__init__

    def counted(machine: Machine, *args: Any) -> None:
        alive.append(len(machines))
        machines.add(machine)
        begin(machine, *args)

    monkeypatch.setattr(Machine, "__init__", counted)
    config = Configs(Options(), tmp_path).root_config
    code = "import torch\nmodel = torch.nn.Linear(2, 1)\nfor x in load():\n    model(x).sum().backward()\n"
    for name in ("one.py", "two.py", "three.py"):
        (tmp_path / name).write_text(code, "utf-8")
    files = [File(tmp_path / name, name, config) for name in ("one.py", "two.py", "three.py")]
    assert len(list(lint_files(files, 1))) == 3
    assert alive == [0, 0, 0]
