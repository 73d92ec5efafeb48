"""Generated sources whose length is a parameter: the shapes for which the work of the linter must grow in proportion.

`tests/test_growth.py` counts the work, and `benchmarks/growth.py` times it at 100 KB.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

IMPORTS = """\
import copy
import torch
import torch.nn.functional as F
from torch import nn
"""
LOOP = """\
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(data, batch_size=2)
for x, y in loader:
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
"""

Files = Mapping[str, bytes]
_Write = Callable[[int], str]


@dataclass(frozen=True)
class Shape:
    """A shape, the length at which it is counted first, and what writes it: the file `train.py`, or several."""

    name: str
    start: int
    files: Callable[[int], Files]

    def __str__(self) -> str:
        return self.name


SHAPES: list[Shape] = []


def _shape(start: int) -> Callable[[_Write], _Write]:
    """A shape of one file, which also imports torch and trains a model."""

    def added(write: _Write) -> _Write:
        def files(size: int) -> Files:
            return {"train.py": (IMPORTS + write(size) + LOOP).encode()}

        SHAPES.append(Shape(write.__name__.replace("_", " "), start, files))
        return write

    return added


def _project(start: int) -> Callable[[Callable[[int], Files]], Callable[[int], Files]]:
    """A shape of several files."""

    def added(write: Callable[[int], Files]) -> Callable[[int], Files]:
        SHAPES.append(Shape(write.__name__.replace("_", " "), start, write))
        return write

    return added


def _lines(size: int, *lines: str) -> str:
    """Lines, with `{n}` for the number, `{m}` for that of the one before."""
    return "".join(
        line.replace("{n}", str(n)).replace("{m}", str(max(n - 1, 0))) + "\n"
        for n in range(size)
        for line in lines
    )


def _indented(text: str, levels: int = 1) -> str:
    return "".join("    " * levels + line for line in text.splitlines(keepends=True))


# -- assignments ----------------------------------------------------------------------------------------------


@_shape(100)
def one_name_assigned_again(size: int) -> str:
    return "x = torch.ones(3)\n" + _lines(size, "x = F.relu(x)")


@_shape(100)
def one_name_assigned_again_in_forward(size: int) -> str:
    body = _lines(size, "x = F.relu(x)")
    return "class Net(nn.Module):\n    def forward(self, x):\n" + _indented(body, 2) + "        return x\n"


@_shape(100)
def one_name_loaded_again(size: int) -> str:
    return _lines(size, "x = torch.load('weights{n}.pt')")


@_shape(100)
def each_name_from_the_last(size: int) -> str:
    return "x0 = torch.ones(3)\n" + _lines(size, "x{n} = F.relu(x{m})")


@_shape(100)
def names_of_names(size: int) -> str:
    return "a0 = nn.ReLU\n" + _lines(size, "a{n} = a{m}")


@_shape(60)
def pairs_unpacked(size: int) -> str:
    return "a, b = 1, torch.ones(3)\n" + _lines(size, "a, b = b, a")


@_shape(60)
def sums_augmented(size: int) -> str:
    return "total = torch.zeros(1)\n" + _lines(size, "total += F.relu(total)", "total = total + 1")


@_shape(60)
def walrus_chains(size: int) -> str:
    return "x = torch.ones(3)\n" + _lines(
        size, "if (x := F.relu(x)) is not None and (y{n} := x):", "    print(y{n})"
    )


@_shape(60)
def attributes_of_self(size: int) -> str:
    made = "def __init__(self):\n    super().__init__()\n" + _indented(
        _lines(size, "self.a{n} = nn.Linear(4, 4)")
    )
    run = "def forward(self, x):\n" + _indented(_lines(size, "x = self.a{n}(x)")) + "    return x\n"
    return "class Net(nn.Module):\n" + _indented(made + run)


@_shape(60)
def one_attribute_assigned_again(size: int) -> str:
    made = "def __init__(self):\n    super().__init__()\n    self.net = nn.Linear(4, 4)\n"
    made += _indented(_lines(size, "self.net = nn.Sequential(self.net, nn.ReLU())"))
    return "class Net(nn.Module):\n" + _indented(made)


@_shape(60)
def entries_written(size: int) -> str:
    return "state = {}\n" + _lines(size, "state['k{n}'] = torch.ones(3)", "print(state['k{m}'])")


@_shape(60)
def globals_assigned_in_functions(size: int) -> str:
    return "step = 0\n" + _lines(
        size, "def f{n}():", "    global step", "    step = step + {n}", "    return step"
    )


# -- branches, loops and blocks ---------------------------------------------------------------------------------


@_shape(60)
def branches_in_sequence(size: int) -> str:
    return "loss = torch.zeros(1)\n" + _lines(size, "if flag:", "    loss = loss + F.relu(loss)")


@_shape(60)
def branches_of_one_choice(size: int) -> str:
    return "if x:\n    y = 0\n" + _lines(size, "elif x == {n}:", "    y = F.relu(y)") + "print(y)\n"


@_shape(20)
def nested_branches(size: int) -> str:
    size = min(size, 90)
    return "x = torch.ones(3)\n" + "".join(
        " " * n + f"if x[{n}]:\n" + " " * (n + 1) + "x = F.relu(x)\n" for n in range(size)
    )


@_shape(20)
def nested_conditions(size: int) -> str:
    return "x = " + "".join(f"F.relu(x) if y == {n} else " for n in range(size)) + "None\n"


@_shape(60)
def matches(size: int) -> str:
    cases = _lines(size, "case {'k': a{n}, **rest} if a{n} > {n}:", "    loss = a{n} + {n}")
    return "loss = 0\nmatch x:\n" + _indented(cases) + "print(loss)\n"


@_shape(40)
def matches_in_sequence(size: int) -> str:
    return "loss = 0\n" + _lines(
        size,
        "match loss:",
        "    case {n}:",
        "        loss = loss + 1",
        "    case [a, *_]:",
        "        loss = a",
    )


@_shape(40)
def a_loop_with_many_statements(size: int) -> str:
    body = _lines(size, "h = F.relu(h)", "loss = F.mse_loss(h, y)", "log.append(loss.item())")
    return "for h, y in loader:\n" + _indented(body) + "    loss.backward()\n    optimizer.step()\n"


@_shape(20)
def training_loops(size: int) -> str:
    return _lines(size, *LOOP.splitlines())


@_shape(20)
def training_functions(size: int) -> str:
    body = "model.train()\n" + LOOP.partition("\n")[2]
    return _lines(size, "def train{n}(model, data):", *_indented(body).splitlines(), "train{n}(model, data)")


@_shape(6)
def nested_loops(size: int) -> str:
    size = min(size, 18)
    lines = "".join(
        " " * n + f"for i{n} in range(3):\n" + " " * (n + 1) + "x = F.relu(x)\n" for n in range(size)
    )
    return "x = torch.ones(3)\n" + lines


@_shape(60)
def loops_in_sequence(size: int) -> str:
    return "x = torch.ones(3)\n" + _lines(
        size, "for _ in range(3):", "    x = F.relu(x)", "    if x.sum() > {n}:", "        break"
    )


@_shape(6)
def nested_with(size: int) -> str:
    size = min(size, 18)
    return "".join(
        " " * n + f"with torch.no_grad() as c{n}:\n" + " " * (n + 1) + "x = F.relu(x)\n" for n in range(size)
    )


@_shape(60)
def with_in_sequence(size: int) -> str:
    return _lines(
        size, "with torch.no_grad(), open('a{n}') as file:", "    x = F.relu(x)", "    y = file.read()"
    )


@_shape(6)
def nested_try(size: int) -> str:
    size = min(size, 18)
    opened = "".join(" " * n + "try:\n" + " " * (n + 1) + "x = F.relu(x)\n" for n in range(size))
    return opened + "".join(
        " " * n + "except ValueError as e:\n" + " " * (n + 1) + "x = torch.ones(3)\n"
        for n in reversed(range(size))
    )


@_shape(60)
def try_in_sequence(size: int) -> str:
    return "x = torch.ones(3)\n" + _lines(
        size, "try:", "    x = F.relu(x)", "except ValueError as e:", "    x = e", "finally:", "    print(x)"
    )


# -- functions and classes --------------------------------------------------------------------------------------


@_shape(8)
def nested_functions(size: int) -> str:
    size = min(size, 60)
    return (
        "".join(" " * n + f"def f{n}(x):\n" + " " * (n + 1) + "y = F.relu(x)\n" for n in range(size))
        + " " * size
        + "return y\n"
    )


@_shape(60)
def calls_in_a_chain(size: int) -> str:
    return (
        "def f0(x):\n    return F.relu(x)\n"
        + _lines(size, "def g{n}(x):", "    return f{n}(x)", "def f{n}(x):", "    return g{m}(x)")
        + f"f{size - 1}(torch.ones(3))\n"
    )


@_shape(6)
def calls_of_all_by_all(size: int) -> str:
    calls = "\n".join(f"    x = f{n}(x)" for n in range(size))
    return _lines(size, "def f{n}(x):", calls, "    return x") + "f0(torch.ones(3))\n"


@_shape(40)
def calls_of_two_before(size: int) -> str:
    head = "def f0(x):\n    return F.relu(x)\ndef f1(x):\n    return f0(x)\n"
    return (
        head
        + "".join(f"def f{n}(x):\n    return f{n - 1}(x) + f{n - 2}(x)\n" for n in range(2, size))
        + f"f{size - 1}(torch.ones(3))\n"
    )


@_shape(40)
def mutual_recursion(size: int) -> str:
    return (
        "".join(
            f"def f{n}(x):\n    if x.sum() > {n}:\n        return f{(n + 1) % size}(x)\n    return f{(n * 7 + 3) % size}(F.relu(x))\n"
            for n in range(size)
        )
        + "f0(torch.ones(3))\n"
    )


@_shape(60)
def one_function_called_often(size: int) -> str:
    return "def step(x, model=None):\n    return F.relu(x)\n" + _lines(
        size, "y{n} = step(torch.ones({n}), model=y{m})"
    )


@_shape(40)
def one_method_in_many_classes(size: int) -> str:
    return _lines(
        size,
        "class N{n}(nn.Module):",
        "    def forward(self, x):",
        "        return F.relu(x)",
        "    def step(self, x):",
        "        return self.forward(x)",
        "n{n} = N{n}()",
        "n{n}.step(torch.ones(3))",
    )


@_shape(40)
def classes_in_a_chain(size: int) -> str:
    head = "class C0(nn.Module):\n    def f0(self, x):\n        return F.relu(x)\n"
    return (
        head
        + "".join(
            f"class C{n}(C{n - 1}):\n    def f{n}(self, x):\n        return self.f{n - 1}(x)\n"
            for n in range(1, size)
        )
        + f"C{size - 1}().f{size - 1}(torch.ones(3))\n"
    )


@_shape(20)
def classes_in_diamonds(size: int) -> str:
    head = "class C0(nn.Module): pass\nclass C1(nn.Module): pass\n"
    return (
        head
        + "".join(
            f"class C{n}(C{n - 1}, C{n - 2}):\n    def f{n}(self):\n        return self.f{n - 1}()\n"
            for n in range(2, size)
        )
        + f"net = C{size - 1}()\nnet.f{size - 1}()\n"
    )


@_shape(20)
def overrides_in_a_chain(size: int) -> str:
    head = "class C0(nn.Module):\n    def forward(self, x):\n        return x\n"
    return head + "".join(
        f"class C{n}(C{n - 1}):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(4, 4)\n"
        f"    def forward(self, x):\n        return super().forward(self.fc(x))\n"
        for n in range(1, size)
    )


@_shape(60)
def decorators(size: int) -> str:
    return _lines(size, "@torch.no_grad()", "@wraps(f{m})") + "def f(x):\n    return F.relu(x)\n"


@_shape(60)
def decorated_functions(size: int) -> str:
    return _lines(
        size, "@torch.no_grad()", "def f{n}(x, *args, y=None, **kwargs):", "    return F.relu(x)", "f{n}(1)"
    )


@_shape(60)
def lambda_chains(size: int) -> str:
    return "f0 = lambda x: F.relu(x)\n" + _lines(size, "g{n} = lambda x: f{n}(x)", "f{n} = lambda x: g{m}(x)")


@_shape(20)
def nested_lambdas(size: int) -> str:
    size = min(size, 80)
    return "f = " + "".join(f"lambda x{n}: " for n in range(size)) + "F.relu(x0)\n"


@_shape(60)
def parameters_of_one_function(size: int) -> str:
    names = [f"p{n}" for n in range(size)]
    passed = ", ".join(f"{name}=torch.ones(3)" for name in names)
    return (
        f"def f({', '.join(names)}):\n"
        + "".join(f"    print(F.relu({name}))\n" for name in names)
        + f"f({passed})\nf({passed})\n"
    )


# -- expressions ------------------------------------------------------------------------------------------------


@_shape(60)
def a_big_list(size: int) -> str:
    return f"x = [{', '.join(f'nn.Linear({n}, 4)' for n in range(size))}]\n" + _lines(size, "print(x[{n}])")


@_shape(60)
def a_big_tuple(size: int) -> str:
    names = ", ".join(f"a{n}" for n in range(size))
    return f"{names} = ({', '.join(f'torch.ones({n})' for n in range(size))})\n" + _lines(
        size, "print(F.relu(a{n}))"
    )


@_shape(60)
def a_big_dict(size: int) -> str:
    entries = ", ".join(f"'k{n}': nn.Linear({n}, 4)" for n in range(size))
    return f"x = {{{entries}}}\n" + _lines(size, "print(x['k{n}'])")


@_shape(60)
def a_table_of_numbers(size: int) -> str:
    rows = ",\n".join(f"[{', '.join(f'-{n}.{m}' for m in range(8))}]" for n in range(size))
    return f"x = torch.tensor([{rows}])\n"


@_shape(60)
def a_sequential(size: int) -> str:
    return f"net = nn.Sequential({', '.join(['nn.Linear(4, 4), nn.ReLU()'] * size)})\nnet(torch.ones(4)).sum().backward()\n"


@_shape(20)
def nested_lists(size: int) -> str:
    size = min(size, 80)
    return f"x = {'[' * size}torch.ones(3){']' * size}\nprint(x{'[0]' * size})\n"


@_shape(60)
def a_long_f_string(size: int) -> str:
    return f"""print(f"{"".join(f"{{loss:.{n}f}} a {{F.relu(x)}} " for n in range(size))}")\n"""


@_shape(60)
def f_strings(size: int) -> str:
    return _lines(size, 'print(f"{n} {loss.item():.3f} {x!r}" f"{torch.ones({n})}" "end")')


@_shape(60)
def a_long_sum(size: int) -> str:
    return "a = torch.ones(3)\nx = " + " + ".join(["a"] * size) + "\nx.backward()\n"


@_shape(60)
def a_long_sum_of_losses(size: int) -> str:
    return (
        "x = torch.ones(3)\nloss = "
        + " + ".join(f"0.{n} * F.mse_loss(x, x)" for n in range(1, size))
        + "\nloss.backward()\n"
    )


@_shape(60)
def a_long_condition(size: int) -> str:
    return "x = " + " and ".join(f"a{n} is None" for n in range(size)) + "\n"


@_shape(30)
def attributes_in_a_chain(size: int) -> str:
    return (
        "class Net(nn.Module):\n    def forward(self, x):\n        return self" + ".a" * size + ".last(x)\n"
    )


@_shape(30)
def methods_in_a_chain(size: int) -> str:
    return "x = torch.ones(3)" + "".join(f".view({n}, -1).float()" for n in range(size)) + "\nx.backward()\n"


@_shape(30)
def calls_in_calls(size: int) -> str:
    size = min(size, 80)
    return "x = " + "F.relu(" * size + "torch.ones(3)" + ")" * size + "\n"


@_shape(5)
def nested_comprehensions(size: int) -> str:
    return "x = " + "[" * size + "F.relu(y)" + "".join(f" for y in x{n}]" for n in range(size)) + "\n"


@_shape(60)
def comprehensions(size: int) -> str:
    return _lines(size, "x{n} = [F.relu(a) for a in x{m} if a]", "y{n} = {k: v for k, v in y{m}.items()}")


@_shape(60)
def a_comprehension_with_many_loops(size: int) -> str:
    return "x = [1 " + " ".join(f"for a{n} in range(a{max(n - 1, 0)})" for n in range(size)) + "]\n"


# -- models and training ----------------------------------------------------------------------------------------


@_shape(20)
def optimizers(size: int) -> str:
    return (
        _lines(
            size,
            "m{n} = nn.Linear(4, 1)",
            "o{n} = torch.optim.Adam(m{n}.parameters(), lr=1e-3)",
            "s{n} = torch.optim.lr_scheduler.StepLR(o{n}, 1)",
        )
        + "for x, y in loader:\n"
        + _indented(
            _lines(
                size, "o{n}.zero_grad()", "F.mse_loss(m{n}(x), y).backward()", "o{n}.step()", "s{n}.step()"
            )
        )
    )


@_shape(20)
def losses(size: int) -> str:
    head = "net = nn.Linear(4, 1)\ncriterion = nn.CrossEntropyLoss()\nopt = torch.optim.Adam(net.parameters())\nfor x, y in loader:\n    opt.zero_grad()\n    out = net(x)\n"
    terms = _lines(size, "l{n} = criterion(out, y) * 0.{n}", "total{n} = l{n} + l{m}")
    return head + _indented(terms) + f"    total{size - 1}.backward()\n    opt.step()\n"


@_shape(20)
def backward_calls(size: int) -> str:
    return "for x, y in loader:\n" + _indented(
        _lines(
            size,
            "optimizer.zero_grad()",
            "loss = F.mse_loss(model(x), y)",
            "loss.backward(retain_graph=True)",
            "optimizer.step()",
        )
    )


@_shape(20)
def wrapped_models(size: int) -> str:
    return "model = nn.Linear(4, 1)\n" + _lines(
        size, "model = nn.DataParallel(model)", "model = model.to('cuda')", "model = torch.compile(model)"
    )


@_shape(20)
def models(size: int) -> str:
    return _lines(
        size,
        "class Net{n}(nn.Module):",
        "    def __init__(self, width):",
        "        super().__init__()",
        "        self.fc = nn.Linear(width, 4)",
        "        self.layers = [nn.Linear(4, 4) for _ in range(3)]",
        "    def forward(self, x):",
        "        x = self.fc(x)",
        "        for layer in self.layers:",
        "            x = F.relu(layer(x))",
        "        return F.softmax(x, dim=1)",
        "net{n} = Net{n}(4)",
        "F.cross_entropy(net{n}(x), y).backward()",
    )  # fmt: skip


@_shape(60)
def checkpoints_saved(size: int) -> str:
    return _lines(
        size,
        "torch.save(model.state_dict(), 'a{n}.pt')",
        "model.load_state_dict(torch.load('a{n}.pt'))",
        "best = copy.deepcopy(model.state_dict())",
    )


@_shape(60)
def tensors_moved(size: int) -> str:
    return "x = torch.ones(3)\n" + _lines(
        size, "x = x.cuda()", "y = x.detach().cpu().numpy()", "x = x.to(device)"
    )


# -- text -------------------------------------------------------------------------------------------------------


@_shape(60)
def comments_that_suppress(size: int) -> str:
    return _lines(
        size, "x{n} = torch.load('a{n}.pt')  # noqa: TA700, TA701, TA218", "y{n} = 1  # ta: allow TA906"
    )


@_shape(60)
def findings(size: int) -> str:
    return _lines(size, "torch.load('a', weights_only=False)", "nn.Softmax()", "torch.autograd.Variable(x)")


@_shape(2000)
def a_long_string(size: int) -> str:
    return "x = '''" + "some words of torch {n} \\n\n" * size + "'''\n"


@_shape(60)
def long_strings(size: int) -> str:
    return _lines(size, f"x{{n}} = '{'word ' * 20}' '{'more ' * 20}'")


@_shape(60)
def blank_and_commented_lines(size: int) -> str:
    return _lines(size, "", "# a comment of # many # hashes", "x = 1", "", "\\", "y = 2")


@_shape(60)
def statements_on_one_line(size: int) -> str:
    return "x = torch.ones(3)" + "; x = F.relu(x)" * size + "\n"


# -- files ------------------------------------------------------------------------------------------------------


def _notebook(cells: list[str]) -> Files:
    code = [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]
    return {"train.ipynb": json.dumps({"cells": code, "nbformat": 4}).encode()}


@_project(60)
def a_huge_cell(size: int) -> Files:
    body = _lines(size, "x = F.relu(x)", "torch.load('a{n}.pt', weights_only=False)", "%time y = model(x)")
    return _notebook([IMPORTS + body + LOOP])


@_project(60)
def many_cells(size: int) -> Files:
    return _notebook(
        [
            IMPORTS,
            *[f"x = F.relu(x)\n!ls {n}\ntorch.load('a', weights_only=False)" for n in range(size)],
            LOOP,
        ]
    )


@_shape(60)
def imports(size: int) -> str:
    return _lines(
        size, "import torch.nn.m{n} as a{n}", "from torch.nn import L{n}, M{n} as N{n}", "a{n}.f(L{n}, N{n})"
    )


@_shape(60)
def star_imports(size: int) -> str:
    return _lines(size, "from torch.m{n} import *", "f{n}(model)")


@_project(8)
def files_that_import_the_last(size: int) -> Files:
    files = {
        "m0.py": IMPORTS
        + "class Base(nn.Module):\n    def f(self, x):\n        return F.relu(x)\ndef g0(x):\n    return x\n"
    }
    for n in range(1, size):
        files[f"m{n}.py"] = (
            IMPORTS
            + f"from m{n - 1} import *\nfrom m{n - 1} import g{n - 1}\nclass C{n}(Base):\n    pass\ndef g{n}(x):\n    return g{n - 1}(x)\n"
            + LOOP
        )
    return {name: text.encode() for name, text in files.items()}


@_project(8)
def files_that_all_import_one(size: int) -> Files:
    files = {
        "base.py": IMPORTS
        + "class Base(nn.Module):\n    def f(self, x):\n        return F.relu(x)\ndef helper(x):\n    return x\n"
    }
    for n in range(size):
        files[f"m{n}.py"] = (
            IMPORTS
            + f"from base import Base, helper\nclass C{n}(Base):\n    def f(self, x):\n        return helper(super().f(x))\n"
            + LOOP
        )
    return {name: text.encode() for name, text in files.items()}


@_project(8)
def one_file_that_imports_all(size: int) -> Files:
    files = {
        f"m{n}.py": IMPORTS + f"class C{n}(nn.Module):\n    def f{n}(self, x):\n        return F.relu(x)\n"
        for n in range(size)
    }
    files["train.py"] = (
        IMPORTS + _lines(size, "from m{n} import *", "c{n} = C{n}()", "c{n}.f{n}(torch.ones(3))") + LOOP
    )
    return {name: text.encode() for name, text in files.items()}


@_project(8)
def files_whose_stars_meet(size: int) -> Files:
    files = {
        "m0.py": IMPORTS + "class C0(nn.Module):\n    pass\n",
        "m1.py": IMPORTS + "class C1(nn.Module):\n    pass\n",
    }
    for n in range(2, size):
        files[f"m{n}.py"] = (
            IMPORTS
            + f"from m{n - 1} import *\nfrom m{n - 2} import *\nclass C{n}(C{n - 1}, C{n - 2}):\n    def f{n}(self):\n        return self.f{n - 1}()\n"
        )
    files["train.py"] = (
        IMPORTS + f"from m{size - 1} import *\nnet = C{size - 1}()\nnet.f{size - 1}()\nmissing(net)\n" + LOOP
    )
    return {name: text.encode() for name, text in files.items()}


# -- mixes ------------------------------------------------------------------------------------------------------


def mixed(seed: int, size: int) -> Files:
    """Several shapes one after another in one file, with the same names."""
    random = Random(seed)
    chosen = random.sample([shape for shape in SHAPES if list(shape.files(2)) == ["train.py"]], 6)
    parts = (shape.files(size * shape.start // 60 + 2)["train.py"].decode() for shape in chosen)
    return {"train.py": "".join(parts).encode()}
