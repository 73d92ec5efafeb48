"""TA905: replaced or removed parts of torchvision: `pretrained=True`, `v2.ToTensor`, `transforms.Scale`."""

from collections.abc import Iterator
from itertools import chain

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.torch.torchvision import Builder, builder, gone, renamed_parameters, successor
from ta_lint.syntax.edits import Edit, ProposedFix, remove_imported, replace
from ta_lint.syntax.tree import Node, dotted, is_name

KEYWORDS = (
    "torchvision",
    tuple(
        "models v2 make_grid save_image RandomRotation RandomAffine rotate affine functional_tensor "
        "load_state_dict_from_url datapoints RandomSizedCrop Scale misc".split()
    ),
)

_NEW_NAMES = {"pretrained": "weights", "pretrained_backbone": "weights_backbone"}
_V2 = "torchvision.transforms.v2"
_TO_TENSOR = "`v2.ToTensor` is deprecated since torchvision 0.16: use `ToImage` and `ToDtype`"


def check(module: FileFacts) -> Iterator[Suspicion]:
    found = (_gone_imports(module), _gone_attributes(module), _calls(module), _mentions(module))
    for suspicion in chain.from_iterable(found):
        if not module.fallbacks.around(suspicion.node):
            yield suspicion


# -- removed names --------------------------------------------------------------------------------------------


def _gone_imports(module: FileFacts) -> Iterator[Suspicion]:
    for statement in module.tree.all(cst.ImportFrom):
        package = dotted(statement.module) if statement.module is not None else None
        if package is None or statement.relative or isinstance(statement.names, cst.ImportStar):
            continue
        names = {alias: f"{package}.{dotted(alias.name)}" for alias in statement.names}
        found = {alias: new for alias, name in names.items() if (new := _successor(name, module)) is not None}
        homes = {new.removesuffix(f".{dotted(alias.name)}") for alias, new in found.items()}
        moved = len(found) == len(names) and len(homes) == 1 and not homes & set(found.values())
        fix = (
            ProposedFix("import it from there", (replace(statement.module, homes.pop()),))
            if moved and statement.module
            else None
        )
        for alias, new in found.items():
            yield Suspicion(alias, _message(names[alias], new), fix=fix)
    for imported in module.tree.all(cst.Import):
        for alias in imported.names:
            name = dotted(alias.name) or ""
            if (new := _successor(name, module)) is not None:
                yield Suspicion(alias, _message(name, new))


def _gone_attributes(module: FileFacts) -> Iterator[Suspicion]:
    for attribute in module.tree.all(cst.Attribute):
        name = module.qualified(attribute) if attribute.attr.value in gone() else None
        if name is None or (new := _successor(name, module)) is None:
            continue
        package, _, last = new.rpartition(".")
        stays = package == name.rpartition(".")[0]
        fix = ProposedFix(f"write `{last}`", (replace(attribute.attr, last),)) if stays else None
        yield Suspicion(attribute, _message(name, new), fix=fix)


def _successor(name: str, module: FileFacts) -> str | None:
    if name.startswith("torchvision.datapoints") and module.targets_before(2, 1):
        return None  # its successor does not exist yet
    return successor(name)


def _message(name: str, new: str) -> str:
    return f"torchvision no longer has `{name.removeprefix('torchvision.')}`: use `{new}`"


# -- calls ----------------------------------------------------------------------------------------------------


def _calls(module: FileFacts) -> Iterator[Suspicion]:
    for call in module.tree.all(cst.Call):
        qualified = module.qualified(call.func)
        if qualified is None:
            if _is_looked_up(call.func, module):
                yield from _weights(call, Builder(None, None), module)
        elif qualified == f"{_V2}.ToTensor":
            if not module.targets_before(2, 1):
                yield Suspicion(call, _TO_TENSOR, fix=_converted(call, module), is_note=True)
        elif qualified.startswith("torchvision."):
            if (built := builder(qualified)) is not None:
                yield from _weights(call, built, module)
            yield from _renamed(call, qualified, module)


def _is_looked_up(func: cst.BaseExpression, module: FileFacts) -> bool:
    """Whether a builder is looked up by name: `models.__dict__[arch]`, `getattr(models, arch)`."""
    if isinstance(func, cst.Subscript):
        return module.qualified(func.value) == "torchvision.models.__dict__"
    if not isinstance(func, cst.Call) or module.qualified(func.func) != "builtins.getattr" or not func.args:
        return False
    return module.qualified(func.args[0].value) == "torchvision.models"


