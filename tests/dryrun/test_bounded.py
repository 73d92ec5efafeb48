"""Whatever a program is, a dry run of it ends after a bounded number of steps, and raises nothing."""

import os
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from fuzzing import dry_runs
from fuzzing.originals import originals
from fuzzing.programs import dressed, mutated
from fuzzing.properties import Input

from ta_lint.core.protocol import Action
from ta_lint.dryrun.dryrun import dry_run

POOL = originals(None)
"""The blocks of pages and cases alone: no corpora, so that the share is the same everywhere."""

DEEP = 2_000
PROGRAMS = {
    "a list of numbers": f"x = [{', '.join(map(str, range(100_000)))}]\nfor i in x:\n    print(i)\n",
    "a dictionary of numbers": f"x = {{{', '.join(f'{n}: {n}' for n in range(50_000))}}}\n",
    "nested calls": f"x = {'f(' * DEEP}1{')' * DEEP}\n",
    "nested parentheses": f"x = {'(' * DEEP}1{')' * DEEP}\n",
    "nested lists": f"x = {'[' * 90}1{']' * 90}\n",
    "a long sum": f"x = {' + '.join(['y'] * 20_000)}\n",
    "a long chain of attributes": f"x = y{'.z' * 5_000}\n",
    "a long chain of calls": f"x = y{'.z()' * 3_000}\n",
    "nested ifs": "".join(f"{' ' * n}if x{n}:\n" for n in range(99)) + " " * 99 + "pass\n",
    "many elifs": "if a:\n    b = 1\n" + "".join(f"elif a == {n}:\n    b = {n}\n" for n in range(DEEP)),
    "nested ternaries": "x = " + "".join(f"{n} if y == {n} else " for n in range(DEEP)) + "0\n",
    "nested lambdas": "x = " + "lambda: " * 500 + "1\n",
    "nested functions": "".join(f"{' ' * n}def f{n}():\n" for n in range(90)) + " " * 90 + "return 1\n",
    "functions that call two": "\n".join(f"def f{n}():\n    f{n + 1}()\n    f{n + 1}()\n" for n in range(60)) + "\nf0()\n",
    "recursion": "def f(n):\n    return f(n - 1) + f(n - 2)\nf(10)\n",
    "mutual recursion": "def f(n):\n    return g(n)\ndef g(n):\n    return f(n) or g(n)\nf(10)\n",
    "recursion without an end": "def f():\n    f()\nf()\n",
    "the attributes of a layer": "import torch\nfor one in vars(torch.nn.Linear(6, 6)).values():\n    if issubclass(type(one), dict):\n        print(len(one), [*one])\n",
    "a decorator of itself": "def f(g):\n    return f\nf = f(f)\n@f\ndef h():\n    pass\nh()\n",
    "a class that makes itself": "class A:\n    def __init__(self):\n        self.a = A()\nA()\n",
    "a class that is its base": "class A:\n    pass\nclass A(A):\n    pass\nclass A(A, A):\n    pass\nA()\n",
    "a property that reads itself": "class A:\n    @property\n    def x(self):\n        return self.x\nA().x\n",
    "attributes that are made up": "class A:\n    def __getattr__(self, name):\n        return getattr(self, name + 'x')\nA().y\n",
    "a generator without an end": "def g():\n    while True:\n        yield 1\nfor x in g():\n    pass\nlist(g())\n[y for y in g()]\nnext(g())\na, b = g()\nmax(g())\n",
    "a generator of itself": "def g():\n    yield from g()\nlist(g())\n",
    "an iterator of itself": "class A:\n    def __iter__(self):\n        return iter(self)\nfor x in A():\n    pass\nlist(A())\n",
    "while True": "while True:\n    pass\n",
    "nested loops": "".join(f"{' ' * n}for i{n} in range(9):\n" for n in range(18)) + " " * 18 + "f()\n",
    "nested comprehensions": "n = list(range(200))\nm = [1, 2, 3, 4, 5, 6, 7, 8, 9] * 7\nx = [a for a in m for b in m for c in m for d in m for e in m]\n",
    "nested loops of lists": "m = [1, 2, 3, 4, 5, 6, 7, 8]\n" + "".join(f"{' ' * n}for i{n} in m:\n" for n in range(12)) + " " * 12 + "x = i0\n",
    "a string that doubles": "x = 'aaaaaaaaaaaaaaaa'\n" + "x = f'{x}{x}'\n" * 60 + "y = x + x\n" + "y = y + y\n" * 60,
    "a string that is joined": "x = 'aaaaaaaaaaaaaaaa'\n" + "x = x.join([x, x, x])\n" * 40 + "x = x.replace('a', x)\n" * 9,
    "a padded string": "x = '%999999999999d' % 5\ny = '{:999999999999}'.format(3)\nz = f'{3:999999999999}'\n",
    "a large number": "x = 10 ** 63\n" + "x = x ** 63\n" * 20 + "y = 1 << 10 ** 12\nz = 2 ** 10 ** 12\nw = 9 ** 9 ** 9 ** 9\n",
    "large bytes": "x = bytes(10 ** 12)\ny = [0] * 10 ** 12\nz = 'a' * 10 ** 12\nw = (1,) * 10 ** 12\n",
    "a range without bound": "import torch\nz = torch.ones(4)[:3.14]\nz = torch.ones(4)[::0]\nfor i in range(10 ** 20):\n    print(i)\nx = torch.arange(10 ** 20)\ny = torch.empty(10 ** 20)[1:]\n",
    "a large range": "x = list(range(10 ** 18))\ny = {n: n for n in range(10 ** 18)}\nz = range(1, 5, 0)\nz = range()\nlist(z)\n",
    "a list in itself": "x = []\nx.append(x)\nfor y in x:\n    x.append(y)\nprint(len(x), x == x, x in x)\nimport copy\ncopy.deepcopy(x)\nz = {}\nz['z'] = z\ncopy.deepcopy(z)\n",
    "a module in itself": "import torch\nm = torch.nn.Module()\nm.m = m\nm.eval()\nlist(m.parameters())\nlist(m.modules())\nimport copy\ncopy.deepcopy(m)\nm(1)\nn = torch.nn.Sequential()\nn.append(n)\nn(1)\n",
    "tensors in themselves": "import torch\nx = []\nx.append(x)\ntorch.stack(x)\nd = {}\nd['d'] = d\ntorch.cat(d)\nx += x\n",
    "a list that grows": "x = [1]\nfor i in range(99):\n    x += x\n    x = x + x\n    x.extend(x)\n    x *= 9\n",
    "metaclasses": "class M(type):\n    def __new__(m, n, b, d):\n        return super().__new__(m, n, b, d)\n    def __call__(c):\n        return c()\nclass A(metaclass=M):\n    pass\nA()\nB = type('B', (A,), {})\nB()\nclass C(*[A], **{}):\n    pass\nclass D(1, 'a', None):\n    pass\nD()\n",
    "exec": "exec('x = 1')\neval('x + 1')\ncompile('x', 'y', 'exec')\nprint(x)\n__import__('os').path\nglobals()['y'] = 1\nlocals().update(y=2)\nvars()\n",
    "star imports": "from nowhere import *\nfrom . import *\nfrom .. import x\nfrom ...a.b import c\nimport a.b.c as d\nx(y, *z, **w)\n",
    "keys that are no keys": "a = {[1]: 2, {}: 3, (lambda: 1): 4}\na[[1]] = 2\na[slice(1)] = 3\nb = {1: 2}[[3]]\n[] in {}\n{1: 2}.get([])\nset([[], {}])\n{}.pop([])\n[1][[2]]\nx = {**1, **[]}\n{}.setdefault([], 1)\n",
    "arguments that do not fit": "def f(a, /, b, *, c=1):\n    return a\nf()\nf(1, 2, 3, 4)\nf(a=1, d=2)\nf(*1, **2)\nlen()\nint('x', 'y', 'z')\nstr(1, 2, 3, 4)\nisinstance()\ngetattr()\nrange('a')\nzip(*5)\nenumerate()\nmap()\nsum()\nmax()\nopen()\nsuper()\nsuper(1, 2)\nprint(*None)\nimport torch\ntorch.nn.Linear()\ntorch.optim.SGD()\ntorch.nn.Module.eval()\ntorch.Tensor.backward()\ntorch.stack()\ntorch.ones(1).view()\ntorch.nn.Linear(1, 2)()\n",
    "what is assigned to": "[a, *b], c = 1\n(x, y), *z = [[1, 2, 3]]\na.b.c[1].d = 5\nf().x = 1\nfor a[0], b.c in [(1, 2)]:\n    pass\nwith x as (a, b), y as c.d:\n    pass\ndel a, b.c, d[0], (e, f)\n",
    "matches": "match x:\n    case [1, *y, {'a': b, **c}] | A(z, k=v) if y:\n        pass\n    case str() as s:\n        pass\n    case None | True | -1.5:\n        pass\n    case a.b:\n        pass\n    case _:\n        pass\n",
    "async code": "async def f():\n    async with a as b:\n        async for c in d:\n            yield await c\n    return\nx = [y async for y in f()]\nasync def g():\n    return [await z for z in f()]\n",
    "exceptions in exceptions": "try:\n    try:\n        raise ValueError\n    except KeyError:\n        raise\n    finally:\n        raise TypeError from None\nexcept* (TypeError, ValueError) as e:\n    raise e\nfinally:\n    raise\n",
    "ways out of a finally": "def f():\n    for x in y:\n        try:\n            return 1\n        finally:\n            continue\n    while z:\n        try:\n            break\n        finally:\n            return 2\nf()\n",
    "breaks outside of loops": "if x:\n    break\nif y:\n    continue\nif z:\n    return\nyield 1\nawait x\n",
    "statements where they must not be": "x = 1\ndef f():\n    global x, y\n    nonlocal_ = 1\n    del x\n    x\nf()\nyield_ = (lambda: (yield))()\n",
    "a context manager that is none": "with 1, None, [], f() as x, open('y') as z:\n    pass\nimport contextlib\n@contextlib.contextmanager\ndef g():\n    return 1\nwith g() as y:\n    pass\n@contextlib.contextmanager\ndef h():\n    yield 1\n    yield 2\nwith h():\n    pass\n",
    "data classes": "from dataclasses import dataclass, field\n@dataclass(1, 2, *3)\nclass A:\n    a: int = field(default_factory=1)\n    b = 2\n    def __post_init__(self):\n        A()\nA(1, 2, 3)\nfrom enum import Enum\nclass E(Enum):\n    X = E\n    Y = 1\nE.X.value\nE(1)\nE['X']\nlist(E)\n",
    "a wrapper of a branch, and steps that end in the other": "import argparse\nimport torch\noptions = argparse.ArgumentParser().parse_args()\ndef f0():\n    return options.n\n" + "".join(f"def f{n + 1}():\n    return f{n}() + f{n}() + f{n}()\n" for n in range(17)) + "model = torch.nn.Linear(2, 1)\nif options.distributed:\n    model = torch.nn.parallel.DistributedDataParallel(model)\n    model.module(torch.ones(4, 2)).sum().backward()\nelse:\n    f17()\n",
    "escapes that are none": "x = '\\d\\q'\ny = 1is 2\n",
    "surrogates": "x = '\\ud800'\ny = x.encode()\nprint(y, f'{x}', x + x)\n",
    "numbers that are none": "x = float('nan')\nx == x\n{x: x}[x]\ny = 1e999\nint(y)\nround(y)\nrange(y)\n-y\n~y\n1 % 0\n1 / 0\n1 // 0\n0 ** -1\n1 << -1\n",
    "a slice of everything": "x = [1, 2, 3]\nx[::0]\nx['a':]\nx[1:2, ...]\n'abc'[::0]\nx[10 ** 30]\nx[:10 ** 30]\nx[1:2] = 5\nx[True] = 1\ndel x[0:1]\n",
}  # fmt: skip


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_an_odd_program_ends(text: str) -> None:
    assert dry_runs.judged(Input("train.py", text.encode("utf-8", "surrogatepass"))).problems == []


