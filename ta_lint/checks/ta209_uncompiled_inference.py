"""TA209: a script runs inference batch after batch, and never compiles its model."""

import re
from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Kind, Suspicion
from ta_lint.facts.values.words import words
from ta_lint.syntax.tree import Node, dotted

_DEVICES = ("cuda", "device")  # without either, a script runs on the CPU, and not for long

KEYWORDS = (("no_grad", "inference_mode", "set_grad_enabled"), "eval", _DEVICES)

# Compiled, exported, or run by another engine; or trained here, so that inference is the smaller part.
_ELSEWHERE = regex(
    r"compile|backward|onnx|tensorrt|\btrt\b|openvino|torchscript|torch\.jit|torch\.export|vllm|llama_cpp|ctranslate|"
    r"torchao|quantiz|\.step\(",
    re.IGNORECASE,
)


def check(module: FileFacts) -> Iterator[Suspicion]:
    if _ELSEWHERE.search(module.source.text) or words(module.tree).isdisjoint(_DEVICES):
        return
    seen: set[str] = set()
    for call in module.tree.all(cst.Call):
        name = dotted(call.func)
        if (
            name is not None
            and name not in seen
            and module.kind(call.func) is Kind.MODULE
            and module.tree.loops(call)
            and module.recording.records(call) is False
            and not _is_part(call, module)
            and _is_evaluated(name, module)
        ):
            seen.add(name)
            yield Suspicion(
                call, f"`{name}` runs uncompiled on every batch: `torch.compile` may make it faster"
            )


def _is_evaluated(name: str, module: FileFacts) -> bool:
    """Whether `eval()` is called on the model, possibly at the end of its construction."""
    return any(
        isinstance(call.func, cst.Attribute)
        and call.func.attr.value == "eval"
        and (dotted(call.func.value) == name or _is_assigned(call, name, module))
        for call in module.tree.all(cst.Call)
    )


def _is_assigned(call: Node, name: str, module: FileFacts) -> bool:
    statement = module.tree.statement(call)
    return isinstance(statement, cst.Assign) and dotted(statement.targets[0].target) == name


def _is_part(call: cst.Call, module: FileFacts) -> bool:
    """Whether a module of this file runs one of its own parts, which is compiled along with it."""
    klass = module.tree.enclosing(call, cst.ClassDef)
    return klass is not None and module.classes.derives(klass, "torch.nn.Module")
