"""The index over a syntax tree: order, homes, loops, statements, blocks."""

import libcst as cst
import pytest
from libcst.metadata import MetadataWrapper, PositionProvider

from ta_lint.syntax.tree import LOOPS, Node, Tree, argument, children, dotted, spreads

EVERYTHING = """
from . import a as b, c
from ..package.module import d
import e.f as g


@decorator(1)
def function[T](one, /, two: int = 2, *three, four=4, **five) -> int:
    global x
    assert one, two
    del two, three[0]
    x: int = 1
    x += yes if test else no
    return lambda p, *q, r=1: p


@decorator
class Class[T: int](Base, metaclass=Meta):
    type Alias[T] = list[T]
    attribute: int

    async def method(self):
        async with one as first, two:
            await three
        async for x in y:
            yield x
        else:
            yield from z


try:
    raise A from B
except (C, D) as problem:
    pass
else:
    pass
finally:
    pass
try:
    pass
except* E as group:
    pass
match subject:
    case [1, *rest] | (2, 3) if guard:
        pass
    case Klass(a, key=b) as whole:
        pass
    case {"k": v, **others}:
        pass
    case _:
        pass
for i in range(3):
    continue
while (n := next(it)) and not done:
    break
else:
    pass
if a < b <= c: d = e; f = g
elif h: pass
else: pass
x = y = [p for p in q if p for r in s], {k: v for k, v in w}, {j for j in t}, (u for u in u)
x = f(*args, key=value, **kwargs)[1:2:3, ...] + -1
print(f"{one!r:>{two}} and {three=}" "four", {**a, "b": c}, {d, *e}, [*f], (g,))
"""


def parsed(code: str) -> Tree:
    return Tree(cst.parse_module(code))


def named(tree: Tree, name: str) -> cst.Name:
    """The last mention of a name."""
    return [node for node in tree.all(cst.Name) if node.value == name][-1]


def shown(tree: Tree, node: Node) -> str:
    return tree.root.code_for_node(node).strip()


# -- order ----------------------------------------------------------------------------------------------------


def test_nodes_are_numbered_as_they_stand_in_the_source() -> None:
    wrapper = MetadataWrapper(cst.parse_module(EVERYTHING), unsafe_skip_copy=True)
    tree = Tree(wrapper.module)
    starts = wrapper.resolve(PositionProvider)
    leaves = tree.within(tree.root, cst.Name, cst.Integer, cst.SimpleString)
    places = [(starts[leaf].start.line, starts[leaf].start.column) for leaf in leaves]
    assert len(places) > 120
    assert places == sorted(places)


def test_every_name_in_the_source_is_in_the_tree() -> None:
    root = cst.parse_module(EVERYTHING)
    tree = Tree(root)
    pending, names = [root], 0
    while pending:
        node = pending.pop()
        names += isinstance(node, cst.Name)
        pending += node.children  # type: ignore[arg-type]
    assert len(tree.all(cst.Name)) == names


def test_a_parent_comes_before_its_children_and_contains_them() -> None:
    tree = parsed(EVERYTHING)
    pending: list[cst.CSTNode] = [tree.root]
    while pending:
        parent = pending.pop()
        for node in children(parent):
            assert tree.parent[node] is parent
            assert tree.before(parent, node)
            assert tree.contains(parent, node)
            assert not tree.contains(node, parent)
            pending.append(node)


def test_children_are_the_nodes_that_carry_meaning() -> None:
    (line,) = cst.parse_module("a = b + c  # d\n").body
    assert isinstance(line, cst.SimpleStatementLine)
    (assign,) = line.body
    assert [type(child).__name__ for child in children(assign)] == ["AssignTarget", "BinaryOperation"]


def test_nodes_of_several_types_come_in_source_order() -> None:
    tree = parsed("for a in b:\n    while c:\n        for d in e: pass\n")
    assert [type(loop) for loop in tree.all(*LOOPS)] == [cst.For, cst.While, cst.For]


