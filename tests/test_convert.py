"""Python's tree as libcst's nodes: they are those that libcst makes, and what is found in them is the same."""

import ast
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import libcst as cst
import pytest
from marked import blocks

from ta_lint.cli import main
from ta_lint.core.config import Configs, Options
from ta_lint.core.source import Source, decode
from ta_lint.engine import lint
from ta_lint.file import File
from ta_lint.syntax import parse
from ta_lint.syntax.convert import NotConvertible, converted
from ta_lint.syntax.tree import Node, children

ROOT = Path(__file__).parent.parent
PAGES = [*sorted((ROOT / "rules").glob("TA*.md")), *sorted((ROOT / "tests" / "cases").glob("TA*.md"))]

STATEMENTS = """
x = y = 1, 2.5, 3j, 0x1F, 1_000, -4
x, *y = z[1], z[1:2], z[::3], z[1, 2], z[1:, ..., None], z[(1, 2)], z[(1), 2], z[(1), (2)], z[*a, 1]
x += 1; y @= 2; z //= 3
x: int
x: list[int] = []
del x
del x, y[0]
del (x, y)
assert x, "so"
raise
raise A from B
global a, b
import a, b.c.d as e
from . import a
from ..b.c import (d, e as f,)
from g import *
pass; pass
if a: b
if a:
    b
elif c: d; e
else:
    if f:
        g
for x in y: break
else: z
while (a
       and b): continue
with a, b as c, (d) as (e, f): pass
with (a as b, c): pass
try: a
except: b
try:
    a
except (A, B) as c:
    d
except D: pass
else: e
finally: f
try: a
except* A as b: c
@a.b(c)
@d
class A(B, *C, metaclass=D, **E): "doc"
class A: x = 1; y = 2
@a
def f(a, /, b: int = 1, *, c, d=2) -> int: return a
def g(*args: int, e, **kwargs): yield
def h(a, b=1, *, c): nonlocal_ = yield from a
async def i(*a, **k):
    async with a as b: await c
    async for d in e: yield d
    return [f async for f in g if h if i for j in k], {l for l in m}, {n: o for n, o in p}
lambda: 1
lambda a, *b, c=1, **d: (a, b)
f(a, *b, c, d=1, *e, f=2, **g)
f(x for x in y)
a and b and (c and d) or not e
a < b <= c != d == e > f >= g is h is not i in j not in k
-a + +b - ~c * d / e // f % g ** h << i >> j | k ^ l & m @ n
a if b else c
{**a, b: c, "d": e}, {f, *g}, [h, *i], (j,), ()
(k := 1)
"k" f"{l}" 'm', ("n"  # "o"
    rf"{p!r}" "" u"s" \\
    F'{t:{u}}' f"\\d{v}{{" f"{w=}"), b"x" rb"" if y else f"{z}" f"" f"}}" 'a'
"a", 'b', \"\"\"c
d\"\"\", b"e", rb'f', u"g", "h" "i", ("j"
    'k')
f"a", f"{b}", f"{c!r:>{d}}", f"{e['f']}", f"{g=}", "h" f"{i}", f"{'j' 'k'}", rf"{l:%Y-%m}", f'''{
m}'''
match x, y:
    case [a, *b, _], (c, d): pass
    case {"e": f, **g} if g: pass
    case A(h, i=j) as k: pass
    case -1 | 1.5 | None | B.c | "l" | True: pass
    case m, *_: pass
    case (n): pass
    case _: pass
"é", d["é"], f("é", "ü")[0, "ö"], 'é' + "x" + 'ß'
"""