BYTES = {
    "no bytes": b"",
    "zeros": b"\0" * 100,
    "not UTF-8": b"x = '\xff\xfe'\n",
    "UTF-16": "x = 1\n".encode("utf-16"),
    "another encoding": "# -*- coding: latin-1 -*-\nx = 'ä'\n".encode("latin-1"),
    "an encoding that is none": b"# -*- coding: nonsense -*-\nx = 1\n",
    "a mark of UTF-8": b"\xef\xbb\xbfimport torch\n",
    "half a statement": b"import torch\nfor x in (1,\n",
    "half a string": b"x = '''abc\n",
    "half an indent": b"if x:\n",
    "old line ends": b"x = 1\ry = 2\r\nz = 3\x0c\n",
}


@pytest.mark.parametrize("data", BYTES.values(), ids=BYTES.keys())
def test_a_file_that_is_no_program_ends(data: bytes) -> None:
    assert dry_runs.judged(Input("train.py", data)).problems == []


def project(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text, "utf-8")
    return folder / "main.py"


def test_files_that_import_one_another_end(tmp_path: Path) -> None:
    main = project(
        tmp_path,
        main="from a import *\nimport b, main\nfrom main import x\nx = 1\nf()\n",
        a="from b import *\nimport main\ndef f():\n    g()\n",
        b="from a import *\nfrom b import b\ndef g():\n    from main import x\n    f()\n",
    )
    dry_run(str(main))