def _weights(call: cst.Call, built: Builder, module: FileFacts) -> Iterator[Suspicion]:
    """`pretrained=True`, by keyword or position, as before torchvision 0.13 introduced `weights`."""
    old = [arg for arg in call.args if arg.keyword is not None and arg.keyword.value in _NEW_NAMES]
    first = call.args[0] if call.args else None
    if first is not None and first.keyword is None and not first.star and _is_flag(first.value, module):
        old.insert(0, first)
    if not old or module.targets_before(1, 12):
        return
    edits: list[Edit] = []
    imports: tuple[str, ...] = ()
    for arg in old:
        name = arg.keyword.value if arg.keyword is not None else "pretrained"
        weights = _spelled(arg.value, built.weights if name == "pretrained" else built.backbone, call, module)
        if weights is None:
            edits.clear()
            break
        edits.append(replace(arg, f"{_NEW_NAMES[name]}={weights[0]}"))
        imports += weights[1]
    if any(arg.keyword is None for arg in call.args[1:]):
        edits.clear()  # positional arguments cannot be reordered
    names = [
        f"`{arg.keyword.value}`" if arg.keyword is not None else "a positional `pretrained`" for arg in old
    ]
    message = f"torchvision 0.13 deprecated {' and '.join(names)}: pass `weights` instead"
    fix = ProposedFix("name the weights", tuple(edits), imports) if edits else None
    yield Suspicion(call, message, fix=fix, is_note=True)


def _is_flag(value: cst.BaseExpression, module: FileFacts) -> bool:
    return module.boolean(value) is not None or (dotted(value) or "").rpartition(".")[2] == "pretrained"


def _spelled(
    value: cst.BaseExpression, weights: str | None, call: cst.Call, module: FileFacts
) -> tuple[str, tuple[str, ...]] | None:
    """The new value for an old literal, and the imports that it needs."""
    if is_name(value, "False"):
        return "None", ()
    if not is_name(value, "True") or weights is None:
        return None
    kind, _, member = weights.rpartition(".")
    spelled = module.spelled(kind, at=call)
    return (f"{spelled[0]}.{member}", spelled[1]) if spelled is not None else None


def _converted(call: cst.Call, module: FileFacts) -> ProposedFix | None:
    names = [f"{_V2}.Compose", f"{_V2}.ToImage", f"{_V2}.ToDtype", "torch.float32"]
    spelled = [module.spelled(name, at=call) for name in names]
    if call.args or None in spelled:
        return None
    compose, image, dtype, float32 = (found[0] for found in spelled if found is not None)
    imports = tuple(dict.fromkeys(code for found in spelled if found is not None for code in found[1]))
    code = f"{compose}([{image}(), {dtype}({float32}, scale=True)])"
    return ProposedFix("write out what it does", (replace(call, code),), imports)


def _renamed(call: cst.Call, qualified: str, module: FileFacts) -> Iterator[Suspicion]:
    for old, new in renamed_parameters(qualified).items():
        for arg in call.args:
            if arg.keyword is None or arg.keyword.value != old:
                continue
            if not module.targets_before(1, 8):
                message = f"torchvision no longer has the parameter `{old}`: it is `{new}`"
                yield Suspicion(arg, message, fix=ProposedFix(f"write `{new}`", (replace(arg.keyword, new),)))


# -- a transform that is not called ---------------------------------------------------------------------------


def _mentions(module: FileFacts) -> Iterator[Suspicion]:
    """`v2.ToTensor` if it is passed on or stored, and its import if nothing calls it."""
    if module.targets_before(2, 1):
        return
    named = (attribute for attribute in module.tree.all(cst.Attribute) if attribute.attr.value == "ToTensor")
    for attribute in named:
        if _is_called(attribute, module) or _is_asked_for(attribute, module):
            continue
        if module.qualified(attribute) == f"{_V2}.ToTensor":
            yield Suspicion(attribute, _TO_TENSOR, is_note=True)
    for path, alias in module.names.imports():
        if path == f"{_V2}.ToTensor":
            yield from _import_without_call(alias, module)


def _import_without_call(alias: cst.ImportAlias, module: FileFacts) -> Iterator[Suspicion]:
    bound = alias.asname.name if alias.asname is not None else alias.name
    if not isinstance(bound, cst.Name):
        return
    statement = module.tree.parent[alias]
    uses = [name for name in module.names.mentions(bound) if not module.tree.contains(statement, name)]
    if any(_is_called(use, module) for use in uses):
        return  # reported there
    if uses and all(_is_asked_for(use, module) for use in uses):
        return
    related = tuple((use, "used here") for use in uses)
    fix = None if uses else ProposedFix("remove the import", (remove_imported(module.tree, alias),))
    yield Suspicion(alias, _TO_TENSOR, related=related, fix=fix, is_note=True)


def _is_called(node: Node, module: FileFacts) -> bool:
    above = module.tree.parent[node]
    return isinstance(above, cst.Call) and above.func is node


def _is_asked_for(node: Node, module: FileFacts) -> bool:
    """Whether something is only compared with a class, or annotated with it."""
    for above in module.tree.ancestors(node):
        if isinstance(above, (cst.Comparison, cst.Annotation)):
            return True
        if isinstance(above, cst.Call):
            return module.qualified(above.func) in ("builtins.isinstance", "builtins.issubclass")
        if not isinstance(above, (cst.BaseExpression, cst.BaseElement, cst.Arg, cst.ComparisonTarget)):
            return False
    return False
