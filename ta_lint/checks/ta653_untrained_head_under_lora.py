"""TA653: the new head of a classifier is frozen because the configuration of its adapters does not name it."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.torch.adapters import Adaptation
from ta_lint.syntax.edits import ProposedFix, set_argument
from ta_lint.syntax.tree import Node, argument

KEYWORDS = ("*Config",)
AROUND = (("*Classification",), ("get_peft_model", "peft_config"))

_LOADS = regex(
    r"transformers\.(\w+\.)*(?!TF|Flax)\w+For(?P<task>Sequence|Token|Image|Audio|Video)Classification\.from_pretrained"
)
_TASKS = {"Sequence": "SEQ_CLS", "Token": "TOKEN_CLS"}
_HEADS = frozenset("score classifier classification_head head pre_classifier all-linear".split())
_OF_A_NEW_HEAD = ("num_labels", "id2label", "ignore_mismatched_sizes", "problem_type")
_TRAINED = regex(r".*(finetuned|fine-tuned|sst|nli|sentiment|toxic|emotion|classif|ner\b|reward|judge).*")


def check(module: FileFacts) -> Iterator[Suspicion]:
    for adaptation in module.adapters.put:
        task = next((task for one in adaptation.models if (task := _new_head(module, one))), None)
        if task is None or not _leaves_out_head(module, adaptation, task):
            continue
        if module.adapters.thaws or _has_own_head(module):
            continue
        message = "the new classification head stays random and frozen, so it never learns"
        if task in _TASKS:
            message += f'; set `task_type="{_TASKS[task]}"`'
        else:
            message += "; name it in `modules_to_save`"
        yield Suspicion(
            adaptation.call, message, ((adaptation.config, "its configuration"),), fix=_fix(adaptation, task)
        )


def _fix(adaptation: Adaptation, task: str) -> ProposedFix | None:
    code = f'"{_TASKS[task]}"' if task in _TASKS else None
    if code is None:
        return None
    config = adaptation.config
    edit = set_argument(config, "task_type", code, argument(config, "task_type"))
    return ProposedFix("name the task", (edit,)) if edit is not None else None


def _new_head(module: FileFacts, model: Node) -> str | None:
    """The task of a classifier that is loaded with a head of its own, as far as its call tells."""
    made = module.kinds.construction(model)
    found = _LOADS.fullmatch(module.qualified(made.func) or "") if made is not None else None
    if made is None or found is None:
        return None
    named = argument(made, "pretrained_model_name_or_path", 0)
    name = module.string(named) if named is not None else None
    if name is not None and _TRAINED.fullmatch(name.lower()):
        return None
    is_new = name is not None or any(argument(made, keyword) is not None for keyword in _OF_A_NEW_HEAD)
    return found["task"] if is_new else None


def _leaves_out_head(module: FileFacts, adaptation: Adaptation, task: str) -> bool:
    """Whether a configuration certainly trains no head: by its task, by name, or as a layer with an adapter."""
    adapters, config = module.adapters, adaptation.config
    tasks, targets = adapters.words(config, "task_type"), adapters.words(config, "target_modules")
    if tasks is None or targets is None or not adapters.is_unset(config, "modules_to_save"):
        return False
    return targets.isdisjoint(_HEADS) and tasks.isdisjoint(_TASKS.values())


def _has_own_head(module: FileFacts) -> bool:
    """Whether the file puts a head of its own into a model."""
    return any(
        isinstance(item.target, cst.Attribute) and item.target.attr.value in _HEADS
        for item in module.tree.all(cst.AssignTarget)
    )
