"""Programs that nobody would write: those of people, changed by chance, most of them still Python.

All chance comes from a `Random`: of a seed in `fuzz.py`, of hypothesis in the tests. Text has line feeds alone until
`dressed`, which knows of bytes.
"""

import ast
import re
import warnings
from collections.abc import Callable
from random import Random
from typing import NamedTuple

from fuzzing.originals import LARGEST, Originals

Mutation = Callable[[str, Random, Originals], str]

_WORD = re.compile(r"\b[^\W\d]\w*\b")
_TOKEN = re.compile(r"\w+|[^\S\n]+|\n|[^\w\s]")
_NUMBER = re.compile(r"(?<![\w.])\d[\w.]*")
_STRING = re.compile(r"(?<!\w)[rRbBuUfF]{0,2}(\"[^\"\n\\]*\"|'[^'\n\\]*')")
_IMPORT = re.compile(r"^(?P<indent> *)(?:import|from) .*$", re.MULTILINE)
_KEYWORDS = frozenset("False None True and as assert async await break class continue def del elif else except "
                      "finally for from global if import in is lambda nonlocal not or pass raise return try while "
                      "with yield".split())  # fmt: skip

_WRAPPERS = r"""if flag:|try:|try:+except ImportError:\n    torch = None|try:+finally:\n    pass|try:+except* ValueError as group:\n    pass
for item in items:|for item in items:+else:\n    pass|while True:|while True:+else:\n    done()|with open(x) as y, z:
with (\n    a as b,\n    c,\n):|def f(x, /, y=1, *, z, **more):|async def f():|async def f():\n    async with x as y:
async def f():\n    async for y in x:|class A:|class A(torch.nn.Module):|class A(B, metaclass=M):|match x:\n    case [A(y=1), *_] if y:
match x:\n    case {"a": 1, **rest} \| None:|if TYPE_CHECKING:|if typing.TYPE_CHECKING:|if not TYPE_CHECKING:
if __name__ == "__main__":|if 0:|if x:\n    pass\nelif y:|if x:\n    pass\nelse:|@decorated\ndef f(self):|@torch.no_grad()\ndef f(self):
class A(torch.nn.Module):\n    def forward(self, x):|class A(pl.LightningModule):\n    def training_step(self, batch, i):
for epoch in range(3):\n    for x, y in loader:|with torch.no_grad():|with torch.autocast("cuda"):|with torch.inference_mode(), a:
def f[T: int, *Ts, **P](x: T) -> T:|class A[T]:|if sys.version_info >= (3, 12):|model.eval()\nif (n := len(x)) > 1:"""
WRAPPERS = tuple(wrapper.replace("\\n", "\n").replace("\\|", "|")
                 for line in _WRAPPERS.split("\n") for wrapper in re.split(r"(?<!\\)\|", line))  # fmt: skip

_EXPRESSIONS = r"""({})|(\n{}\n)|(x := {})|[{}]|{{{}}}|({},)|(lambda: {})()|lambda x={}: x|[{} for x in y if x]|{{x: {} for x in y}}
({} for x in y)|f"{{{}}}"|f"{{{}!r:>{{w}}}} {{{{"|f'{{f"{{{}}}"}}'|({} if x else y)|not {}|-{}|await {}|(yield {})|(yield from {})
{}.x|{}()|{}[0]|{}[...,:,1:2]|{} + {}|{} if {} else {}|{} < {} <= {}|{}and{}|x[{}]|f({}, *{}, **{})|f(a={})|f(*{})|[*{}]|{{**{}}}|{}.backward()
{}.item()|{}.to("cuda")|torch.tensor({})|len({})|x @ {}|{} ** -1|str({})|({}\\n)|( # noqa\n{} # b\n)|{}.detach().cpu().numpy()|"a" "b" + {}"""
EXPRESSIONS = tuple(_EXPRESSIONS.replace("\n", "|").replace("\\n", "\n").split("|"))

