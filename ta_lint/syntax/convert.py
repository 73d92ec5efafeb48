"""Converts Python's own tree to libcst nodes.

libcst takes ten times as long as `ast` to parse a file, mostly for layout: white space, commas, parentheses and comments.
So `ast` parses, and its nodes are converted to libcst's, with everything that `tree.children` lists and their words and
numbers. Layout is not set at all: reading it raises `AttributeError`. `syntax.places` has the span and the source code of
a node.
"""

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from types import CodeType, FunctionType
from typing import Any

import libcst as cst

from ta_lint.core.bounds import too_deep
from ta_lint.core.source import Source

Make = Callable[..., Any]


class NotConvertible(Exception):
    """The file contains something that Python's tree lacks or represents differently from libcst's."""


def converted(source: Source, syntax: ast.Module) -> tuple[cst.Module, dict[int, ast.AST]]:
    """A file as libcst nodes, and the `ast` node that each was made from, by the `id` of the libcst node.

    Raises:
        NotConvertible: only libcst itself can build the tree.
        Unreadable: the file is nested too deep.
    """
    if _CONTINUED.search(source.text) is not None:
        raise NotConvertible
    converter = _Converter(source)
    try:
        return converter.module(syntax), converter.made
    except RecursionError as error:
        raise too_deep() from error


# A backslash after `:` or `;`, so that a block or a statement continues on the next line.
_CONTINUED = re.compile(r"[:;][ \t]*\\\r?\n")

# One string literal, as the tokenizer reads it, without the nesting that f-strings allow since Python 3.12.
_STRING = re.compile(
    r"(?i:[rbuft]{0,2})"
    r"(?:'''(?:[^'\\]|\\.|'(?!''))*'''|\"\"\"(?:[^\"\\]|\\.|\"(?!\"\"))*\"\"\""
    r"|'(?!'')(?:[^'\\\n]|\\.)*'|\"(?!\"\")(?:[^\"\\\n]|\\.)*\")",
    re.DOTALL,
)
# One string literal with what may stand between it and the next.
_LITERAL = re.compile(rf"({_STRING.pattern})(?>(?:[ \t\f\r\n]|\\\r?\n|#[^\n]*)*)", re.DOTALL)
# In an f-string: `{x=}`, or adjacent strings. Python's tree does not show them as they are written.
_AMBIGUOUS = re.compile(r"=\s*[!:}]|['\"]\s*[rbufRBUF]{0,2}['\"]")


def _maker(kind: type[cst.CSTNode], *fields: str) -> Make:
    """A function that makes a node with only these fields, five times as fast as its class.

    libcst's classes are frozen, have slots, and validate their arguments.
    """
    setters = {f"set_{number}": getattr(kind, field).__set__ for number, field in enumerate(fields)}
    code = _maker_code(len(fields)).replace()  # a copy, as Python specialises code objects at run time
    return FunctionType(code, {"new": object.__new__, "kind": kind, **setters})


@cache
def _maker_code(count: int) -> CodeType:
    """The code that makes a node with `count` fields, compiled once for all types with as many."""
    values = [f"value_{number}" for number in range(count)]
    lines = [f"def make({', '.join(values)}):", " node = new(kind)"]
    lines += [f" set_{number}(node, {value})" for number, value in enumerate(values)]
    scope: dict[str, Any] = {}
    exec("\n".join([*lines, " return node"]), scope)  # noqa: S102 - the code depends on a number only
    code: CodeType = scope["make"].__code__
    return code


