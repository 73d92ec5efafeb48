"""TA902: `p.require_grad = False` sets a new attribute, which autograd ignores, and `p.requires_grad_ = False` hides the method."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Kind, Suspicion
from ta_lint.facts.loops.gradients import Flow
from ta_lint.syntax.edits import ProposedFix, replace
from ta_lint.syntax.tree import Node, literal_text

_TYPO, _NAME = "require_grad", "requires_grad"

_METHOD = f"{_NAME}_"

KEYWORDS = (("*require_grad*", _METHOD),)


def check(module: FileFacts) -> Iterator[Suspicion]:
    if not _is_of_the_project(module, _METHOD):
        yield from _methods_hidden(module)
    if not _is_of_the_project(module, _TYPO, f"{_TYPO}_"):
        yield from _misspelled(module)


def _methods_hidden(module: FileFacts) -> Iterator[Suspicion]:
    """`model.requires_grad_ = False`: True, False or a condition takes the place of the method, and nobody calls that."""
    for statement in module.tree.all(cst.Assign):
        is_flag = isinstance(statement.value, (cst.Comparison, cst.UnaryOperation))
        if not is_flag and module.boolean(statement.value) is None:
            continue
        for target in statement.targets:
            attribute = target.target
            if isinstance(attribute, cst.Attribute) and attribute.attr.value == _METHOD:
                message = f"`{_METHOD}` is a method: this sets an attribute that autograd ignores"
                call = f"{module.verbatim(attribute)}({module.verbatim(statement.value)})"
                is_alone = len(statement.targets) == 1
                fix = ProposedFix(f"call `{_METHOD}`", (replace(statement, call),)) if is_alone else None
                yield Suspicion(attribute, message, fix=fix)


def _misspelled(module: FileFacts) -> Iterator[Suspicion]:
    for attribute in module.tree.all(cst.Attribute):
        if attribute.attr.value == _TYPO and (
            _is_assigned(attribute, module) or _is_tensor(attribute.value, module)
        ):
            message = f"`{module.code(attribute)}` is ignored by autograd; did you mean `{_NAME}`?"
            is_module = module.kind(attribute.value) is Kind.MODULE  # a module has neither attribute
            fix = None if is_module else _respelled(attribute.attr, _NAME)
            yield Suspicion(attribute, message, fix=fix, is_note=_says_what_holds(attribute, module))
        elif attribute.attr.value == f"{_TYPO}_" and isinstance(module.tree.parent[attribute], cst.Call):
            message = f"tensors and modules have no `{_TYPO}_`: the method is `{_NAME}_`"
            yield Suspicion(attribute, message, fix=_respelled(attribute.attr, f"{_NAME}_"))
    for call in module.tree.all(cst.Call):
        for arg in call.args:
            if arg.keyword is not None and arg.keyword.value == _TYPO and _takes_requires_grad(call, module):
                message = f"`{module.code(call.func)}` has no parameter `{_TYPO}`: it is `{_NAME}`"
                yield Suspicion(arg, message, fix=_respelled(arg.keyword, _NAME))
        if module.qualified(call.func) == "builtins.setattr" and len(call.args) == 3:
            named = call.args[1].value
            if literal_text(named) == _TYPO:
                message = f"`{_TYPO}` is ignored by autograd; did you mean `{_NAME}`?"
                yield Suspicion(call, message, fix=_respelled(named, f'"{_NAME}"'))


def _is_of_the_project(module: FileFacts, *names: str) -> bool:
    """Whether a class or function of the program, as far as it is known, has one of these names and may be meant."""
    others = module.names.beside(*names) if names[0] in module.source.text else []
    return any(_binds(module, root, names) for root in (module.tree.root, *(others or ())))


def _binds(module: FileFacts, root: cst.Module, names: tuple[str, ...]) -> bool:
    """Whether a class of a file has an attribute or a method of one of these names."""
    return any(function.name.value in names for function in module.tree.within(root, cst.FunctionDef)) or any(
        module.classes.attribute(klass, names[0]) or module.classes.annotations(klass, names[0])
        for klass in module.tree.within(root, cst.ClassDef)
    )


def _respelled(name: Node, code: str) -> ProposedFix:
    return ProposedFix(f"write {code}".replace('"', ""), (replace(name, code),))


def _is_assigned(attribute: cst.Attribute, module: FileFacts) -> bool:
    """Whether a statement assigns to an attribute, alone or in a tuple."""
    above = module.tree.parent[attribute]
    while isinstance(above, (cst.Element, cst.Tuple, cst.List)):
        above = module.tree.parent[above]
    return isinstance(above, cst.AssignTarget)


def _is_tensor(node: Node, module: FileFacts) -> bool:
    """Whether this is a tensor by kind, or a loop variable over `model.parameters()`."""
    if module.kind(node) in (Kind.TENSOR, Kind.PARAMETER):
        return True
    binding = module.names.definition(node) if isinstance(node, cst.Name) else None
    if binding is None or binding.how != "for" or binding.value is None:
        return False
    return module.parameters.generated_by(binding.value) is not None


def _says_what_holds(attribute: cst.Attribute, module: FileFacts) -> bool:
    """Whether False is assigned to it, of a tensor that takes no gradient anyway."""
    above = module.tree.parent[attribute]
    statement = module.tree.parent[above] if isinstance(above, cst.AssignTarget) else None
    if not isinstance(statement, cst.Assign) or module.boolean(statement.value) is not False:
        return False
    return module.gradients.of(attribute.value).flow is Flow.NO


def _takes_requires_grad(call: cst.Call, module: FileFacts) -> bool:
    qualified = module.qualified(call.func)
    if qualified is not None:
        return qualified.startswith("torch.")
    return isinstance(call.func, cst.Attribute) and module.kind(call.func.value) is Kind.TENSOR