STATEMENTS = tuple(
    """\
import torch
import torch as t
import torch.nn as nn, torch.nn.functional as F
from torch import *
from torch import nn as nn, optim as o
from . import torch
from torch.nn import (
    Linear,  # a
    ReLU as R,
)
from __future__ import annotations
type X[T] = list[T]
def f[T](x: T = 1, *args: *Ts) -> T: ...
class A[T, *Ts]: x: int = 1
x: "torch.Tensor" = y
x = y = z = []
x, *y = z
(x := 1)
x += 1; y -= 2
for x in y: pass
for x, (y, *z) in w: break
while x: x = f(x)
del x, y[0], z.a
global torch
nonlocal x
assert x, "y"
return
raise X from y
yield
await x
with a as (b, c): pass
lambda *a, b=1, **c: (yield)
x = f"{x=!r:^{y}}" f'{z}'
x = rf"\\{y}" fr'{x}'
x = b"a" b'c'
x = '''a
  b'''
x = 1if y else 2
x = not(y)
x = 0xFFor 1
print(x, file=y, end="")
exec("x = 1")
try: import torch
except ImportError: torch = None
optimizer.zero_grad(); loss.backward(); optimizer.step()
loss = criterion(model(x), y); total += loss
model = torch.nn.Sequential(torch.nn.Linear(1, 2), torch.nn.Softmax())
@property
class Y: pass
match x: # not a keyword
    case 1 | 2: pass
    case A(b=[c, *_]) as d: pass
match = case = type = _ = 1
type(x)
__all__ = ["f"]
if TYPE_CHECKING: import torch
x = yield = 1
𝐱 = x
torch.ｌoad(x)
def ñ(é): return é
x = [
# noqa
]
x = {  # type: ignore
}
pass # type: int
# type: ignore
# fmt: off
%matplotlib inline
...
x = (yield)
x = *a, *b
x[a:b, *c] = 1
async def f(): return [x async for x in y]
def f(a, b=1, /, *, c): pass""".split("\n")
)

_COMMENTS = """\
# noqa|# noqa: TA401|# noqa: TA002, TA600|# NOQA:ta600,nonsense-name|# ta: noqa|# ta: noqa: TA401|#|# type: ignore # noqa|# noqa : TA600 because
# noqa: E501 # noqa: TA600|# type: (int) -> str|# TA600|#noqa:TA1,TA9999|# coding: latin-1|# noqa: TA600,|# é ＃ noqa: TA600|# %%""".replace(
    "\n", "|"
).split("|")

_NUMBERS = "0 1 -1 0.0 1e400 1e-400 1_000 0x1F 0b1 0o7 1j 3.14 2**63 None True x ... 1. .5 00".split()
_STRINGS = """\
''|""|b''|"é"|"\\ud800"|"\\N{BULLET}"|r"\\"|'''a\nb'''|"a" 'b'|f"{x}"|f"{x:{y}}"|f'{x!r}'|u"a"|Rb"a"|"\\x00"|"%s" % x|"cuda"|"sum"|"a"*9|"\\\n"|'"'"'"'""".split(
    "|"
)
_PREFIXES = ["", "r", "b", "f", "rb", "u", "F", "Rb", "fr"]

_STRANGE_NAMES = [
    "ñ",
    "ｌoad",
    "𝐱",
    "ﬁt",
    "變量",
    "_",
    "__x",
    "self",
    "cls",
    "super",
    "match",
    "case",
    "type",
    "l" * 300,
]


class _Statement(NamedTuple):
    """A statement with lines of its own: the first and the last of them, from 0, and how far in it is."""

    first: int
    last: int
    indent: str
    is_simple: bool


def mutated(text: str, rng: Random, pool: Originals, mutations: int | None = None) -> str:
    """A program after some mutations, nearly all of which leave it Python if it was."""
    count = mutations if mutations is not None else min(1 + int(rng.expovariate(0.4)), 12)
    was_python = is_python(text)
    for _ in range(count):
        after = rng.choice(MUTATIONS)(text, rng, pool)
        if len(after) > 2 * LARGEST or "\r" in after:
            continue
        if not was_python or is_python(after) or rng.random() < 0.03:
            text = after
    return text


def is_python(text: str) -> bool:
    return _tree(text) is not None


