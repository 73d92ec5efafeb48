"""What a name stands for: who owns it, which binding reaches it, and the full name behind it."""

import libcst as cst
import pytest

from ta_lint.facts.values.names import Binding, Names
from ta_lint.syntax.tree import Tree


class Code:
    """A parsed text whose names are asked about: the last mention of one, unless a number says which."""

    def __init__(self, text: str) -> None:
        self.tree = Tree(cst.parse_module(text))
        self.names = Names(self.tree)

    def use(self, name: str, number: int = -1) -> cst.Name:
        return [node for node in self.tree.all(cst.Name) if node.value == name][number]

    def shown(self, node: cst.CSTNode) -> str:
        return self.tree.root.code_for_node(node).strip()

    def show(self, binding: Binding) -> str:
        return f"{binding.how} {self.shown(binding.value)}" if binding.value is not None else binding.how

    def bindings(self, name: str, number: int = -1) -> list[str]:
        return [self.show(binding) for binding in self.names.bindings(self.use(name, number))]

    def definition(self, name: str, number: int = -1) -> str | None:
        """The binding that reaches a use: how, and the value where there is one."""
        found = self.names.definition(self.use(name, number))
        return self.show(found) if found is not None else None

    def last_qualified(self) -> str | None:
        """The full name behind the last statement that is an expression."""
        return self.names.qualified(self.tree.all(cst.Expr)[-1].value)


# -- every way to bind a name ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "binding"),
    [
        ("x = 1", "assign 1"),
        ("y = x = 1", "assign 1"),
        ("x: int = 1", "assign 1"),
        ("x += 1", "augment 1"),
        ("x, y = f()", "unpack f()"),
        ("[y, (x, z)] = f()", "unpack f()"),
        ("y, *x = f()", "unpack f()"),
        ("(x := 1)", "assign 1"),
        ("for x in f(): pass", "for f()"),
        ("for y, (x, z) in f(): pass", "for f()"),
        ("with f() as x: pass", "with f()"),
        ("with f() as (y, x): pass", "other"),
        ("with f() as y, g() as x: pass", "with g()"),
        ("try: pass\nexcept E as x: pass", "other"),
        ("try: pass\nexcept* E as x: pass", "other"),
        ("def x(): pass", "def"),
        ("class x: pass", "class"),
        ("import x", "import"),
        ("import x.y", "import"),
        ("import y as x", "import"),
        ("from y import x", "import"),
        ("from y import z as x", "import"),
        ("del x", "other"),
        ("match y:\n    case x: pass", "other"),
        ("match y:\n    case [1, *x]: pass", "other"),
        ("match y:\n    case {1: 2, **x}: pass", "other"),
        ("match y:\n    case A(b=x): pass", "other"),
        ("match y:\n    case A() as x: pass", "other"),
    ],
)
def test_each_way_to_bind_a_name_is_seen(code: str, binding: str) -> None:
    assert Code(f"{code}\nx").bindings("x") == [binding]


@pytest.mark.parametrize(
    "code", ["y.x = 1", "y[x] = 1", "y[0].x = 1", "with f() as y.x: pass", "f(x=1)", "x: int"]
)
def test_an_attribute_an_element_a_keyword_and_a_bare_annotation_bind_no_name(code: str) -> None:
    assert Code(f"{code}\nx").bindings("x") == []


@pytest.mark.parametrize("signature", ["x", "x=1", "x, /", "*, x", "*x", "**x", "x: int = 1", "y, x=y"])
def test_every_kind_of_parameter_belongs_to_its_function(signature: str) -> None:
    code = Code(f"x = 0\ndef f({signature}):\n    x\n")
    assert [how.partition(" ")[0] for how in code.bindings("x")] == ["param"]


def test_a_lambdas_parameter_is_its_own() -> None:
    code = Code("x = 0\nf = lambda x=2: x\n")
    assert code.definition("x") == "param 2"


# -- scopes ---------------------------------------------------------------------------------------------------


def test_a_function_sees_the_names_around_it_and_owns_what_it_binds() -> None:
    code = Code("x = 1\ny = 2\ndef f():\n    x = 3\n    x, y\n")
    assert code.definition("x") == "assign 3"
    assert code.definition("y") == "assign 2"


