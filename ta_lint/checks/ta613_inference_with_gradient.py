"""TA613: an evaluation runs without `no_grad`, so that every forward pass records a graph."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import Module, Suspicion
from ta_lint.facts.edits import Fix, insert_line_before
from ta_lint.facts.evaluations import Evaluation
from ta_lint.facts.passes import What

NEEDS = (r"\.eval\(\)|\.train\((?:mode\s*=\s*)?False\)",)


def check(module: Module) -> Iterator[Suspicion]:
    if module.is_test or module.loops.framework is not None or _freezes(module):
        return
    for evaluation in module.evaluations.all:
        mode = module.evaluations.mode(evaluation)
        if mode is None or mode[0] is not What.EVAL or module.recording.records(evaluation.call) is not True:
            continue
        if not module.tree.contains(module.tree.home(mode[1]), evaluation.call):
            continue
        message = f"`{module.code(evaluation.call)}` records a graph that nothing goes back through"
        related = ((mode[1], "the model is put into evaluation mode here"),)
        yield Suspicion(evaluation.call, message, related=related, fix=_fix(module, evaluation))


def _freezes(module: Module) -> bool:
    """Whether this file turns gradients off by hand, so that there may be no graph."""
    names = {name.value for name in module.tree.all(cst.Name)}
    return "requires_grad" in names or "requires_grad_" in names


def _fix(module: Module, evaluation: Evaluation) -> Fix | None:
    """`@torch.no_grad()` over a function that only evaluates."""
    function = module.tree.home(evaluation.call)
    spelled = module.spelled("torch.no_grad", function)
    if (
        not isinstance(function, cst.FunctionDef)
        or spelled is None
        or module.evaluations.trains(function.body)
    ):
        return None
    code, imports = spelled
    return Fix(
        "evaluate without recording", (insert_line_before(module.tree, function, f"@{code}()"),), imports
    )
