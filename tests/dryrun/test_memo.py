"""A call that gives what it gave before is not run again, and nobody can tell."""

from pathlib import Path

import pytest

from ta_lint.dryrun.dryrun import dry_run
from ta_lint.dryrun.machine.machine import Machine
from ta_lint.dryrun.values import Known, Sequence, Unknown, Value


def ran(folder: Path, source: str) -> Machine:
    (folder / "main.py").write_text(source, "utf-8")
    return dry_run(str(folder / "main.py"))


def names(machine: Machine, folder: Path) -> dict[str, Value]:
    return machine.program.module(machine, str(folder / "main.py"), "main").fields  # type: ignore[no-any-return]


LONG = "def long(x):\n    y = x\n" + "    y = y + 1\n" * 50 + "    return y\n"


def test_an_equal_call_is_not_run_again(tmp_path: Path) -> None:
    once = ran(tmp_path, LONG + "a = long(1)\n").steps
    often = ran(tmp_path, LONG + "a = long(1)\n" * 10)
    assert often.steps <= once + 9 * 2  # the statement and the call
    assert names(often, tmp_path)["a"] == Known(51)


def test_a_call_within_another_is_not_run_again(tmp_path: Path) -> None:
    calls = "def outer(x):\n    return long(x) + long(x)\n"
    once = ran(tmp_path, LONG + calls + "a = outer(1)\n").steps
    assert ran(tmp_path, LONG + calls + "a = outer(1)\n" * 5).steps <= once + 4 * 2


CHANGES = {
    "a name": ("SIZE = 1\ndef f():\n    return SIZE\n", "SIZE = 2\n", 1, 2),
    "a name that was not there": ("def f():\n    return len([1])\n", "def len(x):\n    return 2\n", 1, 2),
    "a list": ("SIZES = [1]\ndef f():\n    return len(SIZES)\n", "SIZES.append(2)\n", 1, 2),
    "a list in a list": ("SIZES = [[1]]\ndef f():\n    return SIZES[0][0]\n", "SIZES[0][0] = 2\n", 1, 2),
    "a dictionary": ("SIZES = {'a': 1}\ndef f():\n    return SIZES['a']\n", "SIZES['a'] = 2\n", 1, 2),
    "a class": ("class A:\n    size = 1\ndef f():\n    return A.size\n", "A.size = 2\n", 1, 2),
    "a method": (
        "class A:\n    def size(self):\n        return 1\ndef f():\n    return A().size()\n",
        "A.size = lambda self: 2\n", 1, 2,
    ),
    "a constructor": (
        "class A:\n    def __init__(self):\n        self.size = 1\ndef new(self):\n    self.size = 2\ndef f():\n    return A().size\n",
        "A.__init__ = new\n", 1, 2,
    ),
    "an object": ("class A:\n    pass\nthing = A()\nthing.size = 1\ndef f():\n    return thing.size\n", "thing.size = 2\n", 1, 2),
    "a function": ("def g():\n    return 1\ndef f():\n    return g()\n", "def g():\n    return 2\n", 1, 2),
    "an attribute of a function": ("def f():\n    return f.size\nf.size = 1\n", "f.size = 2\n", 1, 2),
}  # fmt: skip


@pytest.mark.parametrize(("source", "change", "before", "after"), CHANGES.values(), ids=CHANGES.keys())
def test_what_a_function_reads_may_change(
    source: str, change: str, before: int, after: int, tmp_path: Path
) -> None:
    found = names(ran(tmp_path, f"{source}a = f()\nb = f()\n{change}c = f()\nd = f()\n"), tmp_path)
    assert [found[name] for name in "abcd"] == [Known(one) for one in (before, before, after, after)]


def test_what_a_branch_has_changed_is_taken_back(tmp_path: Path) -> None:
    source = "import sys\nclass A:\n    size = 1\ndef f():\n    return A.size\nif sys.argv:\n    A.size = 2\n    a = f()\nelse:\n    a = f()\n    b = f()\n"
    assert names(ran(tmp_path, source), tmp_path)["b"] == Known(1)


