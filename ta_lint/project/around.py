"""The files around a file: those that it imports, and those that import it, as their import statements say."""

import os
import re
from collections.abc import Iterator
from itertools import islice

from ta_lint.core.letters import searchable
from ta_lint.core.libraries import is_ours
from ta_lint.project.layout import Layout

_DEEPEST = 4  # packages of packages whose import may give what a file defines
_MOST = 8  # what more files import is a utility, which says nothing about training

_FROM = re.compile(rb"(?m)^[ \t]*from[ \t]+([.\w]+)[ \t]+import[ \t]+(\([^)]{0,2000}\)|[^\n]*)")
_IMPORT = re.compile(rb"(?m)^[ \t]*import[ \t]+([^\n#;]+)")
_OTHER = re.compile(
    rb"(?m)^[ \t]*(?:from|import)[ \t]+(?:flax|jax|keras|mindspore|mxnet|paddle|tensorflow|tinygrad|warp)\b"
)
_NAME = re.compile(rb"\w+")
_ON_SELF = re.compile(rb"self\.(\w+)")
_METHOD = re.compile(rb"(?m)^[ \t]+(?:async[ ]+)?def[ ]+(\w+)")
_IN_A_CLASS = re.compile(rb"(?m)^[ \t]+(?:async[ ]+)?(?:def[ ]+)?(\w+)[ \t]*[:=(]")


class Around:
    """The files around each file of a project, with their bytes; each is read once."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._bytes: dict[str, bytes] = {}
        self._importing: dict[str, list[str] | None] = {}
        self._ours: dict[str, bool] = {}
        self._imported: dict[str, frozenset[str]] = {}
        self._attributes: dict[str, frozenset[str]] = {}

    def texts(self, path: str, data: bytes) -> list[bytes]:
        """What stands in the files around one with these bytes, if they are about PyTorch; see `core.letters.searchable`."""
        return [self.bytes_of(file) for file in self.files(path, data) if self._is_ours(file)]

    def is_used_by_ours(self, path: str, data: bytes) -> bool:
        """Whether a file about PyTorch imports this one, or is imported by it, and this one is about no other framework."""
        return _OTHER.search(data) is None and any(map(self._is_ours, self.files(path, data)))

    def files(self, path: str, data: bytes) -> list[str]:
        """The files that one with these bytes imports, and those nearby that import it; without what many import."""
        imported = {*self._imported_files(path, data)}
        for file in tuple(imported):  # grows
            if os.path.basename(file) == "__init__.py":  # it hands on what its package defines
                imported.update(self._imported_files(file, self.bytes_of(file)))
        used = (file for file in imported if self._importers(file) is not None)
        return sorted({*used, *(self._importers(path) or ())} - {path})

    def _imported_files(self, path: str, data: bytes) -> Iterator[str]:
        files = map(self._layout.file, self._imports(path, data))
        return (file for file in files if file is not None)

    def imports(self, path: str) -> frozenset[str]:
        """The files and folders of the project that a file names in import statements."""
        return self._imports(path, self.bytes_of(path))

    def bytes_of(self, path: str) -> bytes:
        """The bytes of a file, empty if it cannot be read."""
        if path not in self._bytes:
            try:
                regular = os.path.isfile(path)  # reading a pipe could block forever
                with open(path if regular else os.devnull, "rb") as stream:
                    self._bytes[path] = searchable(stream.read())
            except OSError:
                self._bytes[path] = b""
        return self._bytes[path]

    def may_import(self, path: str) -> Iterator[str]:
        """The files nearby that import a file, or a package that it is in."""
        packages = {path, *islice(_folders(path), _DEEPEST)}
        for file in self._layout.nearby(path):
            if not packages.isdisjoint(self._imports(file, self.bytes_of(file))):
                yield file

    def attributes(self, path: str) -> frozenset[str]:
        """The names that a file may bind in a class or on `self`, among others; methods as `def step`."""
        if path not in self._attributes:
            data = self.bytes_of(path)
            methods = (b"def " + name for name in _METHOD.findall(data))
            found = {*_ON_SELF.findall(data), *_IN_A_CLASS.findall(data), *methods}
            self._attributes[path] = frozenset(name.decode("utf-8", "replace") for name in found)
        return self._attributes[path]

    def _is_ours(self, path: str) -> bool:
        if path not in self._ours:
            self._ours[path] = is_ours(self.bytes_of(path))
        return self._ours[path]

    def _importers(self, path: str) -> list[str] | None:
        """The files nearby that import a file, or its package; None if there are many."""
        if path not in self._importing:
            self._importing[path] = self._found_importers(path)
        return self._importing[path]

    def _found_importers(self, path: str) -> list[str] | None:
        found: list[str] = []
        package = os.path.dirname(path) if os.path.basename(path) == "__init__.py" else ""
        for file in self._layout.nearby(path):
            if self._is_ours(file) and not {path, package}.isdisjoint(
                self._imports(file, self.bytes_of(file))
            ):
                found.append(file)
                if len(found) > _MOST:
                    return None
        return found

    def _imports(self, path: str, data: bytes) -> frozenset[str]:
        """The files and folders of the project that the import statements of a file name."""
        if path not in self._imported:
            self._imported[path] = frozenset(self._named(path, data))
        return self._imported[path]

    def _named(self, path: str, data: bytes) -> Iterator[str]:
        for match in _FROM.finditer(data):
            package = match[1].decode()
            yield from self._modules(path, package, [name.decode() for name in _NAME.findall(match[2])])
        for match in _IMPORT.finditer(data):
            for item in match[1].decode("utf-8", "replace").split(","):
                yield from self._modules(path, item.split(" as ")[0].strip(), [])

    def _modules(self, path: str, package: str, names: list[str]) -> Iterator[str]:
        """The modules that `from package import names` names in a file."""
        rest = package.lstrip(".")
        dots, parts = package[: len(package) - len(rest)], rest.split(".") if rest else []
        if not (dots or parts):
            return  # what follows the last comma of `import a, `, in prose
        module = self._layout.module(path, dots or parts.pop(0))
        for part in parts:
            module = self._layout.inside(module, part) if module is not None else None
        if module is None:
            return
        yield module
        if not module.endswith(".py"):
            yield from filter(None, (self._layout.inside(module, name) for name in names))


def _folders(path: str) -> Iterator[str]:
    while (folder := os.path.dirname(path)) != path:
        yield folder
        path = folder
