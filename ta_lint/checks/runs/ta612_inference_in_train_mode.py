"""TA612: an evaluation or prediction runs its model in training mode."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from ta_lint.events.inference import Inference
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Refutation, Said, Sight, Suspicion, Unobserved

if TYPE_CHECKING:
    from ta_lint.core.finding import Site
    from ta_lint.facts import FileFacts
    from ta_lint.syntax.edits import ProposedFix

KEYWORDS = (
    (
        "no_grad", "inference_mode", "set_grad_enabled", "item", "numpy", "argmax", "topk", "generate", "detach", "data", "max",
        "save_image", "make_grid", "add_image", "add_images", "imshow", "Image",
    ),
)  # fmt: skip
AROUND = (
    (
        "*backward",
        "training_step",
        "*Trainer",
        "load_state_dict",
        "torchvision",
        "create_model",
        "pytorch_fid",
    ),
)

LEARNS = "where batch norms take the statistics of these inputs and keep them for later"
DROPS = "with dropout"


def check_run(run: Run) -> Iterator[Said]:
    for inference in run.inferences:
        is_loaded = run.infers and inference.loaded > 0
        if not (inference.unrecorded or is_loaded or inference.noisy or inference.shown):
            continue
        if not inference.unsettled:
            numbers = {"passes": inference.unrecorded, "in training mode, with layers that depend on it": 0}
            if not inference.plain:
                because = f"all {inference.unrecorded} passes are in evaluation mode"
                yield Refutation(inference.place, because, numbers)
            elif inference.idle:
                yield Unobserved(inference.place, "its dropout is 0 in this run")
            else:
                because = f"no layer depends on the mode, in {inference.plain} passes in training mode"
                yield Refutation(inference.place, because, numbers, rests_on=Sight.LAYERS)
        elif _depends(inference) and (is_loaded or _evaluates(inference)):
            message = (
                "the evaluation runs in training mode, with dropout or batch statistics: call `eval()` before"
            )
            is_guess = inference.is_guessed and not inference.dropouts + inference.norms
            yield replace(_said(inference, message), is_note=is_guess)
        elif inference.shown and inference.dropouts + inference.norms:
            effect = f"{LEARNS if inference.norms else DROPS}: call `eval()` before and `train()` after"
            yield replace(_said(inference, f"what is shown comes from training mode, {effect}"), is_note=True)


def _said(inference: Inference, message: str) -> Suspicion:
    evidence = {
        "passes in training mode": (inference.noisy or inference.loaded or inference.shown) + 1,
        "dropout layers": inference.dropouts,
        "batch norms": inference.norms,
    }
    related = () if inference.trained is None else ((inference.trained, "it is trained here"),)
    return Suspicion(inference.place, message, evidence, related=related)


def _depends(inference: Inference) -> bool:
    return inference.dropouts + inference.norms > 0 or inference.is_told


def _evaluates(inference: Inference) -> bool:
    """Whether losses are computed from the outputs, or the batches come from loaders that no step trained on."""
    is_measured = inference.measured > 0 and not inference.copied
    return inference.noisy > 0 and (inference.is_held_out or is_measured)


def fix(module: "FileFacts", call: "Site") -> "ProposedFix | None":
    """Call `eval()` before the evaluation."""
    from ta_lint.facts.evaluation_edits import evaluate_first

    return evaluate_first(module, call)
