"""TA321: a scikit-learn transformer is fitted to the test part, after the training part."""

from collections.abc import Callable, Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.torch.splits import is_for_evaluation, is_for_training
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.edits import ProposedFix, replace
from ta_lint.syntax.tree import Node, argument, attribute_of_self, dotted, literal_text

KEYWORDS = ("sklearn", ("fit", "fit_transform"))

_TRANSFORMER = regex(
    r"sklearn\.(preprocessing|decomposition|impute|feature_extraction|feature_selection|random_projection|"
    r"kernel_approximation|discriminant_analysis)\.(\w+\.)*[A-Z]\w*"
)
_SPLIT = "sklearn.model_selection.train_test_split"
_DEPTH = 4


def check(module: FileFacts) -> Iterator[Suspicion]:
    fits = [(call, made) for call in module.tree.all(cst.Call) if (made := _fitted(call, module)) is not None]
    for call, made in fits:
        given = call.args[0].value
        if not _is_of(given, is_for_evaluation, 1, module):
            if (tested := _given_both(call, made, module) or _in_each_part(call, module)) is not None:
                message = f"`{module.code(given)}` is each part in turn, so the test part has its own statistics: fit to the training part"
                yield Suspicion(call, message, ((tested, "the test part is given here"),))
            continue
        before = [
            other
            for other, its in fits
            if module.tree.before(other, call)
            and module.qualified(its.func) == module.qualified(made.func)
            and _is_of(other.args[0].value, is_for_training, 0, module)
        ]
        if before:
            message = f"`{module.code(given)}` is scaled by its own statistics: use `transform` of the scaler fitted to training data"
            related = ((before[-1], "fitted to the training part here"),)
            yield Suspicion(call, message, related, _fix(call, before[-1]))


def _given_both(call: cst.Call, made: cst.Call, module: FileFacts) -> Node | None:
    """The test part that a function gets, if it fits to what it is given, whatever that is, and also gets the training part, for the same
    transformer.
    """
    function = module.tree.home(call)
    param = _given(call.args[0].value, module)
    if param is None or not module.tree.contains(function, param) or not _is_certain(call, module):
        return None
    given = [(_whole(value, module), value) for value in module.calls.given(param) or ()]
    alike = {
        _settings(value, function, made, module)
        for part, value in given
        if _is_of(part, is_for_training, 0, module)
    }
    tests = [one for one in given if _is_of(one[0], is_for_evaluation, 1, module)]
    return next((part for part, value in tests if _settings(value, function, made, module) in alike), None)


def _in_each_part(call: cst.Call, module: FileFacts) -> Node | None:
    """The test part, if a loop over the parts fits to each of them, the training part as well: `for name, part in parts.items()`."""
    rows = _whole(call.args[0].value, module)
    if not isinstance(rows, cst.Name) or not _is_certain(call, module):
        return None
    for above in module.tree.ancestors(call):
        loop = getattr(above, "for_in", above)
        if isinstance(loop, (cst.For, cst.CompFor)) and rows.value in _names(loop.target, module):
            parts = list(_labelled(loop.iter, module))
            if any(is_for_training(label) for label, _ in parts):
                return next((part for label, part in parts if is_for_evaluation(label)), None)
    return None


def _names(target: Node, module: FileFacts) -> list[str]:
    return [name.value for name in module.tree.within(target, cst.Name)]


def _labelled(iterable: Node, module: FileFacts) -> Iterator[tuple[str | None, Node]]:
    """The parts that a loop goes over, with what each is called: its key, the text beside it, or its own name."""
    if isinstance(iterable, cst.Call) and called_name(iterable) in ("items", "values"):
        iterable = iterable.func.value if isinstance(iterable.func, cst.Attribute) else iterable
    made = module.kinds.origin(iterable)
    if isinstance(made, cst.Dict):
        for entry in made.elements:
            if isinstance(entry, cst.DictElement):
                yield literal_text(entry.key), entry.value
    elif isinstance(made, (cst.List, cst.Tuple)):
        for element in made.elements:
            several = element.value.elements if isinstance(element.value, cst.Tuple) else [element]
            yield next((name for one in several if (name := _label(one.value))), None), element.value