def test_links_in_circles_end(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "again").symlink_to(package, target_is_directory=True)
    (package / "itself.py").symlink_to(package / "itself.py")
    os.mkfifo(package / "pipe.py")
    names = ["package.again.again.again", "package.itself", "package.pipe", "package.again.itself"]
    main = project(tmp_path, main="\n".join(f"import {one}\nfrom {one} import *" for one in names))
    dry_run(str(main))


def test_a_large_file_is_taken_for_data(tmp_path: Path) -> None:
    main = project(tmp_path, main="x = 1\n" * 400_000)
    assert dry_run(str(main)).steps == 0


DEEP_CALLS = "".join(
    f"def f{n}(x):\n    with torch.no_grad():\n        return {'g(' * 12}f{n + 1}(x){')' * 12}\n"
    for n in range(60)
)


@pytest.mark.parametrize("end", ["", "f0([[1]])\n"], ids=["in an entry", "at the top of a file"])
def test_what_is_too_deep_for_python_breaks_off_alone(end: str, tmp_path: Path) -> None:
    main = project(
        tmp_path,
        main=f"import torch\nimport deep\nmodel = torch.nn.Linear(1, 1)\n{DEEP_CALLS}\ndef train():\n    model(torch.ones(1))\ntrain()\n{end}",
        deep=f"import torch\n{DEEP_CALLS}\nf0([[1]])\n",
    )
    (call,) = [event for event in dry_run(str(main)).events if event.action == "forward"]
    assert call.certain
    assert call.detail["recording"] is True


