"""`KEYWORDS` keep files from being parsed, and never keep a finding from being made."""

import ast
import keyword
import re
from pathlib import Path

import pytest
from marked import Block, blocks

from ta_lint import checks
from ta_lint.checks import Check
from ta_lint.checks.gate import Gate, Keywords, Text
from ta_lint.core.config import Configs, Options
from ta_lint.core.finding import Finding
from ta_lint.core.letters import searchable
from ta_lint.engine import lint, lint_file
from ta_lint.file import File, may_hold_findings
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
    monkeypatch.setattr(Check, "wants", lambda self, text, around: True)
    assert [finding for block in unwanted for finding in found(block, rule, tmp_path)] == []


@pytest.mark.parametrize("page", OF_RULES_WITH_A_CHECK, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_the_gate_of_a_check_admits_every_block_that_is_marked_for_it(page: Path) -> None:
    rule = page.stem[:5]
    check = checks.load(rule)
    assert check is not None
    marked = [block for block in blocks(page) if rule in {found for _, found in block.expected("static")}]
    assert [str(block) for block in marked if not check.wants(Text(block.unmarked.encode()))] == []


@pytest.mark.parametrize("rule", checks.stems())
def test_keywords_are_plain_words(rule: str) -> None:
    keywords = vars(checks.module_of(rule))["KEYWORDS"]
    words = [word for entry in keywords for word in ((entry,) if isinstance(entry, str) else entry)]
    assert all(isinstance(entry, (str, tuple)) for entry in keywords)
    assert [word for word in words if not re.fullmatch(PLAIN, word)] == []


# A name, perhaps with a star at an end; a call that is a statement; an operator; the beginning of a token; a method that is called or handed on.
PLAIN = r"\*?[A-Za-z_]\w*\*?|\w+\(\);|[-+*/%=]{1,2}|[a-z]+-|\.[a-z]+[(),}\]]"


@pytest.mark.parametrize(
    ("keywords", "text", "admitted"),
    [
        ((), "anything", True),
        (("zero_grad",), "model.zero_grad()", True),
        (("zero_grad",), "_zero_grad, zero_grads, zero_grad_2", False),
        (("zero_grad",), "Zero_Grad", False),
        (("zero_grad",), 'getattr(model, "zero_grad")', True),
        (("zero_grad",), "x  # zero_grad comes later", True),
        (("save",), "é.save·", True),
        (("zero_grad", "backward"), "model.zero_grad()", False),
        (("zero_grad", "backward"), "loss.backward(model.zero_grad())", True),
        ((("zero_grad", "backward"),), "loss.backward()", True),
        ((("zero_grad", "backward"),), "loss.forward()", False),
        (("step", ("zero_grad", "backward")), "loss.backward()", False),
        (("*seed*",), "reseed_all", True),
        (("*seed*",), "SEED = 1", True),
        (("*seed*",), "se, ed", False),
        (("clip*",), "clip_grad", True),
        (("clip*",), "grad.clip", True),
        (("clip*",), "eclipse", False),
        (("*loss",), "my_Loss", True),
        (("*loss",), "losses", False),
        (("*norm1d",), "BatchNorm1d", True),
        ((("*loss", "log"),), "log", True),
        (("**",), "x ** 2", True),
        (("**",), "x * 2", False),
        (("==",), "x = 2", False),
        (("sk-",), "'sk-1'", True),
        (("clamp();",), "x.clamp(0, 1)", True),
        (("clamp();",), "if wide:\n    model.body[0].weight.float().clamp(0, 1)", True),
        (("clamp();",), "if wide: x.clamp(0, 1)", True),
        (("clamp();",), "clamp(x)\r", True),
        (("clamp();",), "y = x.clamp(0, 1)", False),
        (("clamp();",), "y = f(\n\n    x.clamp(0, 1)\n)", False),
        (("clamp();",), "x.clamp_(0, 1)", False),
    ],
)
def test_all_keywords_must_be_there_and_of_a_tuple_one(keywords: Keywords, text: str, admitted: bool) -> None:
    assert Gate(keywords).admits(Text(text.encode())) is admitted


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
    assert changed or disguise != "names in full-width letters"


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
    assert may_hold_findings([file])
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
model = torch.nn.GRU(4, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
state = torch.zeros(1, 2, 8)
for _ in range(8):
    outputs, state = model(
        torch.randn(5, 2, 4),
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
def test_a_check_is_silent_with_and_without_gates(case: str, tmp_path: Path) -> None:
    config = Configs(Options(select=["ALL"]), tmp_path).root_config
    file = File(tmp_path / "train.py", "train.py", config, SILENT[case].encode())
    for given in (file, file._replace(gated=False)):
        assert case[:5] not in {finding.rule for finding in lint_file(given)}