def test_a_class_body_sees_its_names_and_its_methods_do_not() -> None:
    code = Code("x = 1\nclass C:\n    x = 2\n    y = x\n    def f(self):\n        return x\n")
    assert code.definition("x", -2) == "assign 2"
    assert code.definition("x", -1) == "assign 1"


def test_a_comprehension_in_a_class_sees_the_class_only_in_its_first_iterable() -> None:
    code = Code("x = 1\nclass C:\n    x = 2\n    y = [x for a in x if x for b in x]\n")
    assert [code.definition("x", number) for number in (-4, -3, -2, -1)] == [
        "assign 1",
        "assign 2",
        "assign 1",
        "assign 1",
    ]


def test_a_comprehensions_target_does_not_leak_and_hides_the_name_outside() -> None:
    code = Code("x = 1\n[x for x in y]\nx\n")
    assert code.definition("x", 1) == "for y"
    assert code.definition("x") == "assign 1"


def test_the_first_iterable_of_a_comprehension_belongs_outside() -> None:
    code = Code("x = 1\n[x for x in x]\n")
    assert code.definition("x", 1) == "for x"
    assert code.definition("x", -1) == "assign 1"


def test_a_later_iterable_of_a_comprehension_sees_the_earlier_targets() -> None:
    code = Code("x = 1\n[y for x in z for y in x]\n")
    assert code.definition("x") == "for z"


@pytest.mark.parametrize("kind", ["[{}]", "{{{}}}", "{{1: {}}}", "f({})"])
def test_every_comprehension_is_a_scope(kind: str) -> None:
    code = Code("x = 1\n" + kind.format("x for x in y") + "\nx\n")
    assert code.definition("x") == "assign 1"


def test_a_walrus_in_a_comprehension_binds_in_the_function_around_it() -> None:
    code = Code("def f():\n    [x := y for y in z]\n    x\n")
    assert code.definition("x") == "assign y"
    assert code.definition("y") == "for z"


def test_a_walrus_in_a_lambda_stays_there() -> None:
    assert Code("x = 1\nf = lambda: (x := 2)\nx\n").bindings("x") == ["assign 1"]


def test_a_default_a_decorator_and_an_annotation_see_the_names_outside() -> None:
    code = Code("x = 1\n@x\ndef f(x: x = x) -> x: pass\n")
    uses = [code.definition("x", number) for number in (1, 3, 4, 5)]
    assert uses == ["assign 1"] * 4


def test_the_bases_of_a_class_see_the_names_outside() -> None:
    code = Code("x = 1\nclass C(x, metaclass=x):\n    x = 2\n")
    assert [code.definition("x", number) for number in (1, 2)] == ["assign 1", "assign 1"]


def test_a_global_statement_binds_at_module_level() -> None:
    code = Code("x = 1\ndef f():\n    global x\n    x = 2\nx\n")
    assert code.bindings("x") == ["assign 1", "assign 2"]
    assert code.definition("x") is None


def test_a_global_name_skips_the_functions_around_it() -> None:
    code = Code("x = 1\ndef f():\n    x = 2\n    def g():\n        global x\n        x\n")
    assert code.definition("x") == "assign 1"


def test_a_name_that_only_functions_bind_globally_is_found() -> None:
    assert Code("def f():\n    global x\n    x = 1\ndef g():\n    x\n").definition("x") == "assign 1"


def test_a_nonlocal_statement_binds_in_the_function_that_owns_the_name() -> None:
    code = Code("def f():\n    x = 1\n    def g():\n        nonlocal x\n        x = 2\n    g()\n    x\n")
    assert code.bindings("x") == ["assign 1", "assign 2"]
    assert code.definition("x") is None


def test_a_chain_of_nonlocal_statements_ends_at_the_owner() -> None:
    code = Code(
        """
x = 0
def f(x):
    def g():
        nonlocal x
        x = 1
        class C:
            def h(self):
                nonlocal x
                x = 2
    x
"""
    )
    assert code.bindings("x") == ["param", "assign 1", "assign 2"]
    assert code.bindings("x", 0) == ["assign 0"]


