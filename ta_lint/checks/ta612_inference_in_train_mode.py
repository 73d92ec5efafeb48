"""TA612: an evaluation or prediction under `no_grad` runs its model in training mode."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.protocol import Action
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.loops.evaluations import Evaluation
from ta_lint.syntax.edits import ProposedFix, insert_line_before
from ta_lint.syntax.layout import plain

KEYWORDS = (("no_grad", "inference_mode", "set_grad_enabled"),)
AROUND = (("*backward", "load_state_dict", "torchvision", "create_model"),)


def check(module: FileFacts) -> Iterator[Suspicion]:
    if module.is_test or module.loops.framework is not None:
        return
    modes, goes_back = module.evaluations.modes, module.evaluations.goes_back
    if not modes:
        yield from _never_set(module) if goes_back else _predictions(module)
    elif Action.TRAIN in modes and goes_back:
        yield from _set_to_train(module)


def _set_to_train(module: FileFacts) -> Iterator[Suspicion]:
    for evaluation in module.evaluations.all:
        if module.recording.records(evaluation.call) is not False:
            continue
        mode = module.evaluations.mode(evaluation)
        if mode is None or mode[0] is not Action.TRAIN:
            continue
        depends = module.evaluations.depends_on_mode(module.calls_in_loop.called(evaluation.call))
        if depends or (depends is None and _must_depend(module, evaluation)):
            model = module.code(module.calls_in_loop.called(evaluation.call))
            message = f"`{module.code(evaluation.call)}` evaluates `{model}` in training mode"
            related = ((mode[1], "the mode is set here"),)
            yield Suspicion(evaluation.call, message, related=related, fix=_fix(module, evaluation))


def _never_set(module: FileFacts) -> Iterator[Suspicion]:
    """Trained and evaluated models with mode-dependent layers, in a file that never sets a mode."""
    facts = module.evaluations
    for evaluation in facts.all:
        called = module.calls_in_loop.called(evaluation.call)
        if (
            module.recording.records(evaluation.call) is not False
            or facts.depends_on_mode(called) is not True
        ):
            continue
        trained = facts.trained_before(evaluation)
        if trained is not None and not facts.is_handed_away(called):
            model = module.code(called)
            message = f"`{module.code(evaluation.call)}` evaluates `{model}` in training mode: nothing calls `eval()`"
            yield Suspicion(evaluation.call, message, related=((trained, "it is trained here"),))


def _predictions(module: FileFacts) -> Iterator[Suspicion]:
    """Models that predict with loaded weights, in a file that never sets a mode."""
    facts = module.evaluations
    for prediction in facts.predictions:
        called = module.calls_in_loop.called(prediction.call)
        if (
            module.recording.records(prediction.call) is not False
            or facts.depends_on_mode(called) is not True
        ):
            continue
        if not facts.is_handed_away(called):
            message = f"`{module.code(prediction.call)}` predicts in training mode: nothing calls `eval()`"
            related = ((prediction.loaded, "its weights come from here"),)
            edit = insert_line_before(module.tree, prediction.call, f"{module.verbatim(called)}.eval()")
            yield Suspicion(
                prediction.call, message, related, ProposedFix("predict in evaluation mode", (edit,))
            )


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