IN_ITSELF = {
    "a list": "x = []\nx.append(x)\n",
    "a list of tensors": "x = [torch.ones(2, requires_grad=True)]\nx.append({'x': x})\nx.append(x)\n",
    "a dictionary": "x = {}\nx['x'] = x\n",
    "a list of unknown length": "x = [2.0]\nfor i in range(count()):\n    x.append(x)\n    x += [x, (x, i)]\n",
    "a dictionary that is in another one twice": "x = {'w': torch.ones(2)}\nfor i in range(40):\n    x = {'a': x, 'b': x}\n",
}  # fmt: skip
USES = """
torch.tensor(x) | torch.stack(x) | torch.cat(x) | torch.zeros(x) | x * 3 | x == x | float(x) | sum(x) | max(x) | sorted(x) | f"{x}" | print(x)
all(x) | [z for y in x for z in y] | copy.copy(x) | copy.deepcopy(x) | numpy.mean(x) | json.dump(x, file) | log(x) | wandb.log(x) | model(x)
torch.save(x, "f") | torch.save({"model": x}, "f") | model.load_state_dict(x) | torch.autograd.backward(x) | torch.autograd.grad(x, x)
torch.optim.SGD(x, lr=0.1) | torch.nn.ModuleList(x) | torch.nn.Sequential(*x) | torch.utils.checkpoint.checkpoint(model, x)
next(iter(torch.utils.data.DataLoader(x))) | torch.utils.data.ConcatDataset(x) | torch.amp.GradScaler().scale(x) | float.__add__(x)
torch.optim.lr_scheduler.SequentialLR(optimizer, x, [1]) | torch.nn.utils.clip_grad_norm_(x, 1.0) | os.path.join(x, x) | logging.info(x)
"""