def _tree(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings(action="ignore"):
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _statements(text: str, lines: list[str]) -> list[_Statement]:
    tree = _tree(text)
    if tree is None:
        return [_Statement(number, number, "", True) for number, line in enumerate(lines) if line.strip()]
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt):
            continue
        decorators = getattr(node, "decorator_list", [])
        first = min(item.lineno for item in (node, *decorators)) - 1
        last = (node.end_lineno or node.lineno) - 1
        if last >= len(lines):  # a form feed or another line end that is none to `split`
            continue
        indent = lines[node.lineno - 1][: node.col_offset]
        tail = lines[last].encode()[node.end_col_offset :].strip()
        if not indent.strip() and (not tail or tail.startswith(b"#")):
            found.append(
                _Statement(first, last, indent, not hasattr(node, "body") and not hasattr(node, "cases"))
            )
    return found


def _indented(lines: list[str], before: str, after: str) -> list[str]:
    return [after + line.removeprefix(before) if line.strip() else line for line in lines]


def _chosen(text: str, rng: Random) -> tuple[list[str], list[_Statement]]:
    """The lines of a program, and its statements, the ones to change first."""
    lines = text.split("\n")
    statements = _statements(text, lines)
    rng.shuffle(statements)
    return lines, statements


def delete_statement(text: str, rng: Random, pool: Originals) -> str:
    lines, statements = _chosen(text, rng)
    if len(statements) < 2:
        return text
    lines[statements[0].first : statements[0].last + 1] = []
    return "\n".join(lines)


def duplicate_statement(text: str, rng: Random, pool: Originals) -> str:
    lines, statements = _chosen(text, rng)
    if statements:
        one = statements[0]
        lines[one.last + 1 : one.last + 1] = lines[one.first : one.last + 1]
    return "\n".join(lines)


def move_statement(text: str, rng: Random, pool: Originals) -> str:
    """To another place, as far in as what stands there."""
    lines, statements = _chosen(text, rng)
    if len(statements) < 2:
        return text
    one, other = statements[:2]
    moved = _indented(lines[one.first : one.last + 1], one.indent, other.indent)
    if one.first <= other.first <= one.last:
        return text
    if other.first > one.last:
        lines[other.first : other.first] = moved
        lines[one.first : one.last + 1] = []
    else:
        lines[one.first : one.last + 1] = []
        lines[other.first : other.first] = moved
    return "\n".join(lines)


def swap_statements(text: str, rng: Random, pool: Originals) -> str:
    lines, statements = _chosen(text, rng)
    if len(statements) < 2:
        return text
    one, other = sorted(statements[:2])
    if other.first <= one.last:
        return text
    first, second = lines[one.first : one.last + 1], lines[other.first : other.last + 1]
    between = lines[one.last + 1 : other.first]
    lines[one.first : other.last + 1] = [
        *_indented(second, other.indent, one.indent),
        *between,
        *_indented(first, one.indent, other.indent),
    ]
    return "\n".join(lines)


def wrap_statement(text: str, rng: Random, pool: Originals) -> str:
    """In a `for`, a `class`, an `if TYPE_CHECKING`: one level in, or many."""
    lines, statements = _chosen(text, rng)
    if not statements:
        return text
    one = statements[0]
    last = one.last
    others = [other for other in statements if other.indent == one.indent and other.first > one.last]
    if others and rng.random() < 0.4:
        last = rng.choice(others).last
    body = _indented(lines[one.first : last + 1], one.indent, "")
    for _ in range(rng.choice([1, 1, 1, 1, 1, 1, 2, 3, 5, 18])):
        head, _, tail = rng.choice(WRAPPERS).partition("+")
        deep = " " * (len(head.split("\n")[-1]) - len(head.split("\n")[-1].lstrip()) + 4)
        body = [*head.split("\n"), *_indented(body, "", deep), *(tail.split("\n") if tail else ())]
        if head.startswith("try:") and not tail:
            body += ["except Exception: pass"]
    lines[one.first : last + 1] = _indented(body, "", one.indent)
    return "\n".join(lines)