def _label(node: Node) -> str | None:
    return literal_text(node) or dotted(node)


def _settings(value: Node, function: Node, made: cst.Call, module: FileFacts) -> tuple[str | None, ...]:
    """What the call that gives a value to a function also gives it to build its transformer from, such as a number of components."""
    call = module.tree.enclosing(value, cst.Call)
    names = {one.value for one in module.tree.within(made, cst.Name)}
    if call is None or not isinstance(function, cst.FunctionDef) or not names:
        return ()
    params = [one.name.value for one in function.params.params]
    start = 1 if params[:1] == ["self"] else 0
    passed = [
        argument(call, name, index) if name in names else None for index, name in enumerate(params[start:])
    ]
    return tuple(None if one is None else module.code(one) for one in passed)


def _whole(rows: Node, module: FileFacts) -> Node:
    """What an expression has some rows or columns of, in another container perhaps: `frame` of `frame.drop(columns="y").to_numpy()`."""
    while isinstance(rows, (cst.Call, cst.Attribute, cst.Subscript)):
        inner = rows.func if isinstance(rows, cst.Call) else rows
        is_ours = not isinstance(inner, cst.Attribute) or module.qualified(inner) is None
        if not is_ours or not isinstance(inner, (cst.Attribute, cst.Subscript)) or attribute_of_self(inner):
            break
        rows = inner.value
    return rows


def _given(rows: Node, module: FileFacts) -> cst.Param | None:
    """The argument that rows come from."""
    for _ in range(_DEPTH):
        rows = module.kinds.origin(_whole(rows, module))
    return rows if isinstance(rows, cst.Param) else None


def _is_certain(call: cst.Call, module: FileFacts) -> bool:
    """Whether a function runs a call each time: under no condition, and after no `return` or `continue`."""
    function = module.tree.home(call)
    above = [node for node in module.tree.ancestors(call) if module.tree.contains(function, node)]
    leaves = [
        one
        for one in module.tree.own(function, cst.Return, cst.Continue, cst.Break)
        if module.tree.before(one, call) and one not in above
    ]
    return not leaves and not any(
        isinstance(node, (cst.If, cst.IfExp, cst.BooleanOperation, cst.Try)) for node in above
    )


def _fitted(call: cst.Call, module: FileFacts) -> cst.Call | None:
    """The constructor of the transformer that a call fits."""
    func = call.func
    if (
        not isinstance(func, cst.Attribute)
        or func.attr.value not in ("fit", "fit_transform")
        or not call.args
    ):
        return None
    made = module.kinds.construction(func.value)
    is_ours = made is not None and _TRANSFORMER.fullmatch(module.qualified(made.func) or "") is not None
    return made if is_ours else None


def _is_of(given: Node, says: Callable[[str | None], bool], place: int, module: FileFacts) -> bool:
    """Whether data is of the training part (place 0) or the test part (1), by the split that made it, or by its name."""
    if not isinstance(given, cst.Name):
        return says(dotted(given))
    for binding in module.names.reaching(given):
        value, statement = binding.value, binding.node
        if (
            binding.how != "unpack"
            or not isinstance(value, cst.Call)
            or not isinstance(statement, cst.Assign)
        ):
            continue
        target = statement.targets[0].target
        if module.qualified(value.func) == _SPLIT and isinstance(target, cst.Tuple):
            names = [dotted(element.value) for element in target.elements]
            return names.index(given.value) % 2 == place if given.value in names else False
    return says(given.value)


def _fix(call: cst.Call, before: cst.Call) -> ProposedFix | None:
    """Transforms by what was fitted to the training part, where one object does both at once."""
    func, other = call.func, before.func
    assert isinstance(func, cst.Attribute)
    assert isinstance(other, cst.Attribute)
    is_one = dotted(func.value) is not None and dotted(func.value) == dotted(other.value)
    if func.attr.value != "fit_transform" or not is_one:
        return None
    return ProposedFix("transform as the training part", (replace(func.attr, "transform"),))