def test_within_includes_the_node_itself_and_nothing_beside_it() -> None:
    tree = parsed("f(g(1))\nh(2)\n")
    outer = tree.all(cst.Call)[0]
    assert [shown(tree, call) for call in tree.within(outer, cst.Call)] == ["f(g(1))", "g(1)"]


# -- homes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "home"),
    [
        ("x", cst.Module),
        ("def f():\n    x", cst.FunctionDef),
        ("class C:\n    x = 1", cst.ClassDef),
        ("class C:\n    def f(self): x", cst.FunctionDef),
        ("lambda: x", cst.Lambda),
        ("lambda y=x: y", cst.Module),
        ("def f(y=x): pass", cst.Module),
        ("def f(y: x): pass", cst.Module),
        ("def f() -> x: pass", cst.Module),
        ("@x\ndef f(): pass", cst.Module),
        ("@x\nclass C: pass", cst.Module),
        ("class C(x): pass", cst.Module),
        ("class C(metaclass=x): pass", cst.Module),
        ("class C:\n    @x\n    def f(self): pass", cst.ClassDef),
        ("def f():\n    def g(y=x): pass", cst.FunctionDef),
        ("def f():\n    return [x for y in z]", cst.FunctionDef),
    ],
)
def test_a_home_is_the_body_that_executes_the_node(code: str, home: type[Node]) -> None:
    tree = parsed(code)
    assert type(tree.home(named(tree, "x"))) is home


def test_a_lambda_in_a_header_has_a_body_of_its_own_before_that_of_the_function() -> None:
    tree = parsed("@g(lambda: a)\ndef f(y=lambda: b, z=c):\n    d\ne")
    homes = {name: type(tree.home(named(tree, name))) for name in "abcde"}
    assert homes == {"a": cst.Lambda, "b": cst.Lambda, "c": cst.Module, "d": cst.FunctionDef, "e": cst.Module}


def test_own_leaves_out_nested_functions_classes_and_lambdas_but_not_what_their_headers_execute() -> None:
    tree = parsed(
        """
def f(a=zero()):
    one()
    @two()
    def g(b=three()):
        four()
    class C(five()):
        six()
    lambda c=seven(): eight()
    [nine() for d in ten()]
"""
    )
    function = tree.all(cst.FunctionDef)[0]
    own = [shown(tree, call) for call in tree.own(function, cst.Call)]
    assert own == ["one()", "two()", "three()", "five()", "seven()", "nine()", "ten()"]
    assert tree.own(function, cst.FunctionDef)[0] is function


def test_own_of_a_loop_is_what_its_passes_execute() -> None:
    tree = parsed("def f():\n    for a in b:\n        one()\n        def g(): two()\n    three()\n")
    loop = tree.all(cst.For)[0]
    assert [shown(tree, call) for call in tree.own(loop, cst.Call)] == ["one()"]


# -- statements, blocks, loops --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "statement"),
    [
        ("a = x", cst.Assign),
        ("a; x", cst.Expr),
        ("if x: pass", cst.If),
        ("if a: x", cst.Expr),
        ("while x: pass", cst.While),
        ("for a in x: pass", cst.For),
        ("with x as a: pass", cst.With),
        ("try: pass\nexcept x: pass", cst.Try),
        ("@x\ndef f(): pass", cst.FunctionDef),
        ("def f(a=x): pass", cst.FunctionDef),
        ("match x:\n    case 1: pass", cst.Match),
        ("match a:\n    case 1 if x: pass", cst.Match),
        ("[x for a in b]", cst.Expr),
        ("return_ = lambda: x", cst.Assign),
    ],
)
def test_a_statement_is_the_small_one_or_the_compound_one_whose_header_holds_the_node(
    code: str, statement: type[Node]
) -> None:
    tree = parsed(code)
    assert type(tree.statement(named(tree, "x"))) is statement


def test_the_statement_of_an_elif_is_the_elif() -> None:
    tree = parsed("if a: pass\nelif x: pass\n")
    statement = tree.statement(named(tree, "x"))
    assert isinstance(statement, cst.If)
    assert shown(tree, statement.test) == "x"


