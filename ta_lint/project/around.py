"""The files around a file: those that it imports, and those that import it, as their import statements say."""

import os
import re
from collections.abc import Iterator

from ta_lint.core.letters import searchable
from ta_lint.core.libraries import is_ours
from ta_lint.project.layout import Layout

_MOST = 8  # what more files import is a utility, which says nothing about training

_FROM = re.compile(rb"(?m)^[ \t]*from[ \t]+([.\w]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)")
_IMPORT = re.compile(rb"(?m)^[ \t]*import[ \t]+([^\n#;]+)")
_NAME = re.compile(rb"\w+")


class Around:
    """The files around each file of a project, with their bytes; each is read once."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._bytes: dict[str, bytes] = {}
        self._ours: dict[str, bool] = {}
        self._imported: dict[str, frozenset[str]] = {}

    def forget(self) -> None:
        """Read files anew."""
        self._bytes.clear()
        self._ours.clear()
        self._imported.clear()

    def texts(self, path: str, data: bytes) -> list[bytes]:
        """What stands in the files around one with these bytes, if they are about PyTorch; see `core.letters.searchable`."""
        files = {*self._imports(path, data), *self._importers(path)} - {path}
        return [self.bytes_of(file) for file in sorted(files) if self._is_ours(file)]

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

    def _is_ours(self, path: str) -> bool:
        if path not in self._ours:
            self._ours[path] = is_ours(self.bytes_of(path))
        return self._ours[path]

    def _importers(self, path: str) -> list[str]:
        """The files nearby that import a file, or its package; empty if there are many."""
        found: list[str] = []
        package = os.path.dirname(path) if os.path.basename(path) == "__init__.py" else ""
        for file in self._layout.nearby(path):
            if self._is_ours(file) and not {path, package}.isdisjoint(
                self._imports(file, self.bytes_of(file))
            ):
                found.append(file)
                if len(found) > _MOST:
                    return []
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
        module = self._layout.module(path, dots or parts.pop(0))
        for part in parts:
            module = self._layout.inside(module, part) if module is not None else None
        if module is None:
            return
        yield module
        if not module.endswith(".py"):
            yield from filter(None, (self._layout.inside(module, name) for name in names))