def test_an_unknown_name_has_no_binding() -> None:
    code = Code("from somewhere import *\nx\n")
    assert code.bindings("x") == []
    assert code.definition("x") is None


# -- the binding that reaches a use ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "reaching"),
    [
        # straight lines
        ("x = 1; x = 2; use(x)", "assign 2"),
        ("x = 1; use(x); x = 2", "assign 1"),
        ("x = 1; x += 1; use(x)", None),
        ("x = 1; x += use(x)", "assign 1"),
        ("x = 1; x = use(x)", "assign 1"),
        ("x = 1; x = x + 1; use(x)", "assign x + 1"),
        ("x = 1; import x; use(x)", "import"),
        ("x = 1; del x; use(x)", "other"),
        ("x = 1; x: int = 2; use(x)", "assign 2"),
        ("x = 1; x, y = f(); use(x)", "unpack f()"),
        ("x = 1; x.y = x[0] = 2; use(x)", "assign 1"),
        # branches
        ("x = 1\nif a: x = 2\nuse(x)", None),
        ("if a: x = 1\nelse: x = 2\nuse(x)", None),
        ("if a: x = 1\nuse(x)", "assign 1"),
        ("x = 1\nif a:\n    x = 2\n    use(x)", "assign 2"),
        ("x = 1\nif a:\n    if b: x = 2\n    use(x)", None),
        ("x = 1\nif a:\n    x = 2\nelse:\n    use(x)", "assign 1"),
        ("x = 1\nfor a in y:\n    if a:\n        x = 2\n    else:\n        use(x)", None),
        ("x = 1\nif a: use(x)\nelse: x = 2", "assign 1"),
        ("if a:\n    x = 1\n    if b: use(x)\nelse: x = 2", "assign 1"),
        # with
        ("x = 1\nwith a: x = 2\nuse(x)", "assign 2"),
        ("x = 1\nwith a:\n    with b:\n        x = 2\nuse(x)", "assign 2"),
        ("x = 1\nwith a:\n    if b:\n        x = 2\nuse(x)", None),
        ("x = 1\nwith f() as x: use(x)", "with f()"),
        ("x = 1\nwith f() as x: pass\nuse(x)", "with f()"),
        ("x = 1\nwith use(x) as x: pass", "assign 1"),
        ("x = 1\nwith f() as x, use(x): pass", "with f()"),
        ("x = 1\nwith f() as (x, y): pass\nuse(x)", "other"),
        # try
        ("x = 1\ntry: x = 2\nexcept E: pass\nuse(x)", None),
        ("x = 1\ntry: x = 2\nfinally: pass\nuse(x)", "assign 2"),
        ("x = 1\ntry:\n    x = 2\n    use(x)\nexcept E: pass", "assign 2"),
        ("x = 1\ntry: x = 2\nexcept E: use(x)", None),
        ("x = 1\ntry: pass\nexcept E as x: pass\nuse(x)", None),
        ("x = 1\ntry: pass\nexcept E as x: use(x)", "other"),
        ("x = 1\ntry: pass\nexcept E: x = 2\nuse(x)", None),
        ("x = 1\ntry: pass\nexcept E: pass\nelse: x = 2\nuse(x)", None),
        ("try: x = 1\nexcept E: raise\nuse(x)", "assign 1"),
        # match
        ("x = 1\nmatch y:\n    case x: use(x)", "other"),
        ("x = 1\nmatch y:\n    case [x]: pass\nuse(x)", None),
        ("x = 1\nmatch y:\n    case [x]: pass\n    case _: use(x)", None),
        ("x = 1\nmatch y:\n    case {1: 2, **x}: use(x)", "other"),
        ("x = 1\nmatch y:\n    case 1: x = 2\nuse(x)", None),
        # for
        ("x = 1\nfor x in y: use(x)", "for y"),
        ("x = 1\nfor x in y: pass\nuse(x)", None),
        ("x = 1\nfor x in y: pass\nelse: use(x)", None),
        ("x = 1\nfor x in use(x): pass", "assign 1"),
        ("x = 1\nfor y, x in z: use(x)", "for z"),
        # walrus
        ("x = 1\nif (x := f()): use(x)", "assign f()"),
        ("x = 1\nif (x := f()): pass\nuse(x)", "assign f()"),
        ("x = 1\nif (x := f()) and use(x): pass", "assign f()"),
        ("x = 1\nif a and (x := f()): pass\nuse(x)", None),
        ("x = 1\nif a: pass\nelif (x := f()): use(x)", "assign f()"),
        ("x = 1\nif a: pass\nelif (x := f()): pass\nuse(x)", None),
        ("x = 1\nif a: pass\nelif (x := f()): pass\nelse: use(x)", "assign f()"),
        ("x = 1\ny = (x := 2) if a else 3\nuse(x)", None),
        ("x = 1\ny = 3 if (x := 2) else 4\nuse(x)", "assign 2"),
        ("x = 1\ny = use(x) if (x := 2) else 4", None),
        ("x = 1\nf(use(x), (x := 2))", None),
        ("x = 1\nf((x := 2), use(x))", "assign 2"),
        ("x = 1\n[x := y for y in z]\nuse(x)", None),
        ("x = 1\nwhile (x := f()): use(x)", "assign f()"),
        ("x = 1\nwhile (x := f()): pass\nuse(x)", "assign f()"),
        ("x = 1\nmatch y:\n    case _ if (x := 2): pass\nuse(x)", None),
        ("x = 1\nmatch (x := 2):\n    case _: pass\nuse(x)", "assign 2"),
        # the back edge of a loop
        ("x = 1\nfor y in z: use(x)", "assign 1"),
        ("x = 1\nfor y in z:\n    use(x)\n    x = 2", None),
        ("x = 1\nfor y in z:\n    use(x)\n    if a: x = 2", None),
        ("x = 1\nfor y in z:\n    use(x)\n    x += 1", None),
        ("x = 1\nfor y in z:\n    use(x)\nx = 2", "assign 1"),
        ("x = 1\nfor y in z:\n    use(x)\nelse:\n    x = 2", "assign 1"),
        ("x = 1\nfor y in use(x):\n    x = 2", "assign 1"),
        ("x = 1\nfor y in z:\n    x = 2\n    use(x)", "assign 2"),
        ("x = 1\nfor y in z:\n    x = 2\n    use(x)\n    x = 3", "assign 2"),
        ("x = 1\nfor y in z:\n    x = 2\n    for w in v:\n        use(x)\n        x = 3", None),
        ("x = 1\nfor y in z:\n    x = 2\n    for w in v: use(x)", "assign 2"),
        ("x = 1\nfor y in z:\n    for w in v: use(x)\n    x = 2", None),
        ("x = 1\nfor x in y:\n    use(x)\n    x = 2", "for y"),
        ("x = 1\nwhile use(x): x = 2", None),
        ("x = 1\nwhile a: x = 2\nelse: use(x)", None),
        ("x = 1\nfor y in z: x = 2\nuse(x)", None),
        ("x = 1\nfor y in z:\n    with a: x = 2\n    use(x)", "assign 2"),
        # functions
        ("def f(x): use(x)", "param"),
        ("def f(x=3):\n    x = 1\n    use(x)", "assign 1"),
        ("def f(x):\n    if a: x = 1\n    use(x)", None),
        ("def f(x):\n    if a: return use(x)\n    x = 1", "param"),
        ("def f(x):\n    for y in z:\n        use(x)\n        x = 1", None),
        ("def f(x):\n    lambda: use(x)", "param"),
        ("def f(x):\n    def g(): use(x)\n    x = 1", None),
        ("x = 1\ndef f(): use(x)", "assign 1"),
        ("x = 1\ndef f(): use(x)\nx = 2", None),
        ("x = 1\nx = 2\nclass C: use(x)", None),
        ("x = 1\nx = 2\n[use(x) for y in z]", "assign 2"),
        ("x = 1\ndef x(): pass\nuse(x)", "def"),
        ("x = 1\n@use(x)\ndef x(): pass", "assign 1"),
        ("x = 1\nclass x(use(x)): pass", "assign 1"),
        ("x = 1\nasync def f():\n    async with a as x: use(x)", "with a"),
        ("x = 1\nasync def f():\n    async for x in a: use(x)", "for a"),
    ],
)  # fmt: skip
def test_the_one_binding_that_reaches_a_use_or_none(code: str, reaching: str | None) -> None:
    parsed = Code(code)
    (call,) = (call for call in parsed.tree.all(cst.Call) if parsed.shown(call) == "use(x)")
    use = call.args[0].value
    assert isinstance(use, cst.Name)
    found = parsed.names.definition(use)
    assert (parsed.show(found) if found is not None else None) == reaching


