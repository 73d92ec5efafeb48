"""TA321: a scikit-learn transformer is fitted to the test part, after the training part."""

from collections.abc import Callable, Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.torch.splits import is_for_evaluation, is_for_training
from ta_lint.syntax.edits import ProposedFix, replace
from ta_lint.syntax.tree import Node, dotted

KEYWORDS = ("sklearn", ("fit", "fit_transform"))

_TRANSFORMER = regex(
    r"sklearn\.(preprocessing|decomposition|impute|feature_extraction|feature_selection|random_projection|"
    r"kernel_approximation|discriminant_analysis)\.(\w+\.)*[A-Z]\w*"
)
_SPLIT = "sklearn.model_selection.train_test_split"


def check(module: FileFacts) -> Iterator[Suspicion]:
    fits = [(call, made) for call in module.tree.all(cst.Call) if (made := _fitted(call, module)) is not None]
    for call, made in fits:
        given = call.args[0].value
        if not _is_of(given, is_for_evaluation, 1, module):
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
