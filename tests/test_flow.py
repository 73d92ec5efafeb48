"""Where a value comes from: through branches, loops, containers, attributes and functions."""

import libcst as cst
import pytest
from modules import module_of


def origins(code: str) -> list[str]:
    """The code of the origins of `x` in the last `use(x)`, with the path to the meant part behind it."""
    module = module_of(f"import torch\n{code}")
    uses = [call for call in module.tree.all(cst.Call) if module.code(call.func) == "use"]
    value = module.flow.of(uses[-1].args[0].value)
    return sorted(
        module.code(origin.node) + "".join(f"[{key!r}]" for key in origin.path) for origin in value.origins
    )


NAMES = {
    "a name": ("x = f()\nuse(x)", ["f()"]),
    "both branches": ("if c:\n    x = f()\nelse:\n    x = g()\nuse(x)", ["f()", "g()"]),
    "one branch": ("x = f()\nif c:\n    x = g()\nuse(x)", ["f()", "g()"]),
    "a branch that leaves": (
        "def d():\n    x = f()\n    if c:\n        x = g()\n        return x\n    use(x)",
        ["f()"],
    ),
    "the other branch leaves": (
        "def d():\n    x = f()\n    if c:\n        x = g()\n    else:\n        raise E\n    use(x)",
        ["g()"],
    ),
    "three branches": (
        "x = None\nif a:\n    x = f()\nelif b:\n    x = g()\nelse:\n    x = h()\nuse(x)",
        ["f()", "g()", "h()"],
    ),
    "a loop that may not run": ("x = f()\nfor i in y:\n    x = g()\nuse(x)", ["f()", "g()"]),
    "what comes round": ("x = f()\nfor i in y:\n    use(x)\n    x = g()", ["f()", "g()"]),
    "what is bound anew in each pass": (
        "x = f()\nfor i in y:\n    x = g()\n    use(x)\n    x = h()",
        ["g()"],
    ),
    "a with block": ("x = f()\nwith c:\n    x = g()\nuse(x)", ["g()"]),
    "a try block": ("x = f()\ntry:\n    x = g()\nexcept E:\n    pass\nuse(x)", ["f()", "g()"]),
    "a handler that leaves": (
        "def d():\n    try:\n        x = g()\n    except E:\n        raise\n    use(x)",
        ["g()"],
    ),
    "the old value": ("x = f()\nx = x.view(1)\nuse(x)", ["x.view(1)"]),
    "two names for each other": ("a = f()\nfor i in y:\n    b = a\n    a = b\nuse(a)", ["f()"]),
    "either value": ("x = f() if c else g()\nuse(x or h())", ["f()", "g()", "h()"]),
    "an addition": ("x = f()\nx += 1\nuse(x)", ["x += 1"]),
    "a global of two values": ("x = f()\nx = g()\ndef d():\n    use(x)", ["f()", "g()"]),
}

CONTAINERS = {
    "a tuple": ("a, x = f(), g()\nuse(x)", ["g()"]),
    "what a call returns": ("a, x = f()\nuse(x)", ["f()[1]"]),
    "a tuple in a tuple": ("a, (b, x) = f(), (g(), h())\nuse(x)", ["h()"]),
    "behind a star": ("*a, x = f(), g(), h()\nuse(x)", ["h()"]),
    "an element of a list": ("x = [f(), g()]\nuse(x[-1])", ["g()"]),
    "any element": ("x = [f(), g()]\nuse(x[i])", ["f()", "g()"]),
    "an entry": ("x = {'a': f(), 'b': g()}\nuse(x['b'])", ["g()"]),
    "an entry by a name": ("B = 'b'\nx = {'a': f(), B: g()}\nuse(x[B])", ["g()"]),
    "an entry of another": ("y = {'b': f()}\nx = {'a': g(), **y}\nuse(x['b'])", ["f()"]),
    "an entry that is put in": ("x = {}\nx['a'] = f()\nx['b'] = g()\nuse(x['b'])", ["g()"]),
    "an entry that may be put in": ("x = {'a': f()}\nif c:\n    x['a'] = g()\nuse(x['a'])", ["f()", "g()"]),
    "an entry under an unknown key": ("x = {'a': f()}\nx[k] = g()\nuse(x['a'])", ["f()", "g()"]),
    "an entry that is put in later": ("x = {'a': f()}\nuse(x['a'])\nx['a'] = g()", ["f()"]),
    "what is appended": ("x = []\nfor i in y:\n    x.append(f())\nuse(x[0])", ["f()"]),
    "a list in a dictionary": (
        "x = {'a': [], 'b': []}\nx['a'].append(f())\nx['b'].append(g())\nuse(x['a'][0])",
        ["f()"],
    ),
    "a list that a dictionary makes": (
        "from collections import defaultdict\nx = defaultdict(list)\nx['a'].append(f())\nuse(x['a'][-1])",
        ["f()"],
    ),
    "what a loop goes over": ("for x in [f(), g()]:\n    use(x)", ["f()", "g()"]),
    "what a loop counts and pairs": ("for i, (a, x) in enumerate(zip(p, [f()])):\n    use(x)", ["f()"]),
    "the values of a dictionary": ("d = {'a': f()}\nfor k, x in d.items():\n    use(x)", ["f()"]),
    "a comprehension": ("x = [f(y) for y in z]\nuse(x[0])", ["f(y)"]),
    "one that takes it out": ("x = {'a': f()}\nuse(x.pop('a'))", ["f()"]),
    "keywords": ("x = dict(a=f(), b=g())\nuse(x['b'])", ["g()"]),
    "a part of a tensor": ("x = torch.ones(3)\nuse(x[0, 1:])", ["torch.ones(3)[':']"]),
    "none that is there": ("x = {'a': f()}\nuse(x['b'])", ["{'a': f()}['b']"]),
}