@pytest.mark.parametrize(
    ("code", "standing"),
    [
        ("x = 1\nif a: x = 2\nuse(x)", [1, 2]),
        ("x = 1\nfor y in z:\n    x = 2\n    x = 3\nuse(x)", [1, 3]),
        ("x = 1\nfor y in z:\n    x = 2\n    if a: break\n    x = 3\nuse(x)", [1, 2, 3]),
        ("x = 1\nfor y in z:\n    x = 2\n    if a: continue\n    x = 3\nuse(x)", [1, 2, 3]),
        ("x = 1\nfor y in z:\n    use(x)\n    x = 2\n    if a: continue\n    x = 3", [1, 2, 3]),
        ("x = 1\nfor y in z:\n    use(x)\n    x = 2\n    if a: break\n    x = 3", [1, 3]),
        ("x = 1\nfor y in z:\n    use(x)\n    x = 2\n    for w in v:\n        if a: continue\n    x = 3", [1, 3]),
        ("x = 1\nwhile use(x):\n    x = 2\n    x = 3", [1, 3]),
        ("x = 1\nwhile a:\n    x = 2\n    if b: x = 3\nelse: use(x)", [1, 2, 3]),
        ("x = 1\nfor y in z:\n    x = 2\nelse:\n    x = 3\nuse(x)", [3]),
        ("x = 1\nfor y in z:\n    x = 2\n    if a: break\nelse:\n    x = 3\nuse(x)", [1, 2, 3]),
    ],
)  # fmt: skip
def test_the_bindings_that_may_reach_a_use(code: str, standing: list[int]) -> None:
    parsed = Code(code)
    (call,) = (call for call in parsed.tree.all(cst.Call) if parsed.shown(call) == "use(x)")
    use = call.args[0].value
    assert isinstance(use, cst.Name)
    assert [parsed.show(one) for one in parsed.names.reaching(use)] == [
        f"assign {number}" for number in standing
    ]


