"""What observers stand on: how they are found, how they wrap, and how they tell who called."""

import importlib
import inspect
import pkgutil
import re
from pathlib import Path
from types import FrameType

import pytest

import ta_runtime.observers as package
from ta_runtime.observers import Observer, observers  # type: ignore[attr-defined]
from ta_runtime.probes.loops import around
from ta_runtime.probes.places import Place, discards


def test_each_observer_is_found_once() -> None:
    modules = [
        importlib.import_module(f"{package.__name__}.{each.name}")
        for each in pkgutil.iter_modules(package.__path__)
    ]
    written = {
        kind
        for module in modules
        for _, kind in inspect.getmembers(module, inspect.isclass)
        if issubclass(kind, Observer) and kind.__module__ != Observer.__module__
    }
    assert len(observers()) == len(written) > 20
    assert set(observers()) == written


def test_an_observer_has_no_public_method_that_looks_like_an_event_and_is_none() -> None:
    """A misspelt event would never be told."""
    events = {
        name for name, _ in inspect.getmembers(Observer, inspect.isfunction) if not name.startswith("_")
    }
    others = {
        f"{kind.__name__}.{name}"
        for kind in observers()
        for name, value in vars(kind).items()
        if inspect.isfunction(value) and not name.startswith("_") and name not in events
    }
    assert others == set()


def test_the_architecture_has_each_module_once_in_its_table_and_no_other() -> None:
    page = (Path(__file__).parents[1] / "docs/architecture.md").read_text(encoding="utf-8")
    table = page.partition("| modules of `observers` |")[2].partition("\n\n")[0]
    named = [name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    modules = {each.name for each in pkgutil.iter_modules(package.__path__)} - {
        "context",
        "observer",
        "window",
    }
    assert sorted(named) == sorted(modules)


@pytest.mark.parametrize(
    ("code", "thrown_away"),
    [
        ("load()", True),
        ("result = load()", False),
        ("print(load())", False),
        ("assert load() is None", False),
        ("load(); load", True),
        ("if True:\n    load()", True),
    ],
)
def test_a_call_that_is_a_statement_throws_its_result_away(code: str, thrown_away: bool) -> None:
    frames: list[bool] = []

    def load() -> None:
        frame: FrameType | None = inspect.currentframe()
        assert frame is not None
        assert frame.f_back is not None
        frames.append(discards(frame.f_back))

    exec(code, {"load": load, "print": lambda *_: None})  # noqa: S102
    assert frames == [thrown_away]


LOOPS = """\
from itertools import islice
steps = len(loader) // 2 * epochs
for epoch in range(epochs):
    for i, batch in enumerate(loader):
        train(batch)
        if i > 10:
            break
    for batch in islice(loader, 5):
        test(batch)
def run():
    while step < steps:
        step += 1
    done()
"""


@pytest.mark.parametrize(
    ("line", "header", "limit", "floored"),
    [(5, 4, 10, False), (9, 8, 5, False), (12, 11, None, True), (13, None, None, False)],
)
def test_the_innermost_loop_around_a_line(
    line: int, header: int | None, limit: int | None, floored: bool, tmp_path: Path
) -> None:
    path = tmp_path / "train.py"
    path.write_text(LOOPS, encoding="utf-8")
    loop = around(Place(str(path), line))
    assert (loop.place.line if loop else None) == header
    if loop is not None:
        assert (loop.limit, loop.floored) == (limit, floored)
