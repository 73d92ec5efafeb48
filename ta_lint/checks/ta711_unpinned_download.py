"""TA711: a model or data set is loaded from a hub without a fixed revision, and may change at any time."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.syntax.tree import argument, spreads

KEYWORDS = (
    tuple(
        "auto_gptq datasets diffusers evaluate huggingface_hub optimum peft sentence_transformers transformers trl"
        " trust_remote_code vllm".split()
    ),
)


def check(module: FileFacts) -> Iterator[Suspicion]:
    for call in module.tree.all(cst.Call):
        taken = module.hub.taken_by(call) if not spreads(call) else None
        if taken is None or _trusts_code(call, module):
            continue
        if not module.hub.is_pinned(call, "revision", "commit_hash"):
            yield Suspicion(
                call, f"`{taken.repository}` may change with each download: set `revision` to a commit"
            )


def _trusts_code(call: cst.Call, module: FileFacts) -> bool:
    """Whether a call also runs code from the hub, which is TA702."""
    trusted = argument(call, "trust_remote_code")
    return trusted is not None and module.boolean(trusted) is True
