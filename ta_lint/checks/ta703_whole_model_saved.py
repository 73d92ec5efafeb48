"""TA703: `torch.save(model)` pickles references to the model's classes, not just its weights."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Kind, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.edits import ProposedFix, call_method
from ta_lint.syntax.layout import plain
from ta_lint.syntax.tree import Node, argument, attribute_of_self, dotted, spreads

KEYWORDS = ("save",)

# Methods that only models have.
_ASKED = frozenset({"named_parameters", "parameters"})

_STATES = frozenset({"state_dict", "dict", "OrderedDict"})
_GRAPHS = ("torch.jit.", "torch.fx.", "torch.export.", "torch.ao.", "torch.quantization.")

_BUFFERS = ("io.BytesIO", "tempfile.")

# Functions that show that a file was only written to be measured or sent.
_TEMPORARY = frozenset("os.path.getsize os.remove os.unlink os.stat shutil.rmtree".split())


def check(module: FileFacts) -> Iterator[Suspicion]:
    for call in module.calls_to("torch.save"):
        saved = argument(call, "obj", 0)
        target = argument(call, "f", 1)
        if spreads(call) or saved is None or target is None or _is_buffer(target, module):
            continue
        models = _models(saved, module)
        loads = next(_plain_loads(target, module), None) if models else None
        if loads is None and _is_temporary(call, target, module):
            continue
        for whole in models:
            code = module.code(whole)
            if loads is not None:
                message = (
                    f"`{code}` is saved whole, and this `torch.load` refuses its file: save `state_dict()`"
                )
                yield Suspicion(whole, message, ((loads, "loaded here"),), _state(whole, module))
            else:
                message = (
                    f"`{code}` is saved whole, so its file loads only with this code: save `state_dict()`"
                )
                yield Suspicion(whole, message, fix=_state(whole, module), is_note=True)


def _plain_loads(target: Node, module: FileFacts) -> Iterator[cst.Call]:
    """The calls of `torch.load` in the project that read the file with a saved model as torch 2.6 reads files: weights alone."""
    if module.targets_before(2, 6):
        return
    names = _file_names(target, module)
    roots = [module.tree.root, *(module.names.beside("load") or ())]
    for facts in (module if root is module.tree.root else module.beside(root) for root in roots):
        for call in facts.calls_to("torch.load"):
            source = argument(call, "f", 0)
            told = argument(call, "weights_only") or argument(call, "pickle_module")
            if source is None or told is not None or spreads(call) or _reads_state(call, facts):
                continue
            same_words = facts is module and plain(_path(source, module)) == plain(_path(target, module))
            if same_words or (names and names & _file_names(source, facts)):
                yield call


def _path(file: Node, module: FileFacts) -> Node:
    """The path of a file that `with open(path, "wb") as file` has opened; otherwise what is given, a path itself."""
    bound = module.names.definition(file) if isinstance(file, cst.Name) else None
    opened = bound.value if bound is not None and bound.how == "with" else None
    if not isinstance(opened, cst.Call) or called_name(opened) != "open":
        return file
    return argument(opened, "file", 0) or file


def _file_names(path: Node, module: FileFacts) -> set[str]:
    """The names of files, with an extension, in the expression that makes a path: `best.pt` of `os.path.join(folder, "best.pt")`."""
    path = _path(path, module)
    parts = [path, *(origin.node for origin in module.flow.of(path).origins)]
    texts = (
        module.string(node) or ""
        for part in parts
        for node in (part, *module.tree.within(part, cst.SimpleString))
        if isinstance(node, cst.BaseExpression)
    )
    names = (text.replace("\\", "/").rpartition("/")[2] for text in texts)
    return {name for name in names if "." in name.strip(".")}


def _reads_state(call: cst.Call, module: FileFacts) -> bool:
    """Whether what is loaded goes into `load_state_dict`, so that it is another file, or no model."""
    above = module.tree.parent[call]
    loaded = module.tree.parent[above] if isinstance(above, cst.Arg) else None
    if isinstance(loaded, cst.Call):
        return called_name(loaded) == "load_state_dict"
    target = above.targets[0].target if isinstance(above, cst.Assign) else None
    uses = module.names.mentions(target) if isinstance(target, cst.Name) else []
    around = (module.tree.parent[module.tree.parent[use]] for use in uses)
    return any(isinstance(one, cst.Call) and called_name(one) == "load_state_dict" for one in around)


def _models(saved: Node, module: FileFacts) -> list[Node]:
    """The saved models: the value itself, or elements of its dictionary or list literal."""
    if _is_model(saved, module):
        return [saved]
    written = module.kinds.origin(saved)
    if isinstance(written, cst.Dict):
        held: list[Node] = [item.value for item in written.elements if isinstance(item, cst.DictElement)]
    else:
        held = module.kinds.elements(saved)
    return [value for value in held if _is_model(value, module)]


def _is_model(node: Node, module: FileFacts) -> bool:
    if isinstance(node, cst.Attribute) and node.attr.value == "module":  # as in DataParallel
        return _is_model(node.value, module)
    if isinstance(node, cst.Name) and node.value == "self":
        return module.tree.enclosing(node, cst.ClassDef) in module.classes.modules()
    known = module.kind(node)
    if known is None and not _behaves_so(node, module):
        return False
    return known in (Kind.MODULE, None) and not any(
        _is_other(value, module) for value in _values(node, module)
    )


def _behaves_so(node: Node, module: FileFacts) -> bool:
    """Whether the file calls a method that only models have on a variable of unknown class."""
    if isinstance(node, cst.Name):
        mentions: list[Node] = list(module.names.mentions(node))
    elif (name := attribute_of_self(node)) is not None:
        klass = module.tree.enclosing(node, cst.ClassDef)
        mentions = [other for other in module.classes.mentions(name) if dotted(other) == f"self.{name}"]
        mentions = [other for other in mentions if module.tree.enclosing(other, cst.ClassDef) is klass]
    else:
        return False
    return any(_asks(module.tree.parent[mention], module) for mention in mentions)


def _asks(above: Node, module: FileFacts) -> bool:
    """Whether an expression is `model.parameters` or `model.eval()`; the `eval` of a table takes an expression."""
    if not isinstance(above, cst.Attribute):
        return False
    call = module.tree.parent[above]
    evaluates = above.attr.value == "eval" and isinstance(call, cst.Call) and not call.args
    return above.attr.value in _ASKED or evaluates


def _values(node: Node, module: FileFacts) -> list[Node]:
    """All values bound to a variable, or the expression itself."""
    if isinstance(node, cst.Name):
        return [value for binding in module.names.bindings(node) if (value := binding.value) is not None]
    return [module.kinds.origin(node)]


def _is_other(value: Node, module: FileFacts) -> bool:
    """Whether a value is a state, a container, or a graph that loads without the user's code."""
    if isinstance(value, (cst.Dict, cst.List, cst.Tuple)):
        return True
    if not isinstance(value, cst.Call):
        return False
    called = module.qualified(value.func) or ""
    return called_name(value) in _STATES or called.startswith(_GRAPHS)


def _is_buffer(target: Node, module: FileFacts) -> bool:
    """Whether the target is no file, but memory."""
    made = module.kinds.origin(target)
    called = (module.qualified(made.func) or "") if isinstance(made, cst.Call) else ""
    return called.startswith(_BUFFERS)


def _is_temporary(call: cst.Call, target: Node, module: FileFacts) -> bool:
    """Whether the same function reads the target back, measures or removes it."""
    home = module.tree.home(call)
    if home is module.tree.root:
        return False  # a script may train and read its best model back
    name = plain(target)
    return any(
        module.tree.before(call, later)
        and (module.qualified(later.func) in _TEMPORARY or module.qualified(later.func) == "torch.load")
        and any(plain(arg.value) == name for arg in later.args)
        for later in module.tree.own(home, cst.Call)
    )


def _state(whole: Node, module: FileFacts) -> ProposedFix | None:
    """Save the state instead, if nothing in the file may load the whole model."""
    if module.calls_to("torch.load"):
        return None
    return ProposedFix("save its state_dict", call_method(whole, ".state_dict()"))
