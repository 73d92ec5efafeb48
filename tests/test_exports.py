"""What a file binds at its top, read off its text."""

from pathlib import Path

import pytest

from ta_lint.project import exports as module
from ta_lint.project.around import Around
from ta_lint.project.exports import Exports, exports
from ta_lint.project.index import Index
from ta_lint.project.layout import Layout

CODE = '''\
"""A file."""
import torch.nn as nn, torch.optim
from . import layers
from .models import (
    Net,
    Other as Best,
)
from .all import *

try:
    from fast import attention
except ImportError:
    def attention(x): return x

RATE, EPOCHS = 0.1, 3
table: dict = {}

@torch.no_grad()
async def fetch(
    a, b=")",
):
    """Text
at the margin, which looks like code:
    """
    return a

@register("x")
class Head(
    nn.Module,  # a comment: with a colon
    metaclass=Meta,
):
    inner = 1

class Data(Dataset[Sample]): pass

class Plain:
    def method(self):
        def hidden(): ...
with open("f") as stream:
    for line in stream:
        count = 1
'''


def test_imports_classes_and_functions_are_told_apart() -> None:
    found = exports(CODE)
    assert found is not None
    assert found.target("nn") == "torch.nn"
    assert (found.target("torch"), found.target("layers"), found.target("Best")) == (
        "torch",
        ".layers",
        ".models.Other",
    )
    assert found.target("attention") is None, "it is bound in two ways"
    assert found.stars == (".all",)
    assert found.classes == {"Head": ("nn.Module",), "Data": ("Dataset",), "Plain": ()}
    assert found.functions == {"attention", "fetch"}
    assert {"RATE", "EPOCHS", "table", "stream", "line", "count"} <= found.names.keys()
    assert not {"hidden", "method", "inner"} & found.names.keys()


def whole(text: str, monkeypatch: pytest.MonkeyPatch) -> Exports | None:
    """As `exports`, without leaving out a body."""
    with monkeypatch.context() as context:
        context.setattr(module, "_without_body", lambda definition: definition[0])
        return exports(text)


def test_leaving_out_bodies_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    files = [*Path("ta_lint").rglob("*.py"), *Path("tests").rglob("*.py")]
    texts = [CODE, *(path.read_text(encoding="utf-8") for path in files)]
    assert [exports(text) for text in texts] == [whole(text, monkeypatch) for text in texts]


@pytest.mark.parametrize("text", ["x = (\n", "\0", "class A\n", "(" * 100_000, "x = 1\n\udcff"])
def test_what_python_cannot_parse_has_no_exports(text: str) -> None:
    assert exports(text) is None


@pytest.mark.parametrize(
    "line", ["@a\n", "class a\n", "from a import (\n", "import a,\n", " \n", "def f():\n", "import a, \\\n"]
)
def test_hostile_text_takes_linear_time(line: str, tmp_path: Path) -> None:
    text = line * 100_000
    exports(text)
    around = Around(Layout(str(tmp_path)), Index(str(tmp_path)))
    assert around.files(str(tmp_path / "a.py"), text.encode()) == []