def test_the_mentions_of_a_variable_are_its_bindings_and_uses_and_no_other_variable_of_the_name() -> None:
    code = Code(
        """
x = 1
def f(x, y=x):
    x.x(x=x)
def g():
    global x
    x += 1
class C:
    x = 2
[x for x in x]
from x import z as x
"""
    )
    mentions = code.names.mentions(code.use("x", 0))
    statements = [code.shown(code.tree.statement(mention)).partition("\n")[0] for mention in mentions]
    assert statements == [
        "x = 1",
        "def f(x, y=x):",
        "global x",
        "x += 1",
        "[x for x in x]",
        "from x import z as x",
    ]
    inside = [code.tree.order(mention) for mention in code.names.mentions(code.use("x", 1))]
    assert len(inside) == 3
    assert inside[0] == code.tree.order(code.use("x", 1))


def test_a_name_without_a_binding_has_no_mentions() -> None:
    code = Code("print(print)")
    assert code.names.mentions(code.use("print")) == []


# -- the full name behind an expression -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "qualified"),
    [
        ("import torch\ntorch.load", "torch.load"),
        ("import torch as t\nt.load", "torch.load"),
        ("import torch.nn\ntorch.load", "torch.load"),
        ("import torch\nimport torch.nn\ntorch.nn.Linear", "torch.nn.Linear"),
        ("import torch.nn.functional as F\nF.relu", "torch.nn.functional.relu"),
        ("from torch import nn\nnn.Linear", "torch.nn.Linear"),
        ("from torch.nn import Linear as L\nL", "torch.nn.Linear"),
        # relative imports keep their dots: they are never torch
        ("from . import torch\ntorch.load", ".torch.load"),
        ("from .torch import load\nload", ".torch.load"),
        ("from .. import a\na.b", "..a.b"),
        ("from ...a.b import c\nc", "...a.b.c"),
        # aliases by assignment
        ("import torch\nload = torch.load\nload", "torch.load"),
        ("import torch\na = torch\nb = a.nn\nb.Linear", "torch.nn.Linear"),
        ("import torch\nnn: object = torch.nn\nnn.Linear", "torch.nn.Linear"),
        ("import torch\nif (nn := torch.nn): pass\nnn.Linear", "torch.nn.Linear"),
        ("import torch\na = b = torch.nn\nb.Linear", "torch.nn.Linear"),
        ("import torch\ndef f():\n    load = torch.load\n    load", "torch.load"),
        ("import torch\nload = torch.load\nload = other\nload", None),
        ("import torch\nload = torch.load if a else other\nload", None),
        ("import torch\nload, save = torch.load, torch.save\nload", None),
        ("import torch\nload = torch.load(path)\nload", None),
        # a cycle has no end
        ("x = x\nx", None),
        ("a = b; b = a\na", None),
        ("a = b.c; b = a.d\na", None),
        ("def f():\n    global g\n    g = g.h\n    g", None),
        # imports that may fail
        ("try: import wandb\nexcept ImportError: wandb = None\nwandb.init", "wandb.init"),
        ("try:\n    import wandb\n    HAS = True\nexcept ImportError: HAS = False\nwandb.init", "wandb.init"),
        ("try: from a import x\nexcept ImportError: from b import x\nx", None),
        ("try: from a import x\nexcept ImportError:\n    def x(): pass\nx", None),
        ("try: from a import x\nexcept ImportError: x = object\nx", None),
        (
            "try: from torch.amp import GradScaler as G\nexcept ImportError: from torch.cuda.amp import GradScaler as G\nG",
            "torch.amp.GradScaler",
        ),
        (
            "try: from torch.optim import Adam\nexcept ImportError: from torch.optim.adam import Adam\nAdam",
            "torch.optim.Adam",
        ),
        # what shadows an import
        ("import torch\ndef f(torch): torch.load", None),
        ("import torch\nfor torch in a: torch.load", None),
        ("import torch\ntorch = 1\ntorch.load", None),
        ("import torch\ndel torch\ntorch.load", None),
        ("import torch\nclass C:\n    torch = 1\n    def f(self): torch.load", "torch.load"),
        ("import torch\n[torch.load for torch in a]\ntorch.save", "torch.save"),
        # an import belongs to its scope
        ("def f():\n    import torch\n    torch.load", "torch.load"),
        ("def f():\n    import torch\ntorch.load", None),
        ("class C:\n    import torch\n    def f(self): torch.load", None),
        ("def f():\n    global torch\n    import torch\ntorch.load", "torch.load"),
        # nothing is known of a star
        ("from torch import *\nload", None),
        ("from torch import *\nnn.Linear", None),
        # builtins, and what hides them
        ("print", "builtins.print"),
        ("float = half\nfloat", None),
        ("def f(float): float", None),
        ("unknown", None),
        ("unknown.attribute", None),
        ("def f(): pass\nf", None),
        ("class C: pass\nC", None),
        # expressions that are no names
        ("import torch\ntorch.optim.Adam()", None),
        ("import torch\ntorch.load().x", None),
        ("import torch\ntorch[0]", None),
        # classes are named as their users do
        ("import torch.nn.modules.linear as l\nl.Linear", "torch.nn.Linear"),
        ("from torch.optim.adamw import AdamW\nAdamW", "torch.optim.AdamW"),
        ("from torch.optim import lr_scheduler\nlr_scheduler.StepLR", "torch.optim.lr_scheduler.StepLR"),
        ("from torch.utils.data.dataloader import DataLoader\nDataLoader", "torch.utils.data.DataLoader"),
        ("import pytorch_lightning as pl\npl.LightningModule", "lightning.pytorch.LightningModule"),
    ],
)  # fmt: skip
def test_the_full_name_behind_an_expression_or_none(code: str, qualified: str | None) -> None:
    assert Code(code).last_qualified() == qualified


def test_what_a_file_imports_is_known_by_its_full_name() -> None:
    code = Code("import a.b.c, d as e\nfrom f.g import h as i\nfrom . import j\nfrom k import *\n")
    assert code.names.imported == {"a.b.c", "d", "f.g.h", ".j", "k"}