@pytest.mark.parametrize("made", IN_ITSELF.values(), ids=IN_ITSELF.keys())
def test_what_holds_itself_is_looked_into_once(made: str, tmp_path: Path) -> None:
    uses = [one.strip() for line in USES.strip().splitlines() for one in line.split("|")]
    tried = "".join(f"try:\n    {use}\nexcept Exception:\n    pass\n" for use in uses)
    begin = (
        "import copy, json, logging, os\nimport numpy, torch, wandb\nfrom elsewhere import count, file, log\n"
    )
    begin += "model = torch.nn.Linear(1, 1)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
    main = project(tmp_path, main=f"{begin}{made}{tried}model(torch.ones(1)).sum().backward()\n")
    actions = [event.action for event in dry_run(str(main)).events]
    assert "broken off" not in actions
    assert actions[-1] == "backward"


def mutants(count: int) -> Iterator[Input]:
    rng = Random(0)
    for _ in range(count):
        yield Input("train.py", dressed(mutated(POOL.block(rng), rng, POOL), rng))


def test_mutants_of_the_cases_end() -> None:
    problems = [(one.data, problem) for one in mutants(400) for problem in dry_runs.judged(one).problems]
    assert problems == []


def test_what_happens_has_a_place(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import torch\nclass Own(torch.optim.SGD):\n    def look(self):\n        pass\n", "utf-8"
    )
    events = dry_run(str(script)).events
    assert [event.place.file for event in events] == [str(script)]


def test_a_stub_that_does_not_find_what_it_looks_for_is_told(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import torch\nx = torch.nn.ModuleList().__getitem__()\ntorch.ones(2).sum()\n", "utf-8")
    machine = dry_run(str(script))
    assert list(machine.misfits) == ["torch.nn.ModuleList.__getitem__"]
    assert machine.misfits["torch.nn.ModuleList.__getitem__"].startswith("containers:")


def test_every_stub_finds_what_it_looks_for_in_healthy_programs() -> None:
    folder = Path(__file__).parents[1]
    programs = [*sorted((folder / "healthy").glob("*.py")), *sorted((folder / "runs").glob("*.py"))]
    assert {str(path): found for path in programs if (found := dry_run(str(path)).misfits)} == {}


def test_passes_that_call_a_loop_are_not_run_one_by_one(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import torch\n\n\ndef epoch(net, optimizer):\n    for _ in range(100):\n        optimizer.step()\n\n\n"
        "net = torch.nn.Linear(1, 1)\noptimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "for _ in range(12):\n    epoch(net, optimizer)\n"
    )
    steps = [event for event in dry_run(str(script)).events if event.action == Action.STEP]
    assert len(steps) <= 6
