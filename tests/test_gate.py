"""`NEEDS` keeps files from being parsed, and never keeps a finding from being made."""

import ast
import keyword
import re
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from marked import Block, blocks

from ta_lint import checks
from ta_lint.checks import Check
from ta_lint.checks.gate import Needs, Text, need
from ta_lint.checks.running import runs
from ta_lint.core.config import Configs, Options
from ta_lint.core.finding import Finding
from ta_lint.core.letters import searchable
from ta_lint.engine import lint, lint_file
from ta_lint.file import File, worth_a_look
from ta_lint.fixing import fix_file

ROOT = Path(__file__).parent.parent
PAGES = [*sorted((ROOT / "rules").glob("TA*.md")), *sorted((ROOT / "tests" / "cases").glob("TA*.md"))]
OF_RULES_WITH_A_CHECK = [page for page in PAGES if checks.load(page.stem[:5]) is not None]


def found(block: Block, rule: str, folder: Path) -> list[Finding]:
    config = Configs(Options(select=[rule]), folder).root_config
    return lint(File(folder / "train.py", "train.py", config), block.code.encode())


@pytest.mark.parametrize("page", OF_RULES_WITH_A_CHECK, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_a_file_that_a_check_does_not_want_holds_no_finding_of_it(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = page.stem[:5]
    check = checks.load(rule)
    assert check is not None
    unwanted = [block for block in blocks(page) if not check.wants(Text(block.code.encode()))]
    monkeypatch.setattr(Check, "wants", lambda self, text: True)
    assert [finding for block in unwanted for finding in found(block, rule, tmp_path)] == []


def expressions(needs: Needs) -> Iterator[str]:
    for entry in needs:
        if isinstance(entry, str):
            yield entry
        elif isinstance(entry, tuple):
            yield from expressions(entry)


@pytest.mark.parametrize("page", OF_RULES_WITH_A_CHECK, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_what_is_looked_up_first_never_hides_where_an_expression_matches(page: Path) -> None:
    module = sys.modules[f"{checks.__name__}.{checks.stems()[page.stem[:5]]}"]
    texts = [block.code.encode() for block in blocks(page)]
    for expression in expressions(module.NEEDS):
        search = re.compile(expression.encode(), re.MULTILINE).search
        assert [need(expression)(Text(text)) for text in texts] == [
            search(Text(text).data) is not None for text in texts
        ]


@pytest.mark.parametrize("package", ["torch.optim", "torch.nn", "libcst"])
def test_gates_look_at_all_code_and_at_no_docstring_or_comment(package: str) -> None:
    spec = find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    kept = whole = 0
    for path in sorted(Path(spec.origin).parent.rglob("*.py")):
        data = path.read_bytes()
        text = Text(data).data
        assert without_docstrings(usual(text)) == without_docstrings(usual(data)), path
        kept, whole = kept + len(text), whole + len(data)
    assert kept < 0.9 * whole


LAYOUTS = {
    "a line that goes on after a backslash": (b"self.size\\\n    = 3\nx", b"self.size     = 3\nx"),
    "several of them": (b"a\\\nb\\\nc", b"a b c"),
    "with carriage returns": (b"a\\\r\nb", b"a b"),
    "a comment that ends in a backslash": (b"a  # no \\\nb", b"a  \nb"),
    "a comment behind code": (b"class A:  # of b\n    x", b"class A:  \n    x"),
    "a number sign in a string": (b'x = "# no"  # y', b'x = "# no"  '),
    "a comment that may be the end of a string": (b"x = 1  # don't", b"x = 1  # don't"),
    "form feeds": (b"x\n\f    a\n  \f b\f+c", b"x\n    a\n b +c"),
    "empty parentheses": (b"a.eval( ).b(\n    )", b"a.eval().b()"),
    "with a comment in them": (b"a(  # all\n)", b"a()"),
    "a block on the line of its head": (b"  if x[a:b]: c", b"  if x[a:b]:\n      c"),
    "of a function": (
        b"async def f(a: int, b=lambda x: {1: x}) -> A: c",
        b"async def f(a: int, b=lambda x: {1: x}) -> A:\n    c",
    ),
    "of a string": (b"with open(':'): c", b"with open(':'):\n    c"),
    "a head over several lines": (b"def f(\n    a: int,\n): c", b"def f(\n    a: int,\n): c"),
    "no block": (b"x = [\n    y\n    for y in z if y[1:]\n]", b"x = [\n    y\n    for y in z if y[1:]\n]"),
    "statements on one line": (b"  a; b ;c()\nd", b"  a\n  b\n  c()\nd"),
    "in a block": (b"if x: a; b", b"if x:\n    a\n    b"),
    "a semicolon in a string": (b"a = 'b; c'", b"a = 'b; c'"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gates_see_the_usual_layout(layout: str) -> None:
    given, kept = LAYOUTS[layout]
    assert Text(given).data == b"\n" + kept + b"\n"


def usual(data: bytes) -> bytes:
    """The layout that gates see, which strings are laid out in, too."""
    return re.sub(rb"\(\s+\)", b"()", data.replace(b"\\\n", b" "))


def without_docstrings(data: bytes) -> str:
    tree = ast.parse(data)
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            node = node.value
        elif not (isinstance(node, ast.Constant) and "\n" in str(node.value)):
            continue  # of a string of several lines one may look like a comment
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.dump(tree)


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ('def f():\n    """torch.save"""\n    x', False),
        ('class A:\n    r"""torch.save"""\n    x', False),
        ("x\n  # torch.save\ny", False),
        ('x = """torch.save"""', True),
        ('d = {1:\n"""torch.save"""}', False),  # no docstring, but a string all the same
        ('# """\ndef f():\n    """a"""\n    torch.save', True),
        ('x = \'a"""\'\ndef f():\n    torch.save\n    """a"""; \'"""\'', True),
        ('x = "a"; y = \'"""\'\ndef f():\n    torch.save', True),
        ("def f():\n    '''a\"\"\"'''\n    torch.save\n    \"\"\"b", True),
        ('def f():\n    """a\\"""torch.save"""', True),
    ],
)
def test_what_may_be_code_is_looked_at(text: str, seen: bool) -> None:
    assert need(r"torch\.save")(Text(text.encode())) is seen


@pytest.mark.parametrize(
    ("needs", "text", "wanted"),
    [
        ((), b"anything", True),
        (("zero_grad",), b"model.zero_grad()", True),
        (("zero_grad|backward",), b"loss.backward()", True),
        (("zero_grad|backward",), b"zero_grad|forward", True),
        (("zero_grad|backward",), b"loss.forward()", False),
        ((r"\.step\(",), b"optimizer.step()", True),
        ((r"\.step\(",), b"optimizer_step()", False),
        ((r"\bload\b",), b"reload", False),
        ((r"^load",), b"import x\nload", True),
        (("zero_grad", "backward"), b"model.zero_grad()", False),
        ((("zero_grad", r"\bload\b"),), b"torch.load()", True),
        ((("zero_grad", r"\bload\b"),), b"reload", False),
        ((("zero_grad", (r"\bload\b", "torch")),), b"torch.load()", True),
        ((("zero_grad", (r"\bload\b", "torch")),), b"json.load()", False),
        ((r"\bload\b|\bsave\b",), b"torch.save()", True),
        ((r"\b(?:load|save)\b",), b"(save)", True),
        ((r"\b(?:load|save)\b",), b"unsaved, saves, save_2, 2save", False),
        ((r"\bsave\b",), "é.save·".encode(), True),
        ((r"soft_?update\(",), b"softupdate()", True),
        ((r"(?:soft_)?update\(",), b"update()", True),
        ((r"clip_*grad{0,300}s",), b"clipgras", True),
        ((r"seeds?\b",), b"a seed", True),
        ((r"(?i)ema|average",), b"EMA", True),
        ((r"(?i:ema)_model",), b"EMA_model", True),
        ((r"(\w+) = nn|\b(\w+) = \2",), b"a = a", True),
        ((r"from\s+torch\s+import",), b"from torch  import nn", True),
        ((r"\.half\(|[a-z]load",), b"reload", True),
        ((r"\.half\(|[a-z]load",), b"half_load", False),
        ((r"save\(?model",), b"savemodel", True),
        ((((r"\bload\b", r"\.load"), (r"\bsave\b", r"\.save")),), b"torch.save(load)", True),
        ((((r"\bload\b", r"\.load"), (r"\bsave\b", r"\.save")),), b"save(load)", False),
        ((runs("main"),), b"import torch\n\nmain()\n", True),
        ((runs("main"),), b"def f():\n    main()\n", False),
        ((runs("main"),), b"def f():\n    pass\n\nif x:\n    f()\n", True),
        ((runs("main"),), b"def f(x=main()):\n    pass\n", True),
        ((runs("main"),), b"@main()\nclass A:\n    def f(self):\n        self.f()\n", True),
        ((runs("main"),), b'x = """\ndef f():\n    """; main()\n', True),
    ],
)
def test_every_need_has_to_be_met_and_of_a_tuple_one_and_of_a_tuple_in_that_all(
    needs: Needs, text: bytes, wanted: bool
) -> None:
    assert Check("TA600", tuple(map(need, needs)), None, None).wants(Text(text)) is wanted


DISGUISES = {
    "carriage returns alone": lambda code: code.replace("\n", "\r").encode(),
    "CRLF": lambda code: code.replace("\n", "\r\n").encode(),
    "names in full-width letters": lambda code: in_full_width(code).encode(),
    "UTF-7": lambda code: f"# coding: utf-7\n{code}".encode("utf-7"),
}


def in_full_width(code: str) -> str:
    """The letters of each name in its full-width form, which Python takes for the same name."""
    wide = re.sub(r"(?<![\w\"'])(?!(?:[rbf]+[\"']))[A-Za-z_]\w*", lambda name: widened(name[0]), code)
    try:
        return wide if ast.dump(ast.parse(wide)) == ast.dump(ast.parse(code)) else code
    except SyntaxError:  # a string in braces, and the like
        return code


def widened(name: str) -> str:
    return (
        name
        if keyword.iskeyword(name) or keyword.issoftkeyword(name)
        else "".join(WIDE.get(letter, letter) for letter in name)
    )


WIDE = {chr(code): chr(code + 0xFEE0) for code in range(ord("A"), ord("z") + 1) if chr(code).isalpha()}


@pytest.mark.parametrize("disguise", DISGUISES)
def test_a_check_wants_the_same_files_however_their_letters_and_lines_are_written(disguise: str) -> None:
    """A11: the gate has seen the bytes alone."""
    changed = 0
    for page in OF_RULES_WITH_A_CHECK:
        check = checks.load(page.stem[:5])
        assert check is not None
        for block in blocks(page):
            data = DISGUISES[disguise](block.code)  # type: ignore[no-untyped-call]
            if check.wants(Text(block.code.encode())):
                assert check.wants(Text(searchable(data))), (page.name, block.code)
                changed += not check.wants(Text(data))
    assert changed or disguise == "CRLF"


@pytest.mark.parametrize(
    "data",
    [
        "import torch\nx = torch.ｌoad('a', weights_only=False)\n".encode(),
        "import ｔｏｒｃｈ\nx = ｔｏｒｃｈ.load('a', weights_only=False)\n".encode(),
        "import torch\nﬁle = 'ＧＰＵ'; x = torch.𝗅𝗈𝖺𝖽('a', weights_only=False)\n".encode(),
        b"import torch\rx = torch.load('a', weights_only=False)\r",
        b"# coding: utf-7\nimport +AHQ-orch\nx = +AHQ-orch.load('a', weights_only=False)\n",
    ],
)
def test_what_python_reads_as_torch_is_found_with_and_without_gates(data: bytes, tmp_path: Path) -> None:
    """A11: in other letters, with other line ends and in an encoding of other bytes."""
    path = tmp_path / "train.py"
    path.write_bytes(data)
    file = File(path, "train.py", Configs(Options(select=["TA700"]), tmp_path).root_config)
    assert worth_a_look([file])
    found = lint(file, data)
    assert [finding.rule for finding in found] == ["TA700"]
    assert lint(file._replace(gated=False), data) == found


def test_text_in_other_letters_stays_as_it_is_where_a_fix_quotes_it(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text("import torch\nq, r = torch.ｑr(name('ＧＰＵ ﾊ'))  # ＧＰＵ\n", encoding="utf-8")
    file = File(path, "train.py", Configs(Options(select=["TA901"], unsafe_fixes=True), tmp_path).root_config)
    line = "q, r = torch.linalg.qr(name('ＧＰＵ ﾊ'))  # ＧＰＵ"
    assert fix_file(file).after.decode().splitlines()[1] == line


HIDDEN = {
    "TA209: how the mode is switched": """
import timm
import torch
net = timm.create_model("resnet50").cuda()
net.eval(*())
@torch.inference_mode()
def run(loader):
    for x in loader:
        print(net(x))
""",
    "TA304: a loop that steps without a backward": """
import torch
from torch import nn
model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
for step in range(4):
    model(torch.randn(3, 4))
    optimizer.step()
""",
    "TA309: a function that seeds, by its own name": """
from torch.utils.data import DataLoader
from transformers import set_seed
def init(worker):
    set_seed(42)
DataLoader(dataset, num_workers=2, worker_init_fn=init)
""",
    "TA415: a blank that is no blank": """
from torch import nn
class\tNet(nn.Module):
    def __init__(self):
        self.size = 3
""",
    "TA415: the last line of a file": """
from torch import nn
class Net(nn.Module):
    def __init__(self): self.size = 3""",
    "TA421: `forward` stands first": """
from torch import nn
class Head:
    def forward(self, x):
        return self.fc(x)
    def __init__(self):
        self.fc = nn.Linear(2, 2)
""",
    "TA424: parentheses around the name": """
import torch
(weight) = torch.zeros(3, requires_grad=True)
weight += 1
""",
    "TA424: the first line of a file": """weight = torch.zeros(3, requires_grad=True)
import torch
weight += 1
""",
    "TA428: an expression over several lines": """
from torch import optim
params = (
    p
    for p in model.parameters()
    if p.requires_grad
)
first = optim.Adam(params)
second = optim.SGD(params, lr=0.1)
""",
    "TA507: arguments over several lines": """
import torch
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
state = torch.zeros(2, 8)
for _ in range(8):
    outputs, state = model(
        torch.randn(2),
        state,
    )
    outputs.mean().backward()
    optimizer.step()
""",
    "TA854: a slice over two lines": """
import torch
for i in range(0, len(inputs), 4):
    rows = order[i
        : i + 4]
    criterion(model(inputs[rows]), targets[rows]).backward()
    optimizer.step()
""",
}


@pytest.mark.parametrize("case", HIDDEN)
def test_a_gate_wants_what_its_check_finds(case: str, tmp_path: Path) -> None:
    config = Configs(Options(select=[case[:5]]), tmp_path).root_config
    file = File(tmp_path / "train.py", "train.py", config, HIDDEN[case].encode())
    found = lint_file(file._replace(gated=False))
    assert {finding.rule for finding in found} == {case[:5]}
    assert lint_file(file) == found


SILENT = {
    "TA411: a layer that nobody calls": """
from torch import nn
class Net(nn.Module):
    def forward(self, x):
        layer = nn.Linear(2, 2)
        return x
""",
    "TA420: sizes that are read later": """
import torch
def forward(x, b, c, h, w):
    tokens = x.view(b, h * w, c)
    b, c, h, w = x.shape
    return tokens
""",
    "TA428: a method that nobody calls": """
from torch import optim
params = (p for p in model.parameters)
first = optim.Adam(params)
second = optim.SGD(params, lr=0.1)
""",
    "TA850: no optimizer of torch": """
import torch
EPOCHS = 2
for epoch in range(EPOCHS):
    loss(model(x)).backward()
    optimizer.step()
""",
    "TA001: what libcst alone refuses": """
import torch
class Net:
    def __init__():
\f        pass
""",
}


@pytest.mark.parametrize("case", SILENT)
def test_a_check_finds_nothing_that_its_gate_does_not_want(case: str, tmp_path: Path) -> None:
    config = Configs(Options(select=["ALL"]), tmp_path).root_config
    file = File(tmp_path / "train.py", "train.py", config, SILENT[case].encode())
    for given in (file, file._replace(gated=False)):
        assert case[:5] not in {finding.rule for finding in lint_file(given)}