@pytest.mark.parametrize(
    ("code", "holder"),
    [
        ("x", cst.Module),
        ("if x: pass", cst.Module),
        ("if a: x", cst.If),
        ("if a: pass\nelse: x", cst.Else),
        ("if a: pass\nelif b:\n    x", cst.If),
        ("try: pass\nexcept A:\n    x", cst.ExceptHandler),
        ("try: pass\nfinally:\n    x", cst.Finally),
        ("def f():\n    x", cst.FunctionDef),
        ("def f(a=x): pass", cst.Module),
        ("match a:\n    case 1:\n        x", cst.MatchCase),
        ("with a: x", cst.With),
    ],
)
def test_a_block_is_the_statement_list_around_a_node(code: str, holder: type[Node]) -> None:
    tree = parsed(code)
    block = tree.block(named(tree, "x"))
    assert type(tree.parent.get(block, block)) is holder


@pytest.mark.parametrize(
    ("code", "loops"),
    [
        ("for a in b: x", ["a"]),
        ("for a in b:\n    for c in d: x", ["c", "a"]),
        ("for a in b:\n    for c in x: pass", ["a"]),
        ("for a in x: pass", []),
        ("for a in b: pass\nelse: x", []),
        ("for a in b:\n    for c in d: pass\n    else: x", ["a"]),
        ("for a in b:\n    def f(): x", []),
        ("for a in b:\n    lambda: x", []),
        ("for a in b:\n    class C: x", []),
        ("for a in b:\n    if c:\n        with d: x", ["a"]),
        ("def f():\n    for a in b:\n        try: pass\n        finally: x", ["a"]),
        ("[x for a in b]", []),
    ],
)
def test_the_loops_of_a_node_are_those_that_execute_it_repeatedly(code: str, loops: list[str]) -> None:
    tree = parsed(code)
    found = tree.loops(named(tree, "x"))
    assert [shown(tree, loop.target) for loop in found if isinstance(loop, cst.For)] == loops


def test_the_condition_of_a_while_is_in_its_loop() -> None:
    tree = parsed("while x: pass\nelse: y\n")
    assert len(tree.loops(named(tree, "x"))) == 1
    assert tree.loops(named(tree, "y")) == []


def test_enclosing_is_strictly_above() -> None:
    tree = parsed("def f():\n    def g(): x\n")
    inner = tree.enclosing(named(tree, "x"), cst.FunctionDef)
    assert inner is not None
    assert inner.name.value == "g"
    assert (above := tree.enclosing(inner, cst.FunctionDef)) is not None
    assert above.name.value == "f"
    assert tree.enclosing(above, cst.FunctionDef) is None


# -- small questions ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("a", "a"),
        ("self.a.b", "self.a.b"),
        ("a().b", None),
        ("a[0].b", None),
        ("1 .real", None),
        ("(a).b", "a.b"),
    ],
)
def test_a_dotted_name_is_a_chain_of_names_and_nothing_else(code: str, name: str | None) -> None:
    assert dotted(cst.parse_expression(code)) == name


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("f(1, 2)", "2"),
        ("f(1, key=3)", "3"),
        ("f(key=3)", "3"),
        ("f(1)", None),
        ("f(*a, 2)", None),
        ("f(1, *a)", None),
        ("f(*a, key=3)", "3"),
        ("f(1, 2, **b)", "2"),
        ("f(1, **b)", None),
        ("f(1, other=2)", None),
    ],
)
def test_an_argument_is_found_by_keyword_or_position_and_never_guessed(code: str, value: str | None) -> None:
    call = cst.parse_expression(code)
    assert isinstance(call, cst.Call)
    found = argument(call, "key", 1)
    assert (cst.Module([]).code_for_node(found) if found is not None else None) == value


@pytest.mark.parametrize(("code", "answer"), [("f(1, k=2)", False), ("f(*a)", True), ("f(**b)", True)])
def test_a_call_spreads_its_arguments_with_stars(code: str, answer: bool) -> None:
    call = cst.parse_expression(code)
    assert isinstance(call, cst.Call)
    assert spreads(call) is answer