def insert_statement(text: str, rng: Random, pool: Originals) -> str:
    """One of `STATEMENTS`, or one of another program."""
    lines, statements = _chosen(text, rng)
    if rng.random() < 0.5:
        number = rng.randrange(len(STATEMENTS))
        new = [STATEMENTS[number]]
        while not is_python("\n".join(new)) and len(new) < 4 and number + len(new) < len(STATEMENTS):
            new.append(STATEMENTS[number + len(new)])
    else:
        their_lines, theirs = _chosen(pool.block(rng), rng)
        if not theirs:
            return text
        new = _indented(their_lines[theirs[0].first : theirs[0].last + 1], theirs[0].indent, "")
    place, indent = (statements[0].first, statements[0].indent) if statements else (0, "")
    lines[place:place] = _indented(new, "", indent)
    return "\n".join(lines)


def join_lines(text: str, rng: Random, pool: Originals) -> str:
    """Two statements on one line, or a block on the line of its head."""
    lines, statements = _chosen(text, rng)
    simple = {one.first: one for one in statements if one.is_simple and "#" not in lines[one.last]}
    for one in simple.values():
        following = simple.get(one.last + 1)
        if following is not None and following.indent == one.indent:
            lines[one.last] += rng.choice([";", "; ", " ;\t"]) + lines[following.first].lstrip()
            del lines[following.first]
            return "\n".join(lines)
        if one.first > 0 and lines[one.first - 1].endswith(":") and rng.random() < 0.5:
            lines[one.first - 1] += " " + lines[one.first].lstrip()
            del lines[one.first]
            return "\n".join(lines)
    return text


def _expressions(text: str) -> tuple[bytes, list[tuple[int, int, ast.expr]]]:
    """A program in UTF-8, and where its expressions stand in it; those within f-strings aside, whose places are wrong."""
    tree = _tree(text)
    data = text.encode("utf-8", "surrogatepass")
    starts = [0]
    for line in data.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    found: list[tuple[int, int, ast.expr]] = []
    left: list[ast.AST] = [tree] if tree is not None else []
    while left:
        node = left.pop()
        if isinstance(node, ast.expr) and node.end_lineno is not None and node.end_lineno < len(starts):
            start = starts[node.lineno - 1] + node.col_offset
            end = starts[node.end_lineno - 1] + (node.end_col_offset or 0)
            found.append((start, end, node))
        if not isinstance(node, (ast.JoinedStr, ast.match_case)):
            left += ast.iter_child_nodes(node)
    return data, found


def _replaced(data: bytes, start: int, end: int, code: str) -> str:
    return (data[:start] + code.encode("utf-8", "surrogatepass") + data[end:]).decode(
        "utf-8", "surrogatepass"
    )


def change_expression(text: str, rng: Random, pool: Originals) -> str:
    """Wrapped, or another one of the program in its place."""
    data, found = _expressions(text)
    if not found:
        return text
    start, end, _ = rng.choice(found)
    if rng.random() < 0.3:
        other_start, other_end, _ = rng.choice(found)
        return _replaced(data, start, end, data[other_start:other_end].decode("utf-8", "surrogatepass"))
    template = rng.choice(EXPRESSIONS)
    old = data[start:end].decode("utf-8", "surrogatepass")
    return _replaced(data, start, end, template.format(*[old] * 3))


def change_arguments(text: str, rng: Random, pool: Originals) -> str:
    """Of a call: one less, one twice, one more, in another order, over several lines."""
    data, found = _expressions(text)
    calls = [(start, end, node) for start, end, node in found if isinstance(node, ast.Call)]
    if not calls:
        return text
    start, end, call = rng.choice(calls)
    places = {id(node): (begin, stop) for begin, stop, node in found}
    if call.func.end_lineno is None or id(call.func) not in places:
        return text
    arguments = [data[slice(*places[id(node)])].decode() for node in call.args if id(node) in places]
    for keyword in call.keywords:
        value = data[slice(*places[id(keyword.value)])].decode() if id(keyword.value) in places else "1"
        arguments.append(f"{keyword.arg}={value}" if keyword.arg is not None else f"**{value}")
    what = rng.randrange(7)
    if what == 0 and arguments:
        del arguments[rng.randrange(len(arguments))]
    elif what == 1:
        arguments.append(
            rng.choice(["*args", "**kwargs", "1", "x", "lr=0.1", "weights_only=False", "reduction='sum'"])
        )
    elif what == 2:
        rng.shuffle(arguments)
    elif what == 3:
        arguments.insert(0, rng.choice(["*args", "x", "...", "None", "lambda: 1", "(yield)", "x := 1"]))
    elif what == 4:
        arguments = [argument.partition("=")[2] or argument for argument in arguments]
    separator = rng.choice([", ", ",", ",\n    ", " ,  # a\n", ", \\\n "])
    trailing = (
        rng.choice(["", "", ",", ", # noqa\n", "\n"]) if arguments else rng.choice(["", " ", "\n", "# a\n"])
    )
    function = data[slice(*places[id(call.func)])].decode()
    return _replaced(data, start, end, f"{function}({separator.join(arguments)}{trailing})")


