"""TA855: training on an accelerator ends at the first batch that does not fit into memory."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.core.lazy import regex
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.loops.scripts import header
from ta_lint.facts.values.words import words
from ta_lint.syntax.layout import plain

_HANDLERS = regex(
    r"out of memory|OutOfMemory|find_executable_batch_size|should_reduce_batch_size|\boom\b|oom_|_oom"
)

KEYWORDS = ("*backward", "step", "*parameters", "cuda")

# Errors raised when memory runs out, and their base classes.
_CAUGHT = regex(r"\b(RuntimeError|Exception|BaseException|AcceleratorError)\b")


def check(module: FileFacts) -> Iterator[Suspicion]:
    entry = module.scripts.own_entry
    if entry is None or _HANDLERS.search(module.source.text):
        return
    if "cuda" not in words(module.tree) or not module.script:
        return
    if any(_HANDLERS.search(file.source.text) for file in module.script):
        return
    steps = [step.call for training in module.scripts.training for step in training.steps]
    if not any(_is_caught(module, node) for node in [entry, *steps]):
        message = (
            "nothing handles `torch.cuda.OutOfMemoryError` here, so one large batch ends the run: catch it"
        )
        yield Suspicion(header(entry), message)


def _is_caught(module: FileFacts, node: cst.CSTNode) -> bool:
    """Whether a `try` around a node, or around a call of its function, catches the error."""
    above = module.tree.ancestors(node)
    tries = (
        found for found in above if isinstance(found, cst.Try) and module.tree.contains(found.body, node)
    )
    if any(_catches(module, handler) for found in tries for handler in found.handlers):
        return True
    home = module.tree.home(node)
    sites = module.calls.sites(home) if isinstance(home, cst.FunctionDef) else []
    return any(_is_caught(module, site) for site in sites if not module.tree.contains(home, site))


def _catches(module: FileFacts, handler: cst.ExceptHandler) -> bool:
    return handler.type is None or _CAUGHT.search(plain(handler.type)) is not None
