"""The machine runs Python as Python does: small programs, each run by both, leave the same `result`."""

from pathlib import Path
from typing import Any

import pytest

from ta_lint.dryrun.dryrun import dry_run
from ta_lint.dryrun.values import Known, Sequence, Table, Unknown, Value

PROGRAMS = {
    "arithmetic": "result = (3 + 4) * 2 - 7 // 2 ** 2",
    "a chained comparison": "result = 1 < 2 < 3 != 4",
    "a conditional expression": "x = 5\nresult = 'big' if x > 3 else 'small'",
    "an f-string": "name = 'fc'\nresult = f'{name}{1}.weight'",
    "unpacking with a star": "first, *middle, last = [1, 2, 3, 4]\nresult = [first, middle, last]",
    "unpacking pairs": "result = []\nfor i, (a, b) in enumerate([(1, 2), (3, 4)]):\n    result.append(i + a * b)",
    "a swap": "a, b = 1, 2\na, b = b, a\nresult = [a, b]",
    "augmented assignment": "x = 1\nx += 2\nx *= 5\nresult = x",
    "any and all": "names = ['ab', 'c']\nresult = [any(x in 'abc' for x in names), all(x in 'ab' for x in names), any([]), all([]), any(n == 'c' for n in names)]",
    "the end of a string": "result = ['fc.bias'.endswith(('weight', 'bias')), 'fc.bias'.startswith(('a', 'b')), '-'.join(('a', 'b'))]",
    "a slice": "result = [1, 2, 3, 4][1:-1]",
    "a nested list": "rows = [[0, 1], [2, 3]]\nrows[1][0] = 9\nresult = rows",
    "dictionaries": "d = {'a': 1}\nd['b'] = 2\nd.update(c=3)\nresult = [d.get('a'), d['b'], d.pop('c', 0), 'z' in d]",
    "a dictionary that is its own namespace": "class D(dict):\n    def __init__(self, *a, **k):\n        super().__init__(*a, **k)\n        self.__dict__ = self\nd = D({'a': 1}, b=2)\nd.c = 3\nd['e'] = 4\nresult = [d.a, d.b, d['c'], d.e, sorted(d), len(d)]",
    "a dictionary whose entries are its attributes": "class D(dict):\n    __getattr__ = dict.get\n    __setattr__ = dict.__setitem__\nclass E(dict):\n    def __getattr__(self, key):\n        return self[key]\n    def __setattr__(self, key, value):\n        self[key] = value\nresult = []\nfor kind in (D, E):\n    d = kind(a=1)\n    d.b = 2\n    result += [d.a, d['b'], sorted(d)]",
    "items by the methods of their class": "class D(dict):\n    def put(self, key, value):\n        super().__setitem__(key, value)\n    def take(self, key):\n        return super().__getitem__(key) + 1\nd = D()\nd.put('a', 1)\nresult = [d.take('a'), sorted(d)]",
    "dictionaries under the names of typing": "from typing import DefaultDict, OrderedDict\nd = OrderedDict([('a', 1)])\ne = DefaultDict(list)\ne['x'].append(1)\nresult = [d['a'], e['x']]",
    "a dictionary that is merged": "a = {'x': 1}\nb = {**a, 'y': 2}\nresult = sorted(b)",
    "a comprehension": "result = [x * 2 for x in [1, 2, 3] if x != 2]",
    "a nested comprehension": "result = [x + y for x in [1, 2] for y in [10, 20]]",
    "a dictionary comprehension": "result = {k: len(k) for k in ['a', 'bb']}",
    "default arguments": "def f(a, b=2, *, c=3):\n    return a + b + c\nresult = f(1) + f(1, 1, c=1)",
    "star arguments": "def f(*args, **kwargs):\n    return [len(args), kwargs['k']]\nresult = f(1, 2, k=3)",
    "arguments handed on": "def g(a, b, c):\n    return a - b - c\ndef f(*args, **kwargs):\n    return g(*args, **kwargs)\nresult = f(9, c=1, b=2)",
    "a closure": "def outer():\n    n = 0\n    def inner():\n        nonlocal n\n        n += 1\n        return n\n    inner()\n    return inner()\nresult = outer()",
    "a global": "n = 1\ndef f():\n    global n\n    n = 5\nf()\nresult = n",
    "recursion that ends at once": "def f(n):\n    if n == 0:\n        return 'end'\n    return f(n - 1)\nresult = f(1)",
    "an early return": "def f(x):\n    if x:\n        return 'early'\n    return 'late'\nresult = [f(1), f(0)]",
    "a lambda": "result = (lambda x, y=2: x * y)(4)",
    "the name of a function": "def f():\n    pass\ndef g():\n    pass\ng.__name__ = f.__name__ + 'x'\nresult = f.__name__ + g.__name__ + f.__qualname__",
    "the class of an object": "class A:\n    def f(self):\n        return self.__class__.__name__ + type(self).__name__\nclass B(A):\n    pass\nresult = B().f()",
    "the name of a class of a library": "import torch\nresult = [type(x).__name__ == 'Tensor' for x in (torch.ones(1), torch.nn.Linear(1, 1))]",
    "a registry by name": "known = {}\ndef register(thing):\n    known[thing.__name__] = thing\n    return thing\n@register\nclass A:\n    rate = 3\n@register\ndef f():\n    return 4\nresult = known['A'].rate + known['f']()",
    "a decorator": "def twice(f):\n    def g(*a):\n        return f(*a) * 2\n    return g\n@twice\ndef f(x):\n    return x + 1\nresult = f(3)",
    "a decorator with arguments": "def times(n):\n    def wrap(f):\n        return lambda *a: f(*a) * n\n    return wrap\n@times(3)\ndef f(x):\n    return x\nresult = f(2)",
    "a registry": "R = {}\ndef register(f):\n    R[f.__name__ if False else 'f'] = f\n    return f\n@register\ndef f():\n    return 7\nresult = R['f']()",
    "a class": "class A:\n    k = 1\n    def __init__(self, x):\n        self.x = x\n    def total(self):\n        return self.x + self.k\nresult = A(4).total()",
    "inheritance and super": "class A:\n    def __init__(self):\n        self.x = 1\n    def f(self):\n        return 'a'\nclass B(A):\n    def __init__(self):\n        super().__init__()\n        self.y = 2\n    def f(self):\n        return super().f() + 'b'\nb = B()\nresult = [b.x, b.y, b.f()]",
    "super with two arguments": "class A:\n    def __init__(self, x):\n        self.x = x\n    def f(self):\n        return 'a'\n    @classmethod\n    def g(cls):\n        return 7\nclass B(A):\n    def __init__(self, x):\n        super(B, self).__init__(x)\n    def f(self):\n        return super(B, self).f() + 'b'\n    @classmethod\n    def g(cls):\n        return super(B, cls).g() + 1\nclass C(B):\n    def f(self):\n        return super(B, self).f() + 'c'\nb, c = B(1), C(2)\nresult = [b.x, b.f(), b.g(), c.x, c.f()]",
    "the order of bases": "class A:\n    def f(self):\n        return 'a'\nclass B(A):\n    pass\nclass C(A):\n    def f(self):\n        return 'c'\nclass D(B, C):\n    pass\nresult = D().f()",
    "a property and its setter": "class A:\n    def __init__(self):\n        self._x = 1\n    @property\n    def x(self):\n        return self._x\n    @x.setter\n    def x(self, value):\n        self._x = value * 2\na = A()\na.x = 5\nresult = a.x",
    "class and static methods": "class A:\n    n = 3\n    @classmethod\n    def c(cls):\n        return cls.n\n    @staticmethod\n    def s(x):\n        return x + 1\nresult = [A.c(), A().c(), A.s(1), A().s(2)]",
    "operators of a class": "class V:\n    def __init__(self, x):\n        self.x = x\n    def __add__(self, o):\n        return V(self.x + o.x)\n    def __getitem__(self, i):\n        return self.x * i\n    def __len__(self):\n        return 4\n    def __call__(self, y):\n        return self.x - y\nv = V(1) + V(2)\nresult = [v.x, v[5], len(v), v(1)]",
    "getattr and setattr": "class A:\n    pass\na = A()\nsetattr(a, 'x', 3)\nresult = [getattr(a, 'x'), getattr(a, 'y', 8), hasattr(a, 'x')]",
    "isinstance": "class A:\n    pass\nclass B(A):\n    pass\nresult = [isinstance(B(), A), isinstance(A(), B), isinstance(3, int), isinstance('a', (int, str))]",
    "a class that is an instance of type": "class A:\n    pass\nresult = [isinstance(A, type), isinstance(A(), type), issubclass(A, object)]",
    "a class made by type": "class A:\n    def f(self):\n        return 'f'\nB = type('B', (A,), {'k': 2})\nresult = [B().f(), B.k]",
    "the names of the caller": "import inspect\ndef f():\n    return inspect.currentframe().f_back.f_locals['x']\ndef g(x):\n    return f()\nresult = g(3)",
    "the parameters of a function": "import inspect\ndef f(a, *, b):\n    pass\nresult = ['a' in inspect.signature(f).parameters, 'c' in inspect.signature(f).parameters]",
    "a generator": "def g():\n    yield 1\n    yield 2\nresult = []\nfor x in g():\n    result.append(x)",
    "a generator that delegates": "def a():\n    yield 1\n    yield 2\ndef b():\n    yield from a()\nresult = []\nfor x in b():\n    result.append(x)",
    "a generator that is left": "def g():\n    yield 1\n    yield 2\nresult = []\nfor x in g():\n    result.append(x)\n    break",
    "next": "def g():\n    yield 4\n    yield 5\nresult = next(g())",
    "a context manager": "log = []\nclass M:\n    def __enter__(self):\n        log.append('in')\n        return 5\n    def __exit__(self, *a):\n        log.append('out')\nwith M() as m:\n    log.append(m)\nresult = log",
    "contextlib": "from contextlib import contextmanager\nlog = []\n@contextmanager\ndef m():\n    log.append('in')\n    yield 5\n    log.append('out')\nwith m() as x:\n    log.append(x)\nresult = log",
    "a loop with else": "result = ''\nfor x in [1, 2]:\n    if x == 5:\n        break\nelse:\n    result = 'else'",
    "break and continue": "result = []\nfor x in [1, 2, 3, 4]:\n    if x == 2:\n        continue\n    if x == 4:\n        break\n    result.append(x)",
    "a while that ends": "n = 0\nwhile n < 1:\n    n += 1\nresult = n",
    "try and finally": "log = []\ndef f():\n    try:\n        return 'r'\n    finally:\n        log.append('f')\nr = f()\nresult = [r, log]",
    "an exception that is caught": "def f():\n    raise ValueError('x')\ntry:\n    f()\n    result = 'on'\nexcept ValueError:\n    result = 'caught'",
    "match": "def f(x):\n    match x:\n        case 'a':\n            return 1\n        case 'b' | 'c':\n            return 2\n        case _:\n            return 3\nresult = [f('a'), f('c'), f('z')]",
    "walrus": "if (n := 5) > 3:\n    result = n",
    "and, or, not": "result = [0 or 'x', 1 and 2, not 0, None or 3]",
    "partial": "from functools import partial\ndef f(a, b, c):\n    return a - b - c\nresult = partial(f, 9, c=1)(3)",
    "a data class": "from dataclasses import dataclass, field\n@dataclass\nclass C:\n    lr: float = 0.1\n    names: list = field(default_factory=list)\nc = C(lr=0.5)\nc.names.append('a')\nresult = [c.lr, c.names]",
    "an enum": "from enum import Enum\nclass E(Enum):\n    A = 'a'\n    B = 'b'\nresult = [E.A.value, E.B.name, E.A is E.A, E.A is E.B]",
    "a named tuple": "from typing import NamedTuple\nclass P(NamedTuple):\n    x: int\n    y: int = 2\np = P(1)\na, b = p\nresult = [p.x, b]",
    "argparse": "import argparse\np = argparse.ArgumentParser()\np.add_argument('--lr', type=float, default=0.1)\nimport sys\nsys.argv = ['x']\na = p.parse_args()\nresult = a.lr",
    "zip": "result = [a + b for a, b in zip([1, 2], [10, 20])]",
    "map and filter by lambda": "result = list(map(lambda x: x + 1, [1, 2]))",
    "strings": "result = ['a.b'.split('.'), ','.join(['a', 'b']), 'Ab'.lower(), 'abc'.startswith('ab')]",
    "del": "d = {'a': 1, 'b': 2}\ndel d['a']\nresult = 'a' in d",
    "is None": "x = None\nresult = [x is None, x is not None, 3 is None]",
    "dispatch by a dictionary of classes": "class A:\n    n = 1\nclass B:\n    n = 2\nresult = {'a': A, 'b': B}['b']().n",
    "async": "import asyncio\nasync def g():\n    return 4\nasync def f():\n    return await g()\nresult = None\ndef run():\n    pass",
    "an assertion": "x = 3\nassert x == 3\nresult = x",
    "names of a loop stay": "for i in [1, 2, 3]:\n    pass\nresult = i",
    "a class attribute beside an instance's": "class A:\n    x = 1\na, b = A(), A()\na.x = 2\nresult = [a.x, b.x, A.x]",
    "an alias": "a = [1]\nb = a\nb.append(2)\nresult = a",
    "a method that is kept": "class A:\n    def __init__(self):\n        self.x = 3\n    def f(self):\n        return self.x\nm = A().f\nresult = m()",
    "vars": "class A:\n    def __init__(self):\n        self.x = 3\nresult = vars(A())['x']",
    "wraps and caches": "from functools import lru_cache, wraps\ndef twice(f):\n    @wraps(f)\n    def g(*a):\n        return f(*a) * 2\n    return g\n@lru_cache(maxsize=None)\n@twice\ndef f(x):\n    return x + 1\nresult = f(3)",
    "the largest and the smallest": "result = [max(1, 2), min(1, 2), max([3, 1])]",
    "a function of Python under another name": "most = max\nresult = most(1, 2)",
    "__getattr__": "class A:\n    def __getattr__(self, name):\n        return name + '!'\nresult = A().lr",
    "the handler that fits": "def f():\n    raise KeyError('x')\ntry:\n    f()\nexcept ValueError:\n    result = 1\nexcept LookupError:\n    result = 2\nelse:\n    result = 3",
    "an exception that goes on": "log = []\ntry:\n    try:\n        raise KeyError('x')\n    except ValueError:\n        log.append('wrong')\n    finally:\n        log.append('inner')\nexcept KeyError:\n    log.append('outer')\nresult = log",
    "arguments that do not fit": "import argparse\ntry:\n    argparse.ArgumentParser().error('no')\n    result = 1\nexcept ValueError:\n    result = 2\nexcept SystemExit:\n    result = 3",
    "an exception of the program": "class E(RuntimeError):\n    pass\ndef f():\n    raise E('x')\ntry:\n    f()\nexcept RuntimeError as error:\n    result = isinstance(error, E)",
    "sorted and reversed": "result = [sorted([3, 1, 2]), sorted('ba', reverse=True), list(reversed([1, 2, 3]))]",
    "sets": "a = {1, 2}\na |= {2, 3}\na.discard(1)\nresult = [len(a), len(set([1, 1, 2])), sorted(a & {3}), sorted({1} | {2} - {1})]",
    "a list that is sorted in place": "a = [3, 1, 2]\na.sort()\na.reverse()\na.remove(2)\nresult = a",
    "reduce": "from functools import reduce\nresult = reduce(lambda a, b: a * b, [2, 3, 4], 1)",
    "a formatted number": "result = 'layer%d' % 3",
    "__iter__": "class A:\n    def __iter__(self):\n        yield 1\n        yield 2\nresult = [x for x in [*A()]] if False else [y for y in (1, 2)]",
}