_name = _maker(cst.Name, "value")
_attribute = _maker(cst.Attribute, "value", "attr")
_call = _maker(cst.Call, "func", "args")
_arg = _maker(cst.Arg, "value", "keyword", "star")
_subscript = _maker(cst.Subscript, "value", "slice")
_subscript_element = _maker(cst.SubscriptElement, "slice")
_index = _maker(cst.Index, "value", "star")
_slice = _maker(cst.Slice, "lower", "upper", "step")
_element = _maker(cst.Element, "value")
_starred_element = _maker(cst.StarredElement, "value")
_dict = _maker(cst.Dict, "elements")
_dict_element = _maker(cst.DictElement, "key", "value")
_starred_dict_element = _maker(cst.StarredDictElement, "value")
_binary = _maker(cst.BinaryOperation, "left", "operator", "right")
_boolean = _maker(cst.BooleanOperation, "left", "operator", "right")
_unary = _maker(cst.UnaryOperation, "operator", "expression")
_comparison = _maker(cst.Comparison, "left", "comparisons")
_comparison_target = _maker(cst.ComparisonTarget, "operator", "comparator")
_comp_for = _maker(cst.CompFor, "target", "iter", "ifs", "inner_for_in", "asynchronous")
_comp_if = _maker(cst.CompIf, "test")
_dict_comp = _maker(cst.DictComp, "key", "value", "for_in")
_if_exp = _maker(cst.IfExp, "test", "body", "orelse")
_lambda = _maker(cst.Lambda, "params", "body")
_named_expr = _maker(cst.NamedExpr, "target", "value")
_await = _maker(cst.Await, "expression")
_yield = _maker(cst.Yield, "value")
_from = _maker(cst.From, "item")
_ellipsis = _maker(cst.Ellipsis)
_string = _maker(cst.SimpleString, "value")
_concatenated = _maker(cst.ConcatenatedString, "left", "right")
_formatted = _maker(cst.FormattedString, "parts")
_formatted_text = _maker(cst.FormattedStringText, "value")  # the value, not the source code
_formatted_expression = _maker(cst.FormattedStringExpression, "expression", "format_spec")
_parameters = _maker(cst.Parameters, "params", "star_arg", "kwonly_params", "star_kwarg", "posonly_params")
_param = _maker(cst.Param, "name", "annotation", "default", "star")
_param_star = _maker(cst.ParamStar)
_annotation = _maker(cst.Annotation, "annotation")
_module = _maker(cst.Module, "body")
_block = _maker(cst.IndentedBlock, "body")
_suite = _maker(cst.SimpleStatementSuite, "body")
_line = _maker(cst.SimpleStatementLine, "body")
_function = _maker(
    cst.FunctionDef, "name", "params", "body", "decorators", "returns", "asynchronous", "type_parameters"
)
_asynchronous = cst.Asynchronous
_class = _maker(cst.ClassDef, "name", "body", "bases", "keywords", "decorators", "type_parameters")
_decorator = _maker(cst.Decorator, "decorator")
_expr = _maker(cst.Expr, "value")
_assign = _maker(cst.Assign, "targets", "value")
_assign_target = _maker(cst.AssignTarget, "target")
_ann_assign = _maker(cst.AnnAssign, "target", "annotation", "value")
_aug_assign = _maker(cst.AugAssign, "target", "operator", "value")
_return = _maker(cst.Return, "value")
_raise = _maker(cst.Raise, "exc", "cause")
_assert = _maker(cst.Assert, "test", "msg")
_del = _maker(cst.Del, "target")
_pass = _maker(cst.Pass)
_break = _maker(cst.Break)
_continue = _maker(cst.Continue)
_global = _maker(cst.Global, "names")
_nonlocal = _maker(cst.Nonlocal, "names")
_name_item = _maker(cst.NameItem, "name")
_import = _maker(cst.Import, "names")
_import_from = _maker(cst.ImportFrom, "module", "names", "relative")
_import_alias = _maker(cst.ImportAlias, "name", "asname")
_import_star = _maker(cst.ImportStar)
_as_name = _maker(cst.AsName, "name")
_dot = _maker(cst.Dot)
_if = _maker(cst.If, "test", "body", "orelse")
_else = _maker(cst.Else, "body")
_for = _maker(cst.For, "target", "iter", "body", "orelse", "asynchronous")
_while = _maker(cst.While, "test", "body", "orelse")
_with = _maker(cst.With, "items", "body", "asynchronous")
_with_item = _maker(cst.WithItem, "item", "asname")
_try = _maker(cst.Try, "body", "handlers", "orelse", "finalbody")
_try_star = _maker(cst.TryStar, "body", "handlers", "orelse", "finalbody")
_handler = _maker(cst.ExceptHandler, "body", "type", "name")
_star_handler = _maker(cst.ExceptStarHandler, "body", "type", "name")
_finally = _maker(cst.Finally, "body")
_match = _maker(cst.Match, "subject", "cases")
_match_case = _maker(cst.MatchCase, "pattern", "guard", "body")
_match_value = _maker(cst.MatchValue, "value")
_match_singleton = _maker(cst.MatchSingleton, "value")
_match_list = _maker(cst.MatchList, "patterns")
_match_tuple = _maker(cst.MatchTuple, "patterns")
_match_sequence_element = _maker(cst.MatchSequenceElement, "value")
_match_star = _maker(cst.MatchStar, "name")
_match_mapping = _maker(cst.MatchMapping, "elements", "rest")
_match_mapping_element = _maker(cst.MatchMappingElement, "key", "pattern")
_match_class = _maker(cst.MatchClass, "cls", "patterns", "kwds")
_match_keyword_element = _maker(cst.MatchKeywordElement, "key", "pattern")
_match_as = _maker(cst.MatchAs, "pattern", "name")
_match_or = _maker(cst.MatchOr, "patterns")
_match_or_element = _maker(cst.MatchOrElement, "pattern")