def break_line(text: str, rng: Random, pool: Originals) -> str:
    """A backslash and a line end, or a line end alone, where there is a blank."""
    places = [match.start() for match in re.finditer(r"(?<=\S) (?=\S)", text)]
    if not places:
        return text
    place = rng.choice(places)
    end = rng.choice(["\\\n", "\\\n  ", "\n", "# a\n"])
    return f"{text[:place]} {end}{text[place + 1 :]}"


def _one_of(expression: re.Pattern[str], text: str, rng: Random) -> re.Match[str] | None:
    found = list(expression.finditer(text))
    return rng.choice(found) if found else None


def rename(text: str, rng: Random, pool: Originals) -> str:
    """A name, once or everywhere, becomes another of the program, one that rules know, or a strange one."""
    names = sorted(set(_WORD.findall(text)) - _KEYWORDS)
    if not names:
        return text
    old = rng.choice(names)
    new = rng.choice(
        rng.choice([names, pool.names, _STRANGE_NAMES, ["torch", "nn", "F", "optim", "loss", "model"]])
    )
    if rng.random() < 0.5:
        return re.sub(rf"\b{old}\b", new, text)
    match = _one_of(re.compile(rf"\b{old}\b"), text, rng)
    return text if match is None else text[: match.start()] + new + text[match.end() :]


def change_literal(text: str, rng: Random, pool: Originals) -> str:
    expression, values = rng.choice([(_NUMBER, _NUMBERS), (_STRING, _STRINGS)])
    match = _one_of(expression, text, rng)
    if match is None:
        return text
    new = rng.choice(values)
    if expression is _STRING and rng.random() < 0.4:
        new = rng.choice(_PREFIXES) + match[1]
    elif rng.random() < 0.02:
        new = "9" * rng.choice([50, 4400])
    return text[: match.start()] + new + text[match.end() :]


def change_import(text: str, rng: Random, pool: Originals) -> str:
    """Renamed, moved to the end, into a `try`, a function or what only type checkers see, or by star."""
    match = _one_of(_IMPORT, text, rng)
    if match is None:
        return text
    code, indent = match[0].strip(), match["indent"]
    if "(" in code or "\\" in code:
        return text
    without = text[: match.start()] + text[match.end() + 1 :]
    inside = f"\n{indent}    "
    what = rng.randrange(9)
    if what == 0:
        alias = rng.choice(["t", "nn", "F", "torch", "th", "_", "optim"])
        if " as " in code:
            new = re.sub(r" as \w+", f" as {alias}" if rng.random() < 0.5 else "", code, count=1)
        else:
            new = f"{code} as {alias}"
    elif what == 1:
        return f"{without.rstrip()}\n{code}\n"
    elif what == 2:
        new = f"if TYPE_CHECKING:{inside}{code}"
    elif what == 3:
        new = f"try:{inside}{code}\n{indent}except ImportError:{inside}pass"
    elif what == 4:
        new = f"def later():{inside}{code}"
    elif what == 5 and code.startswith("from "):
        new = f"{code.partition(' import ')[0]} import *"
    elif what == 6:
        new = f"{code}\n{indent}{code}"
    elif what == 7:
        return f"{code}\n{without}"
    else:
        imports = [
            found[0] for found in _IMPORT.finditer(text) if "(" not in found[0] and not found["indent"]
        ]
        rng.shuffle(imports)
        shuffled = iter(imports)
        return _IMPORT.sub(
            lambda found: found[0] if "(" in found[0] or found["indent"] else next(shuffled), text
        )
    return f"{text[: match.start()]}{indent}{new}{text[match.end() :]}"