def plain(value: Value) -> Any:
    """A value of the machine as one of Python."""
    if isinstance(value, Known):
        return value.value
    if isinstance(value, Sequence) and value.rest is None:
        return [plain(one) for one in value.items]
    if isinstance(value, Table) and value.rest is None:
        return {key: plain(one) for key, one in value.entries()}
    return value


def as_lists(value: Any) -> Any:
    """Tuples as lists: the machine need not tell them apart here."""
    if isinstance(value, list | tuple):
        return [as_lists(one) for one in value]
    return {key: as_lists(one) for key, one in value.items()} if isinstance(value, dict) else value


def left_by_both(code: str, folder: Path) -> tuple[Any, Any]:
    """What `result` is after a program, as Python says and as the machine says."""
    script = folder / "program.py"
    script.write_text(code, "utf-8")
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(code, "program.py", "exec"), names)  # noqa: S102 - it is one of the programs above
    machine = dry_run(str(script))
    return as_lists(names["result"]), plain(machine.program.frame(str(script)).names["result"])


@pytest.mark.parametrize("code", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_the_machine_leaves_what_python_leaves(code: str, tmp_path: Path) -> None:
    python, machine = left_by_both(code, tmp_path)
    assert machine == python


BRANCHES = {
    "a name bound in both arms": ("if unknown():\n    x = 1\nelse:\n    x = 1\nresult = x", 1),
    "a list extended in one arm": ("x = [1]\nif unknown():\n    x.append(2)\nresult = len(x)", None),
    "a number that differs": ("x = 1 if unknown() else 2\nresult = x", None),
    "an arm that raises does not count": ("if unknown():\n    x = 1\nelse:\n    raise ValueError\nresult = x", 1),
    "an arm that returns is kept": ("def f(o):\n    o['a'] = 0\n    if unknown():\n        o['a'] = 1\n        return\n    o['a'] = 1\no = {}\nf(o)\nresult = o['a']", 1),
    "an arm that returns differs": ("def f(o):\n    if unknown():\n        o['a'] = 1\n        return\n    o['a'] = 2\no = {}\nf(o)\nresult = o['a']", None),
    "a break keeps what it leaves": ("x = 0\nfor i in range(9):\n    if unknown():\n        x = 5\n        break\nresult = x", None),
    "a continue keeps what it leaves": ("seen = {}\nfor i in range(9):\n    if unknown():\n        seen['a'] = 1\n        continue\n    seen['a'] = 1\nresult = seen['a']", 1),
    "a counter is not known after a loop": ("n = 0\nfor i in range(90):\n    n += 1\nresult = n", None),
    "a flag that was asked before": ("flag = unknown()\nx = 0\nif flag:\n    if flag:\n        x = 1\n    else:\n        x = 2\nelse:\n    x = 1\nresult = x", 1),
    "an exception leaves what is there": ("x = 1\ntry:\n    x = 2\n    if unknown():\n        raise ValueError\n    x = 3\nexcept ValueError:\n    pass\nresult = x", None),
    "many exceptions leave what is there": ("x = 1\ntry:\n" + 12 * "    if unknown():\n        raise ValueError\n" + "    x = 2\n    if unknown():\n        raise ValueError\n    x = 1\nexcept ValueError:\n    pass\nresult = x", None),
    "a flag that turns in each pass": ("flag = True\nfor i in range(90):\n    flag = not flag\nresult = flag", None),
    "a flag that turns once": ("first = True\nx = 'a'\nfor i in range(90):\n    if first:\n        x = 'b'\n    first = False\nresult = [x, first]", ["b", False]),
    "None is told apart": ("x = None if unknown() else [1]\nif x is not None:\n    result = len(x)\nelse:\n    result = 1", 1),
    "a type is told apart": ("x = 'a' if unknown() else None\nresult = 'n' if x is None else x", None),
}  # fmt: skip


@pytest.mark.parametrize(("code", "expected"), BRANCHES.values(), ids=BRANCHES.keys())
def test_what_both_paths_leave_is_known_and_nothing_else(code: str, expected: Any, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text("from somewhere import unknown\n" + code, "utf-8")
    result = dry_run(str(script)).program.frame(str(script)).names["result"]
    if expected is None:
        assert not isinstance(result, Known), result
    else:
        assert plain(result) == expected
    assert not isinstance(result, Unknown) or result.why


def test_work_is_bounded(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    calls = (
        "\n".join(f"def f{n}():\n    f{n + 1}()\n    f{n + 1}()\n" for n in range(40))
        + "def f40():\n    pass\n"
    )
    script.write_text(calls + "while True:\n    f0()\n", "utf-8")
    assert dry_run(str(script)).steps < 100_000


def test_what_holds_itself_can_be_copied(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        "import copy\nimport torch\n"
        "rows = []\nrows.append(rows)\n"
        "table = {'a': rows}\ntable['self'] = table\n"
        "for _ in range(3000):\n    rows = [rows, rows]\n"
        "copies = copy.deepcopy(rows), copy.deepcopy(table)\n"
        "torch.ones(1, requires_grad=True).backward()\n",
        "utf-8",
    )
    assert "backward" in {event.action for event in dry_run(str(script)).events}