def test_each_call_makes_its_own_list(tmp_path: Path) -> None:
    source = "def f():\n    return [1]\na = f()\na.append(2)\nb = f()\nb.append(3)\nc = f()\n"
    found = names(ran(tmp_path, source), tmp_path)
    lists = [found[name] for name in "abc"]
    assert [one.items for one in lists if isinstance(one, Sequence)] == [
        (Known(1), Known(2)),
        (Known(1), Known(3)),
        (Known(1),),
    ]


def test_a_list_that_is_given_is_given_back(tmp_path: Path) -> None:
    source = "def f(x):\n    return x\na, b = [1], [1]\nc = f(a)\nd = f(b)\n"
    found = names(ran(tmp_path, source), tmp_path)
    assert found["c"] is found["a"]
    assert found["d"] is found["b"]


def test_a_list_that_a_function_changes_is_changed_each_time(tmp_path: Path) -> None:
    source = "def f(x):\n    x[0] = 5\n    return 1\na, b = [1], [1]\nf(a)\nf(b)\nc = a[0] + b[0]\n"
    assert names(ran(tmp_path, source), tmp_path)["c"] == Known(10)


def test_two_values_that_nobody_knows_are_two(tmp_path: Path) -> None:
    source = "from nowhere import ask\ndef f():\n    return ask()\na = f()\nb = f()\n"
    found = names(ran(tmp_path, source), tmp_path)
    assert isinstance(found["a"], Unknown)
    assert found["a"] is not found["b"]


def test_a_name_that_a_function_declares_global_is_written_each_time(tmp_path: Path) -> None:
    source = "n = 0\ndef f():\n    global n\n    n = 5\nf()\nf()\nn = 1\nf()\n"
    assert names(ran(tmp_path, source), tmp_path)["n"] == Known(5)


def test_an_exception_of_some_path_arrives_each_time(tmp_path: Path) -> None:
    source = (
        "import sys\ndef f(x):\n    if x:\n        raise ValueError\n    return 1\nf(sys.argv)\ncaught = 0\n"
        "try:\n    f(sys.argv)\nexcept ValueError:\n    caught = 1\n"
    )
    assert names(ran(tmp_path, source), tmp_path)["caught"] != Known(0)


def test_what_is_known_on_a_path_is_known_in_a_call(tmp_path: Path) -> None:
    source = (
        "from nowhere import flag\ndef f():\n    if flag:\n        return 1\n    return 2\na = f()\n"
        "if flag:\n    b = f()\nelse:\n    b = 1\n"
    )
    assert names(ran(tmp_path, source), tmp_path)["b"] == Known(1)


def test_what_happens_in_a_call_happens_each_time(tmp_path: Path) -> None:
    source = (
        "import torch\nmodel = torch.nn.Linear(1, 1)\noptimizer = torch.optim.SGD(model.parameters(), 0.1)\n"
        "def update():\n    optimizer.step()\nupdate()\nupdate()\n"
    )
    events = ran(tmp_path, source).events
    assert sum(one.action == "step" for one in events) == 2


def test_tensors_with_equal_facts_give_tensors_with_equal_facts(tmp_path: Path) -> None:
    source = (
        "import torch\ndef half(x):\n    y = x / 2\n    y = y + 1\n    y = y * 2\n    y = y - 1\n    return y\n"
        "model = torch.nn.Linear(1, 1)\nx = model(torch.ones(1, 1))\nother = torch.nn.Linear(1, 1)\n"
        "a = half(x)\nb = half(x)\nc = half(other(torch.ones(1, 1)))\n"
    )
    found = names(ran(tmp_path, source), tmp_path)
    assert found["a"] is not found["b"]
    assert found["a"].facts == found["b"].facts  # type: ignore[attr-defined]
    assert found["a"].facts.roots.isdisjoint(found["c"].facts.roots)  # type: ignore[attr-defined]