def add_comment(text: str, rng: Random, pool: Originals) -> str:
    lines = text.split("\n")
    number = rng.randrange(len(lines))
    comment = rng.choice(_COMMENTS)
    if rng.random() < 0.3:
        lines.insert(number, " " * rng.choice([0, 0, 4, 8, 3]) + comment)
    else:
        lines[number] += rng.choice(["  ", " ", ""]) + comment
    return "\n".join(lines)


def declare(text: str, rng: Random, pool: Originals) -> str:
    """`global` or `nonlocal` in a function, a decorator, a docstring, an annotation."""
    lines, statements = _chosen(text, rng)
    heads = [one for one in statements if lines[one.first].lstrip().startswith(("def ", "class ", "async "))]
    if not heads:
        return text
    one = heads[0]
    name = rng.choice(sorted(set(_WORD.findall(text)) - _KEYWORDS) or ["x"])
    if rng.random() < 0.4:
        decorator = rng.choice(
            [
                "@torch.no_grad()",
                "@property",
                "@torch.compile",
                "@a.b[0](1)",
                "@staticmethod",
                "@x if y else z",
            ]
        )
        lines.insert(one.first, one.indent + decorator)
    else:
        code = rng.choice(
            [
                f"global {name}",
                f"nonlocal {name}",
                '"""A docstring."""',
                f"{name}: int",
                f"{name} = 1",
                "super().__init__()",
            ]
        )
        lines.insert(one.first + 1, f"{one.indent}    {code}")
    return "\n".join(lines)


def add_chain(text: str, rng: Random, pool: Originals) -> str:
    """A long sum, a long chain of attributes or calls, a long `elif`, a deep nest, a large table."""
    data, found = _expressions(text)
    count = rng.choice([30, 90, 200, 200, 600])
    code, _, _ = rng.choice(
        [
            (" + ".join(["{0}"] * count), 0, 0),
            ("{0}" + ".a" * count, 0, 0),
            ("{0}" + "()" * count, 0, 0),
            ("{0}" + "[0]" * count, 0, 0),
            ("{0}" + ".relu()" * count, 0, 0),
            (" and ".join(["{0}"] * count), 0, 0),
            (" < ".join(["{0}"] * count), 0, 0),
            ("(" * min(count, 90) + "{0}" + ")" * min(count, 90), 0, 0),
            ("f(" * min(count, 90) + "{0}" + ")" * min(count, 90), 0, 0),
            ("not " * count + "{0}", 0, 0),
            ("-" * count + "{0}", 0, 0),
            ("{0} if x else " * min(count, 90) + "y", 0, 0),
            ("lambda: " * min(count, 90) + "{0}", 0, 0),
            ("[{0}" + ", 1" * count + "]", 0, 0),
            ("{{" + "1: {0}, " * count + "}}", 0, 0),
            ("'a' " * count, 0, 0),
        ]
    )
    if found and rng.random() < 0.8:
        start, end, _ = rng.choice(found)
        if end - start > 40:
            return text
        return _replaced(
            data, start, end, f"({code.format(data[start:end].decode('utf-8', 'surrogatepass'))})"
        )
    branches = "".join(f"elif x == {number}:\n    y = {number}\n" for number in range(min(count, 200)))
    return f"{text}\nif x:\n    pass\n{branches}"


def splice(text: str, rng: Random, pool: Originals) -> str:
    """With another program below it, above it, or in a function."""
    other = pool.block(rng)
    what = rng.randrange(3)
    if what == 0:
        return f"{text.rstrip()}\n{other}"
    if what == 1:
        return f"{other}\n{text}"
    body = "\n".join(_indented(other.split("\n"), "", "    "))
    return f"{text.rstrip()}\ndef spliced():\n{body}"


def change_tokens(text: str, rng: Random, pool: Originals) -> str:
    """One token goes, is doubled, changes places with its neighbour, or becomes one from elsewhere."""
    tokens: list[str] = _TOKEN.findall(text)
    if len(tokens) < 3:
        return text
    place = rng.randrange(len(tokens) - 2)
    what = rng.randrange(4)
    if what == 0:
        del tokens[place]
    elif what == 1:
        tokens.insert(place, tokens[place])
    elif what == 2:
        tokens[place], tokens[place + 2] = tokens[place + 2], tokens[place]
    else:
        tokens[place] = rng.choice(tokens)
    return "".join(tokens)


