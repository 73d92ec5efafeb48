"""TA612: an evaluation or prediction under `no_grad` runs its model in training mode."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.protocol import Action
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.loops.evaluations import Evaluation
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.edits import ProposedFix, insert_line_before
from ta_lint.syntax.layout import plain
from ta_lint.syntax.tree import Node

KEYWORDS = (("no_grad", "inference_mode", "set_grad_enabled", "item", "numpy"),)
AROUND = (("*backward", "load_state_dict", "torchvision", "create_model", "pytorch_fid"),)

# What takes the numbers out of an output: nothing trains on those.
_READS = frozenset({"item", "numpy", "tolist"})


def check(module: FileFacts) -> Iterator[Suspicion]:
    if module.loops.framework is not None:
        return
    facts = module.evaluations
    for evaluation in facts.all:
        records = module.recording.records(evaluation.call)
        if records is not False and (not _is_read(module, evaluation) or _is_trained_on(module, evaluation)):
            continue
        files = facts.files(evaluation.call)
        if not facts.goes_back(files) or any(module.loops.framework_of(file) for file in files):
            continue
        modes = facts.modes_in(files)
        found = _set_to_train(module, evaluation) if Action.TRAIN in modes and records is False else None
        if not modes:
            found = _never_set(module, evaluation, files)
        if found is not None:
            yield found
    if not facts.goes_back([module.tree.root]):
        yield from _predictions(module)


def _is_read(module: FileFacts, evaluation: Evaluation) -> bool:
    """Whether an evaluation that records gradients goes over data and ends in numbers, unlike a policy that acts."""
    if isinstance(evaluation.region, cst.FunctionDef):
        return False
    calls = module.tree.own(evaluation.region, cst.Call)
    return any(called_name(call) in _READS for call in calls)


def _is_trained_on(module: FileFacts, evaluation: Evaluation) -> bool:
    """Whether a backward pass goes through what the model puts out."""
    return evaluation.call in module.gradients.behind_losses


def _set_to_train(module: FileFacts, evaluation: Evaluation) -> Suspicion | None:
    mode = module.evaluations.mode(evaluation)
    if mode is None or mode[0] is not Action.TRAIN:
        return None
    called = module.calls_in_loop.called(evaluation.call)
    depends = module.evaluations.depends_on_mode(called)
    if not depends and (depends is False or not _must_depend(module, evaluation)):
        return None
    message = f"`{module.code(evaluation.call)}` evaluates `{module.code(called)}` in training mode: call `eval()` before"
    related = ((mode[1], "the mode is set here"),)
    return Suspicion(evaluation.call, message, related=related, fix=_fix(module, evaluation))


def _never_set(module: FileFacts, evaluation: Evaluation, files: list[cst.Module]) -> Suspicion | None:
    """A trained and evaluated model with mode-dependent layers, where no file sets a mode."""
    facts = module.evaluations
    called = module.calls_in_loop.called(evaluation.call)
    if facts.depends_on_mode(called) is not True:
        return None
    trained = facts.trained_before(evaluation)
    if trained is None or facts.is_handed_away(called, files):
        return None
    message = f"`{module.code(evaluation.call)}` evaluates `{module.code(called)}` in training mode: nothing calls `eval()`"
    related: list[tuple[Node, str]] = [(trained, "it is trained here")]
    home = module.tree.home(evaluation.call)
    if isinstance(home, cst.FunctionDef):
        related.append((home, f"`{home.name.value}` evaluates and sets no mode"))
    return Suspicion(evaluation.call, message, related=tuple(related))


def _predictions(module: FileFacts) -> Iterator[Suspicion]:
    """Models that predict with loaded weights, where no file trains or sets a mode."""
    facts = module.evaluations
    for prediction in facts.predictions:
        called = module.calls_in_loop.called(prediction.call)
        if module.recording.records(prediction.call) is not False or not facts.depends_on_mode(called):
            continue
        files = facts.files(prediction.call)
        trains = facts.goes_back(files) and not facts.is_apart(prediction)
        if facts.is_switched(called, files) or trains or facts.is_handed_away(called, files):
            continue
        message = f"`{module.code(prediction.call)}` predicts in training mode: nothing calls `eval()`"
        related: list[tuple[Node, str]] = [(prediction.loaded, "its weights come from here")]
        home = module.tree.home(prediction.call)
        if isinstance(home, cst.FunctionDef):
            related.append((home, f"`{home.name.value}` predicts and sets no mode"))
        edit = insert_line_before(module.tree, prediction.call, f"{module.verbatim(called)}.eval()")
        fix = ProposedFix("predict in evaluation mode", (edit,))
        yield Suspicion(prediction.call, message, tuple(related), fix)


def _must_depend(module: FileFacts, evaluation: Evaluation) -> bool:
    """Whether nothing suggests that evaluation in training mode is meant, if the model's layers are unknown."""
    in_loop = not isinstance(evaluation.region, cst.FunctionDef)
    return in_loop and module.evaluations.is_alone(evaluation) and not _gives_loss(module, evaluation)


def _gives_loss(module: FileFacts, evaluation: Evaluation) -> bool:
    """Whether the model returns losses, as object detectors do only in training mode."""
    statement = module.tree.statement(evaluation.call)
    targets = (
        statement.targets if isinstance(statement, cst.Assign) and statement.value is evaluation.call else ()
    )
    return any("loss" in plain(item.target).lower() for item in targets)


def _fix(module: FileFacts, evaluation: Evaluation) -> ProposedFix:
    """`eval()` before the loop; the finding shows that `train()` for the next pass already exists."""
    code = f"{module.verbatim(module.calls_in_loop.called(evaluation.call))}.eval()"
    if isinstance(evaluation.region, cst.FunctionDef):
        return ProposedFix(
            "evaluate in evaluation mode", (insert_line_before(module.tree, evaluation.call, code),)
        )
    return ProposedFix(
        "evaluate in evaluation mode", (insert_line_before(module.tree, evaluation.region, code),)
    )
