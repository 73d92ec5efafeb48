"""TA909: `import torchvision.models as models` is a longer way to write `from torchvision import models`."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.syntax.edits import Edit, ProposedFix, insert_line_after, replace
from ta_lint.syntax.tree import dotted

KEYWORDS = ("torchvision",)


def check(module: FileFacts) -> Iterator[Suspicion]:
    for statement in module.tree.all(cst.Import):
        long = [alias for alias in statement.names if _repeats_itself(alias)]
        if not long:
            continue
        written = [_written_shorter(alias) for alias in long]
        others = [module.verbatim(alias).rstrip(", ") for alias in statement.names if alias not in long]
        yield Suspicion(
            statement,
            f"this import repeats the name: write `{written[0]}`",
            fix=_fix(statement, written, others, module),
        )


def _repeats_itself(alias: cst.ImportAlias) -> bool:
    path = dotted(alias.name) or ""
    named = alias.asname.name if alias.asname is not None else None
    last = path.rpartition(".")[2]
    return path.startswith("torchvision.") and isinstance(named, cst.Name) and named.value == last


def _written_shorter(alias: cst.ImportAlias) -> str:
    package, _, last = (dotted(alias.name) or "").rpartition(".")
    return f"from {package} import {last}"


def _fix(statement: cst.Import, written: list[str], others: list[str], module: FileFacts) -> ProposedFix:
    first, *further = [f"import {', '.join(others)}", *written] if others else written
    lines = [insert_line_after(module.tree, statement, "\n".join(further))] if further else []
    edits: tuple[Edit, ...] = (replace(statement, first), *lines)
    # A missing module raises ModuleNotFoundError with the long form, but only ImportError with the short one.
    is_tried = module.tree.enclosing(statement, cst.Try, cst.TryStar) is not None
    return ProposedFix("import it from its package", edits, unsafe=is_tried)