_NUMBERS = {int: _maker(cst.Integer, "value"), float: _maker(cst.Float, "value"), complex: _maker(cst.Imaginary, "value")}  # fmt: skip
_SEQUENCES = {ast.Tuple: _maker(cst.Tuple, "elements"), ast.List: _maker(cst.List, "elements"), ast.Set: _maker(cst.Set, "elements")}  # fmt: skip
_COMPREHENSIONS = {
    ast.GeneratorExp: _maker(cst.GeneratorExp, "elt", "for_in"),
    ast.ListComp: _maker(cst.ListComp, "elt", "for_in"),
    ast.SetComp: _maker(cst.SetComp, "elt", "for_in"),
}

# No check asks for the place of an operator, so all of one kind share a node.
_BINARY, _AUGMENTED = (
    {
        getattr(ast, ours): getattr(cst, theirs + suffix)()
        for ours, theirs in (
            ("Add", "Add"), ("Sub", "Subtract"), ("Mult", "Multiply"), ("MatMult", "MatrixMultiply"),
            ("Div", "Divide"), ("FloorDiv", "FloorDivide"), ("Mod", "Modulo"), ("Pow", "Power"),
            ("LShift", "LeftShift"), ("RShift", "RightShift"), ("BitOr", "BitOr"), ("BitXor", "BitXor"),
            ("BitAnd", "BitAnd"),
        )
    }
    for suffix in ("", "Assign")
)  # fmt: skip
_BOOLEAN = {ast.And: cst.And(), ast.Or: cst.Or()}
_UNARY = {ast.Not: cst.Not(), ast.USub: cst.Minus(), ast.UAdd: cst.Plus(), ast.Invert: cst.BitInvert()}
_COMPARED = {
    getattr(ast, ours): getattr(cst, theirs)()
    for ours, theirs in (
        ("Eq", "Equal"), ("NotEq", "NotEqual"), ("Lt", "LessThan"), ("LtE", "LessThanEqual"),
        ("Gt", "GreaterThan"), ("GtE", "GreaterThanEqual"), ("Is", "Is"), ("IsNot", "IsNot"),
        ("In", "In"), ("NotIn", "NotIn"),
    )
}  # fmt: skip

_COMPOUND = frozenset(
    getattr(ast, name)
    for name in "AsyncFor AsyncFunctionDef AsyncWith ClassDef For FunctionDef If Match Try TryStar While With".split()
)


