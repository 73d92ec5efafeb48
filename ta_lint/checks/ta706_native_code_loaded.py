"""TA706: a shared library or code package is loaded, and runs with the rights of the process."""

from collections.abc import Iterator

import libcst as cst

from ta_lint.facts import FileFacts, Suspicion
from ta_lint.facts.values.calls import called_name
from ta_lint.syntax.tree import argument

KEYWORDS = (("load_library", "PackageImporter"),)

_LIBRARIES = ("torch.ops.load_library", "torch.classes.load_library")
_PACKAGE = "torch.package.PackageImporter"


def check(module: FileFacts) -> Iterator[Suspicion]:
    for call in module.calls_to(*_LIBRARIES):
        if not _is_own_file(call, module):
            yield Suspicion(
                call, f"`{called_name(call)}` runs the native code of the file: load only files you trust"
            )
    for call in module.calls_to(_PACKAGE):
        yield Suspicion(
            call, "`PackageImporter` runs code and pickles of the package: load only packages you trust"
        )


def _is_own_file(call: cst.Call, module: FileFacts) -> bool:
    """Whether the library is next to this file, as an extension's is."""
    path = argument(call, "path", 0)
    named = module.tree.within(path, cst.Name) if path is not None else []
    origins = [path, *map(module.kinds.origin, named)] if path is not None else []
    return any(
        name.value == "__file__" for origin in origins for name in module.tree.within(origin, cst.Name)
    )