FUNCTIONS = {
    "what it returns": ("def d():\n    return f()\nuse(d())", ["f()"]),
    "all that it returns": (
        "def d():\n    if c:\n        return f()\n    return g()\nuse(d())",
        ["f()", "g()"],
    ),
    "what it is given": ("def d(a, b=2):\n    return b\nuse(d(f(), b=g()))", ["g()"]),
    "what it is given by default, behind a tuple that is spread": (
        "t = (g(), h())\ndef d(a, b, c=f()):\n    return c\nuse(d(*t))",
        ["f()"],
    ),
    "what it is given by default": ("def d(a, b=f()):\n    return b\nuse(d(1))", ["f()"]),
    "each call by itself": ("def d(a):\n    return a\nd(f())\nuse(d(g()))", ["g()"]),
    "all calls": ("def d(a):\n    use(a)\nd(f())\nd(g())", ["f()", "g()"]),
    "what is spread": ("def d(a, b):\n    use(b)\ny = f(), g()\nd(*y)", ["g()"]),
    "the rest": ("def d(a, *rest):\n    return rest[1]\nuse(d(1, f(), g()))", ["g()"]),
    "the keywords": ("def d(**named):\n    return named['b']\nuse(d(a=f(), b=g()))", ["g()"]),
    "through two": ("def d(a):\n    return a\ndef e(a):\n    return d(a)\nuse(e(f()))", ["f()"]),
    "one that calls itself": ("def d(a):\n    return d(a) if c else a\nuse(d(f()))", ["d(a)", "f()"]),
    "a generator": ("def d():\n    yield f()\nuse(d())", ["d()"]),
    "a decorator": ("@wrap\ndef d():\n    return f()\nuse(d())", ["d()"]),
    "a lambda": ("d = lambda a: (a, f())\nuse(d(g())[0])", ["g()"]),
    "nobody who calls it": ("def d(a):\n    use(a)", ["a"]),
}

_NET = "class Net(torch.nn.Module):\n    def __init__(self):\n        self.a = None\n"
OBJECTS = {
    "a module": (f"{_NET}    def forward(self, x):\n        return f(x), g(x)\nuse(Net()(y)[1])", ["g(x)"]),
    "an attribute": (f"{_NET}        self.b = f()\n    def m(self):\n        use(self.b)", ["f()"]),
    "an attribute that is set before": (
        f"{_NET}    def m(self):\n        self.a = f()\n        use(self.a)\n        self.a = g()",
        ["f()"],
    ),
    "an attribute that another method sets": (
        f"{_NET}    def n(self):\n        self.a = g()\n    def m(self):\n        self.a = f()\n        use(self.a)",
        ["f()", "g()"],
    ),
    "a field": (
        "from dataclasses import dataclass\n@dataclass\nclass D:\n    a: int\n    b: int = 0\nuse(D(f(), b=g()).b)",
        ["g()"],
    ),
    "what a constructor keeps": (
        "class D:\n    def __init__(self, a):\n        self.b = a\nuse(D(f()).b)",
        ["f()"],
    ),
    "a field that is set": ("x = D()\nx.a = f()\nuse(x.a)", ["f()"]),
}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param(*case, id=name)
        for group in (NAMES, CONTAINERS, FUNCTIONS, OBJECTS)
        for name, case in group.items()
    ],
)
def test_a_value_has_the_origins_of_all_ways_that_lead_to_it(code: str, expected: list[str]) -> None:
    assert origins(code) == expected


def test_a_long_chain_is_given_up_and_not_guessed() -> None:
    steps = "".join(f"if c{i}:\n    x = f{i}()\n" for i in range(40))
    assert origins(f"x = f()\n{steps}use(x)") == ["x"]


@pytest.mark.parametrize(
    ("value", "applied"),
    [
        ("F.softmax(x, 1)", "x"),
        ("F.softmax(x, 1).view(-1)", "x"),
        ("torch.flatten(F.softmax(x, 1))", "x"),
        ("shown(F.softmax(x, 1))", None),
        ("F.softmax(x, 1) if c else F.softmax(y, 1)", None),
        ("(p := F.softmax(x, 1))", None),
        ("{'a': F.softmax(x, 1)}['a']", "x"),
    ],
)
def test_an_activation_is_taken_away_only_where_nothing_else_sees_its_result(
    value: str, applied: str | None
) -> None:
    shown = "def shown(p):\n    print(p)\n    return p\n"
    module = module_of(f"import torch\nimport torch.nn.functional as F\n{shown}F.cross_entropy({value}, y)")
    loss = next(call for call in module.tree.all(cst.Call) if module.code(call.func) == "F.cross_entropy")
    output = module.outputs.of(loss.args[0].value)
    assert output is not None
    inner = module.outputs.applied_to(output, loss)
    assert (module.code(inner) if inner is not None else None) == applied