def differences(theirs: Node, ours: Node) -> Iterator[str]:
    """Where two trees differ in what is no layout."""
    if type(theirs) is not type(ours):
        yield f"{type(theirs).__name__} is {type(ours).__name__}"
        return
    for field in ("value", "star"):
        word = getattr(theirs, field, None)
        if not isinstance(word, str) or isinstance(theirs, cst.FormattedStringText):
            continue
        if word != getattr(ours, field) and not in_formatted_string(theirs, ours):
            yield f"{word!r} is {getattr(ours, field)!r}"
    if type(getattr(theirs, "operator", None)) is not type(getattr(ours, "operator", None)):
        yield f"the operator {type(theirs.operator).__name__} is another"  # type: ignore[attr-defined]
    below = children(theirs), children(ours)
    if len(below[0]) != len(below[1]):
        yield f"{type(theirs).__name__} has {[type(child).__name__ for child in below[1]]}"
    for their_child, our_child in zip(*below, strict=False):
        yield from differences(their_child, our_child)


def in_formatted_string(theirs: Node, ours: Node) -> bool:
    """Whether two literals are one value, though the place of one in an f-string is not known."""
    literals = (cst.SimpleString, cst.Integer, cst.Float, cst.Imaginary)
    return isinstance(theirs, literals) and theirs.evaluated_value == ours.evaluated_value  # type: ignore[attr-defined]


def compared(path: str, text: str) -> list[str]:
    source = Source(path, text)
    assert isinstance(source.syntax, ast.Module)
    return list(differences(cst.parse_module(text), converted(source, source.syntax)[0]))


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_every_construct_is_as_libcst_has_it(newline: str) -> None:
    assert compared("a.py", STATEMENTS.replace("\n", newline)) == []


@pytest.mark.parametrize("package", ["torch.optim", "torch.nn.utils", "libcst.codemod"])
def test_so_are_whole_libraries(package: str) -> None:
    spec = find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    files = sorted(Path(spec.origin).parent.rglob("*.py"))
    assert len(files) > 10
    assert [path for path in files if compared(str(path), decode(path.read_bytes()))] == []


@pytest.mark.parametrize("text", ["if x: \\\n    y\n", "x = 1; \\\ny = 2\n", "d[()]\n"])
def test_what_the_tree_of_python_does_not_tell_is_left_to_libcst(text: str) -> None:
    source = Source("a.py", text)
    assert isinstance(source.syntax, ast.Module)
    with pytest.raises(NotConvertible):
        converted(source, source.syntax)


def test_layout_is_not_there_rather_than_wrong() -> None:
    source = Source("a.py", "(x)\n")
    assert isinstance(source.syntax, ast.Module)
    (name,) = [node for node in _below(converted(source, source.syntax)[0]) if isinstance(node, cst.Name)]
    with pytest.raises(AttributeError):
        _ = name.lpar


def test_the_sarif_of_a_tree_is_that_of_a_run_without_gates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Byte for byte, and so is the one that comes out of the cache."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    shutil.copytree(ROOT / "tests" / "healthy", tmp_path / "healthy")
    monkeypatch.chdir(tmp_path)

    def sarif(*options: str) -> bytes:
        assert main(["check", "--format=sarif", "--output=log.sarif", *options]) == 1
        return Path("log.sarif").read_bytes()

    reference = sarif("--no-gates", "--no-cache", "--jobs=1")
    assert reference.count(b'"ruleId"') > 10
    assert sarif("--jobs=2") == reference
    assert sarif() == reference  # all of it from the cache
    assert sarif("--no-cache", "--jobs=1") == reference


def _below(node: Node) -> Iterator[Node]:
    yield node
    for child in children(node):
        yield from _below(child)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_what_is_found_does_not_depend_on_keywords_or_on_who_parses(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Configs(Options(extend_select=[page.stem[:5]]), tmp_path).root_config
    file = File(tmp_path / "train.py", "train.py", config)
    codes = [block.code.encode() for block in blocks(page)]
    found = [lint(file, code) for code in codes]
    assert found == [lint(file._replace(gated=False), code) for code in codes]

    def refused(*_: object) -> None:
        raise NotConvertible

    monkeypatch.setattr(parse, "converted", refused)
    assert found == [lint(file, code) for code in codes]