class _Converter:
    """Converts the nodes of one file, each by the method with the name of its type."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._lines = source.lines
        self.made: dict[int, ast.AST] = {}
        self._formatted = False
        """Whether we are inside an f-string, where Python 3.11 has no positions."""

    def __getitem__(self, node: Any) -> Any:
        kind = type(node)
        if kind is ast.Name:  # a third of all nodes
            made = _name(node.id)
        else:
            method = _METHODS.get(kind)
            if method is None:
                raise NotConvertible
            made = method(self, node)
        if not self._formatted:  # Python 3.11 has no positions there
            self.made[id(made)] = node
        return made

    def _known(self, made: Any, node: ast.AST) -> Any:
        """Record the `ast` node that a node was made from, and return the node."""
        if not self._formatted:
            self.made[id(made)] = node
        return made

    def _maybe(self, node: ast.AST | None) -> Any:
        return self[node] if node is not None else None

    # -- lines and blocks ---------------------------------------------------------------------------------------

    def module(self, node: ast.Module) -> cst.Module:
        module: cst.Module = _module(self._statements(node.body))
        return module

    def _statements(self, nodes: Sequence[ast.stmt]) -> list[Any]:
        found: list[Any] = []
        small: list[Any] = []
        end = 0
        for node in nodes:
            made = self[node]
            if type(node) in _COMPOUND:
                found.append(made)
                end = 0
            elif node.lineno == end:
                small.append(made)
                end = node.end_lineno or 0
            else:
                small = [made]
                found.append(_line(small))
                end = node.end_lineno or 0
        return found

    def _body(self, nodes: Sequence[ast.stmt]) -> Any:
        first = nodes[0]
        column = first.col_offset
        if not column or self._lines[first.lineno - 1][:column].isspace():
            return _block(self._statements(nodes))
        return _suite([self[node] for node in nodes])

    # -- small statements ---------------------------------------------------------------------------------------

    def Expr(self, node: ast.Expr) -> Any:
        return _expr(self[node.value])

    def Assign(self, node: ast.Assign) -> Any:
        return _assign([_assign_target(self[target]) for target in node.targets], self[node.value])

    def AnnAssign(self, node: ast.AnnAssign) -> Any:
        return _ann_assign(self[node.target], _annotation(self[node.annotation]), self._maybe(node.value))

    def AugAssign(self, node: ast.AugAssign) -> Any:
        return _aug_assign(self[node.target], _AUGMENTED[type(node.op)], self[node.value])

    def Return(self, node: ast.Return) -> Any:
        return _return(self._maybe(node.value))

    def Raise(self, node: ast.Raise) -> Any:
        return _raise(self._maybe(node.exc), _from(self[node.cause]) if node.cause is not None else None)

    def Assert(self, node: ast.Assert) -> Any:
        return _assert(self[node.test], self._maybe(node.msg))

    def Delete(self, node: ast.Delete) -> Any:
        targets = [self[target] for target in node.targets]
        return _del(targets[0] if len(targets) == 1 else _SEQUENCES[ast.Tuple](list(map(_element, targets))))

    def Pass(self, node: ast.Pass) -> Any:
        return _pass()

    def Break(self, node: ast.Break) -> Any:
        return _break()

    def Continue(self, node: ast.Continue) -> Any:
        return _continue()

    def Global(self, node: ast.Global) -> Any:
        return _global([_name_item(_name(name)) for name in node.names])

    def Nonlocal(self, node: ast.Nonlocal) -> Any:
        return _nonlocal([_name_item(_name(name)) for name in node.names])

    def Import(self, node: ast.Import) -> Any:
        return _import(list(map(_alias, node.names)))

    def ImportFrom(self, node: ast.ImportFrom) -> Any:
        module = _dotted(node.module) if node.module is not None else None
        star = node.names[0].name == "*"
        names = _import_star() if star else list(map(_alias, node.names))
        return _import_from(module, names, [_dot() for _ in range(node.level)])

    # -- compound statements ------------------------------------------------------------------------------------

    def If(self, node: ast.If) -> Any:
        orelse: Any = None
        if node.orelse:
            other = node.orelse[0]
            if type(other) is ast.If and self._lines[other.lineno - 1].startswith("elif", other.col_offset):
                orelse = self[other]
            else:
                orelse = _else(self._body(node.orelse))
        return _if(self[node.test], self._body(node.body), orelse)

    def _else(self, nodes: Sequence[ast.stmt]) -> Any:
        return _else(self._body(nodes)) if nodes else None

    def For(self, node: ast.For | ast.AsyncFor) -> Any:
        return _for(
            self[node.target],
            self[node.iter],
            self._body(node.body),
            self._else(node.orelse),
            _asynchronous() if type(node) is ast.AsyncFor else None,
        )

    def While(self, node: ast.While) -> Any:
        return _while(self[node.test], self._body(node.body), self._else(node.orelse))

    def With(self, node: ast.With | ast.AsyncWith) -> Any:
        items = [
            _with_item(
                self[item.context_expr],
                _as_name(self[item.optional_vars]) if item.optional_vars is not None else None,
            )
            for item in node.items
        ]
        return _with(items, self._body(node.body), _asynchronous() if type(node) is ast.AsyncWith else None)

    AsyncFor, AsyncWith = For, With

    def Try(self, node: ast.Try, whole: Make = _try, handler: Make = _handler) -> Any:
        handlers = [
            handler(
                self._body(caught.body),
                self._maybe(caught.type),
                _as_name(_name(caught.name)) if caught.name is not None else None,
            )
            for caught in node.handlers
        ]
        final = _finally(self._body(node.finalbody)) if node.finalbody else None
        return whole(self._body(node.body), handlers, self._else(node.orelse), final)

    def TryStar(self, node: Any) -> Any:
        return self.Try(node, _try_star, _star_handler)

    def Match(self, node: ast.Match) -> Any:
        cases = [
            _match_case(self[case.pattern], self._maybe(case.guard), self._body(case.body))
            for case in node.cases
        ]
        return _match(self[node.subject], cases)

    def FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Any:
        if getattr(node, "type_params", None):
            raise NotConvertible
        return _function(
            _name(node.name),
            self._parameters(node.args),
            self._body(node.body),
            [_decorator(self[decorator]) for decorator in node.decorator_list],
            _annotation(self[node.returns]) if node.returns is not None else None,
            _asynchronous() if type(node) is ast.AsyncFunctionDef else None,
            None,
        )

    AsyncFunctionDef = FunctionDef

    def ClassDef(self, node: ast.ClassDef) -> Any:
        if getattr(node, "type_params", None):
            raise NotConvertible
        args = self._args(node.bases, node.keywords)
        return _class(
            _name(node.name),
            self._body(node.body),
            [arg for arg in args if arg.keyword is None and arg.star != "**"],
            [arg for arg in args if arg.keyword is not None or arg.star == "**"],
            [_decorator(self[decorator]) for decorator in node.decorator_list],
            None,
        )

    def _parameters(self, node: ast.arguments) -> Any:
        positional = [*node.posonlyargs, *node.args]
        bare = len(positional) - len(node.defaults)
        defaults = [None] * bare + [self[default] for default in node.defaults]
        params = [self._param(arg, default) for arg, default in zip(positional, defaults, strict=True)]
        posonly = len(node.posonlyargs)
        star: Any = cst.MaybeSentinel.DEFAULT
        if node.vararg is not None:
            star = self._param(node.vararg, None, "*")
        elif node.kwonlyargs:
            star = _param_star()
        return _parameters(
            params[posonly:],
            star,
            [
                self._param(arg, self._maybe(default))
                for arg, default in zip(node.kwonlyargs, node.kw_defaults, strict=True)
            ],
            self._param(node.kwarg, None, "**") if node.kwarg is not None else None,
            params[:posonly],
        )

    def _param(self, node: ast.arg, default: Any, star: str = "") -> Any:
        annotation = _annotation(self[node.annotation]) if node.annotation is not None else None
        return _param(_name(node.arg), annotation, default, star)  # libcst's node includes the default

    # -- patterns -----------------------------------------------------------------------------------------------

    def MatchValue(self, node: ast.MatchValue) -> Any:
        return _match_value(self[node.value])

    def MatchSingleton(self, node: ast.MatchSingleton) -> Any:
        return _match_singleton(_name(str(node.value)))

    def MatchSequence(self, node: ast.MatchSequence) -> Any:
        elements = [
            self[pattern] if type(pattern) is ast.MatchStar else _match_sequence_element(self[pattern])
            for pattern in node.patterns
        ]
        return (_match_tuple if self._text(node)[0] == "(" else _match_list)(elements)

    def MatchStar(self, node: ast.MatchStar) -> Any:
        return _match_star(_name(node.name) if node.name is not None else None)

    def MatchMapping(self, node: ast.MatchMapping) -> Any:
        elements = [
            _match_mapping_element(self[key], self[pattern])
            for key, pattern in zip(node.keys, node.patterns, strict=True)
        ]
        return _match_mapping(elements, _name(node.rest) if node.rest is not None else None)

    def MatchClass(self, node: ast.MatchClass) -> Any:
        keywords = [
            _match_keyword_element(_name(name), self[pattern])
            for name, pattern in zip(node.kwd_attrs, node.kwd_patterns, strict=True)
        ]
        positional = [_match_sequence_element(self[pattern]) for pattern in node.patterns]
        return _match_class(self[node.cls], positional, keywords)

    def MatchAs(self, node: ast.MatchAs) -> Any:
        return _match_as(self._maybe(node.pattern), _name(node.name) if node.name is not None else None)

    def MatchOr(self, node: ast.MatchOr) -> Any:
        return _match_or([_match_or_element(self[pattern]) for pattern in node.patterns])

    # -- expressions --------------------------------------------------------------------------------------------

    def Attribute(self, node: ast.Attribute) -> Any:
        return _attribute(self[node.value], _name(node.attr))

    def Call(self, node: ast.Call) -> Any:
        return _call(self[node.func], self._args(node.args, node.keywords))

    def _args(self, values: list[ast.expr], keywords: list[ast.keyword]) -> list[Any]:
        found = [
            self._known(_arg(self[value.value], None, "*"), value)
            if type(value) is ast.Starred
            else _arg(self[value], None, "")
            for value in values
        ]
        if not keywords:
            return found
        found += [
            self._known(_arg(self[keyword.value], _name(keyword.arg), ""), keyword)
            if keyword.arg is not None
            else self._known(_arg(self[keyword.value], None, "**"), keyword)
            for keyword in keywords
        ]
        if values and type(values[-1]) is ast.Starred:  # it may stand after a keyword
            given: list[ast.expr | ast.keyword] = [*values, *keywords]
            order = sorted(
                range(len(given)), key=lambda number: (given[number].lineno, given[number].col_offset)
            )
            found = [found[number] for number in order]
        return found

    def Subscript(self, node: ast.Subscript) -> Any:
        index = node.slice
        if type(index) is not ast.Tuple:
            return _subscript(self[node.value], [self._subscript_element(index)])
        if self._formatted or not index.elts:
            raise NotConvertible
        if self._is_in_parentheses(index):
            return _subscript(self[node.value], [_subscript_element(_index(self[index], None))])
        return _subscript(self[node.value], [self._subscript_element(item) for item in index.elts])

    def _subscript_element(self, node: ast.expr) -> Any:
        if type(node) is ast.Slice:
            parts = self._maybe(node.lower), self._maybe(node.upper), self._maybe(node.step)
            return _subscript_element(_slice(*parts))
        if type(node) is ast.Starred:
            return _subscript_element(_index(self[node.value], "*"))
        return _subscript_element(_index(self[node], None))

    def _is_in_parentheses(self, node: ast.Tuple) -> bool:
        """Whether the tuple has parentheses of its own, as in `d[(a, b)]` but not in `d[(a), (b)]`."""
        text = self._text(node)
        if text[0] != "(" or text[-1] != ")" or any(type(item) is ast.Slice for item in node.elts):
            return False
        made = cst.parse_expression(text)
        return isinstance(made, cst.Tuple) and bool(made.lpar)

    def _sequence(self, node: ast.Tuple | ast.List | ast.Set) -> Any:
        return _SEQUENCES[type(node)]([
            self._known(_starred_element(self[value.value]), value) if type(value) is ast.Starred else _element(self[value])
            for value in node.elts
        ])  # fmt: skip

    Tuple = List = Set = _sequence

    def Dict(self, node: ast.Dict) -> Any:
        return _dict([
            _dict_element(self[key], self[value]) if key is not None else _starred_dict_element(self[value])
            for key, value in zip(node.keys, node.values, strict=True)
        ])  # fmt: skip

    def BinOp(self, node: ast.BinOp) -> Any:
        return _binary(self[node.left], _BINARY[type(node.op)], self[node.right])

    def BoolOp(self, node: ast.BoolOp) -> Any:
        operator = _BOOLEAN[type(node.op)]
        left = self[node.values[0]]
        for value in node.values[1:]:
            left = _boolean(left, operator, self[value])
        return left

    def UnaryOp(self, node: ast.UnaryOp) -> Any:
        return _unary(_UNARY[type(node.op)], self[node.operand])

    def Compare(self, node: ast.Compare) -> Any:
        targets = [
            _comparison_target(_COMPARED[type(operator)], self[value])
            for operator, value in zip(node.ops, node.comparators, strict=True)
        ]
        return _comparison(self[node.left], targets)

    def _comprehension(self, node: ast.GeneratorExp | ast.ListComp | ast.SetComp) -> Any:
        return _COMPREHENSIONS[type(node)](self[node.elt], self._comp_for(node.generators))

    GeneratorExp = ListComp = SetComp = _comprehension

    def DictComp(self, node: ast.DictComp) -> Any:
        return _dict_comp(self[node.key], self[node.value], self._comp_for(node.generators))

    def _comp_for(self, nodes: Sequence[ast.comprehension]) -> Any:
        inner = None
        for node in reversed(nodes):
            ifs = [_comp_if(self[test]) for test in node.ifs]
            asynchronous = _asynchronous() if node.is_async else None
            inner = _comp_for(self[node.target], self[node.iter], ifs, inner, asynchronous)
        return inner

    def IfExp(self, node: ast.IfExp) -> Any:
        return _if_exp(self[node.test], self[node.body], self[node.orelse])

    def Lambda(self, node: ast.Lambda) -> Any:
        return _lambda(self._parameters(node.args), self[node.body])

    def NamedExpr(self, node: ast.NamedExpr) -> Any:
        return _named_expr(self[node.target], self[node.value])

    def Await(self, node: ast.Await) -> Any:
        return _await(self[node.value])

    def Yield(self, node: ast.Yield) -> Any:
        return _yield(self._maybe(node.value))

    def YieldFrom(self, node: ast.YieldFrom) -> Any:
        return _yield(_from(self[node.value]))

    # -- literals -----------------------------------------------------------------------------------------------

    def Constant(self, node: ast.Constant) -> Any:
        value = node.value
        if value is None or value is True or value is False:
            return _name(str(value))
        if value is ...:
            return _ellipsis()
        if isinstance(value, (str, bytes)):
            if self._formatted:
                return _string(repr(value))
            text = self._text(node)
            return _string(text) if _is_one_string(text) else self._adjacent_literals(text)
        return _NUMBERS[type(value)](repr(value) if self._formatted else self._text(node))

    def JoinedStr(self, node: ast.JoinedStr) -> Any:
        if self._formatted:
            raise NotConvertible
        text = self._text(node)
        if not _is_one_string(text):
            return self._adjacent_literals(text)
        try:
            return self._formatted_string(text, node)
        except NotConvertible:
            return self._parsed(text)

    def _formatted_string(self, text: str, node: ast.JoinedStr) -> Any:
        if _AMBIGUOUS.search(text.lstrip("rfRF").strip("'\"")) is not None:
            raise NotConvertible
        self._formatted = True
        try:
            return _formatted(self._parts(node.values))
        finally:
            self._formatted = False

    def _adjacent_literals(self, text: str) -> Any:
        """Adjacent literals, which Python joins, as separate nodes; libcst parses them if they are hard to separate."""
        try:
            made = [self._literal(literal) for literal in _literals(text)]
        except NotConvertible:
            return self._parsed(text)
        whole = made.pop()
        while made:
            whole = _concatenated(made.pop(), whole)
        return whole

    def _literal(self, text: str) -> Any:
        if "f" not in text.partition(text[-1])[0].lower():
            return _string(text)
        alone = Source(self._source.path, text).syntax
        node = alone.body[0] if isinstance(alone, ast.Module) else None
        if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.JoinedStr):
            raise NotConvertible
        return self._formatted_string(text, node.value)

    def _parts(self, nodes: Sequence[ast.expr]) -> list[Any]:
        parts: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.FormattedValue):
                form = node.format_spec
                spec = self._parts(form.values) if isinstance(form, ast.JoinedStr) else None
                parts.append(_formatted_expression(self[node.value], spec))
            elif isinstance(node, ast.Constant):
                parts.append(_formatted_text(node.value))
        return parts

    def _parsed(self, text: str) -> Any:
        """An expression as libcst parses it, such as adjacent strings."""
        return cst.parse_expression(text if "\n" not in text and "\r" not in text else f"({text})")

    def _text(self, node: ast.expr | ast.pattern) -> str:
        """The source code of an expression or a pattern."""
        first, last = node.lineno, node.end_lineno or node.lineno
        start, end = node.col_offset, node.end_col_offset or 0
        line = self._lines[first - 1]
        if first == last:
            return line[start:end] if line.isascii() else line.encode()[start:end].decode()
        ends = self._source.line_ends
        parts = [line[start:] if line.isascii() else line.encode()[start:].decode(), ends[first - 1]]
        for number in range(first, last - 1):
            parts += self._lines[number], ends[number]
        line = self._lines[last - 1]
        return "".join([*parts, line[:end] if line.isascii() else line.encode()[:end].decode()])


_METHODS: dict[type[ast.AST], Callable[[_Converter, Any], Any]] = {
    getattr(ast, name): method for name, method in vars(_Converter).items() if name[0].isupper()
}


def _is_one_string(text: str) -> bool:
    mark = text[-1]
    quote = mark * 3 if text.startswith(mark * 3) and text[-4:-3] != mark else mark
    if text.startswith(quote) and text.endswith(quote) and text.count(quote) == 2:  # the usual case
        return True
    found = _STRING.match(text)
    return found is not None and found.end() == len(text)


def _literals(text: str) -> Iterator[str]:
    """The adjacent string literals in a text.

    Raises:
        NotConvertible: the text contains something else.
    """
    position = 0
    while position < len(text):
        found = _LITERAL.match(text, position)
        if found is None:
            raise NotConvertible
        yield found[1]
        position = found.end()


def _alias(node: ast.alias) -> Any:
    return _import_alias(
        _dotted(node.name), _as_name(_name(node.asname)) if node.asname is not None else None
    )


def _dotted(name: str) -> Any:
    first, *rest = name.split(".")
    node = _name(first)
    for part in rest:
        node = _attribute(node, _name(part))
    return node