def change_space(text: str, rng: Random, pool: Originals) -> str:
    """Blanks and empty lines where there are fewer or none: form feeds, tabs, nothing."""
    blanks = [match.span() for match in re.finditer(r"(?<=\S)[ \t]+(?=\S)|[ \t]*\n|(?<=[(\[,])", text)]
    if not blanks:
        return text
    start, end = rng.choice(blanks)
    if "\n" in text[start:end]:
        new = rng.choice(["  \n", "\n\n", "\n\f\n", "\f\n", "\t\n", "\n\n\n", "\n \n", ";\n", "\n\f"])
    else:
        new = rng.choice(["\t", "   ", "\f", "", " \f ", "\x0b", "\xa0"])
    return text[:start] + new + text[end:]


MUTATIONS: tuple[Mutation, ...] = (
    delete_statement, duplicate_statement, move_statement, move_statement, swap_statements, wrap_statement, wrap_statement,
    wrap_statement, insert_statement, insert_statement, join_lines, join_lines, change_expression, change_expression,
    change_expression, change_arguments, change_arguments, break_line, rename, rename, rename, change_literal,
    change_import, change_import, change_import, add_comment, add_comment, declare, add_chain, splice, change_tokens, change_space,
)  # fmt: skip

_ENCODINGS = "latin-1 utf-8 utf8 utf-8-sig cp1252 ascii idna utf-7 punycode shift_jis iso-2022-jp euc-jp gb18030 rot13 hex mbcs utf-16 \
utf-32 unicode_escape raw_unicode_escape big5 cp037 hz koi8-r mac-roman klingon undefined utf_8 latin1 L1 string-escape".split()


def dressed(text: str, rng: Random) -> bytes:
    """A program as bytes: its line ends, indentation, encoding and byte-order mark; sometimes cut off or broken."""
    encoding = "utf-8"
    if rng.random() < 0.08:
        text = re.sub(r"^(?:    )+", lambda match: "\t" * (len(match[0]) // 4), text, flags=re.MULTILINE)
    elif rng.random() < 0.05:
        width = rng.choice([" ", "  ", "   ", "        ", " \t", "\f    "])
        text = re.sub(r"^(?:    )+", lambda match: width * (len(match[0]) // 4), text, flags=re.MULTILINE)
    if rng.random() < 0.06:
        text = text.rstrip("\n") + rng.choice(["", "", " ", "  # end", "\\", ";", "\n\n\n", "\n    ", "\n#"])
    if rng.random() < 0.05:
        encoding = rng.choice(_ENCODINGS)
        text = (
            rng.choice([f"# coding: {encoding}\n", f"#!/usr/bin/env python\n# -*- coding: {encoding} -*-\n"])
            + text
        )
    if rng.random() < 0.16:
        end = rng.choice(["\r\n", "\r\n", "\r"])
        text = text.replace("\n", end)
        if rng.random() < 0.3:
            text = re.sub(r"\r\n?", lambda match: rng.choice(["\r\n", "\n", "\r"]), text)
    try:
        data = text.encode(encoding)
    except (ValueError, LookupError):
        data = text.encode("utf-8", "surrogatepass")
    if rng.random() < 0.03:
        data = b"\xef\xbb\xbf" + data
    return broken(data, rng) if rng.random() < 0.05 else data


def broken(data: bytes, rng: Random) -> bytes:
    """Cut off, or with some bytes changed."""
    if not data:
        return data
    if rng.random() < 0.4:
        return data[: rng.randrange(len(data))]
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 5])):
        changed[rng.randrange(len(changed))] = rng.choice([rng.randrange(256), 0, 10, 13, 12, 34, 35, 40, 92])
    return bytes(changed)


def torchlike(text: str, rng: Random, pool: Originals) -> str:
    """A program of the bare grammar with names that rules know, and some code that they look at."""
    for name in sorted(set(_WORD.findall(text)) - _KEYWORDS):
        text = re.sub(rf"\b{re.escape(name)}\b", rng.choice(pool.names), text)
    text = f"import torch\n{text}"
    return text if rng.random() < 0.4 else splice(text, rng, pool)
