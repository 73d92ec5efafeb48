"""Which file of a project an import means, as its folders show it."""

import os
import sys
from collections.abc import Iterable
from itertools import islice

from ta_lint.core.libraries import libraries
from ta_lint.project.trail import ANY, Name, Trail

PACKAGE = "__init__.py"
_ROOT_MARKS = frozenset({".git", ".hg", "pyproject.toml", "setup.cfg", "setup.py"})
_NO_SCRIPTS = frozenset({"conftest.py", "noxfile.py", "setup.py"})
_UP = 12  # folders above a file that are looked into
_NEAR = 300  # files around one that may import it
LARGE = 200  # files of a package that is a library, and no program

_IS_PACKAGE = "."  # stands for whether a folder holds modules, and
_IS_ROOT = "/"  # for whether it is the root of a project, among the names in it

# Installed code is no part of a project, even where it lies inside.
_NOT_OURS = frozenset({"site-packages", "dist-packages", "node_modules", "__pypackages__", "__pycache__"})


class Layout:
    """The folders of a project, each listed once; `trail` has what its answers are taken from."""

    def __init__(self, root: str) -> None:
        """`root` is the folder that paths in findings are relative to."""
        self.root = root
        self.trail = Trail()
        self._listed: dict[str, dict[str, bool]] = {}

    def module(self, importer: str, name: str) -> str | None:
        """The file or folder of the module with the first name of an import, such as `models` of `models.resnet`.

        Relative names begin with dots. None for what is not in the project: the standard library, and what is installed.
        """
        folder = os.path.dirname(importer)
        return self.trail.remembered(("module", folder, name), lambda: self._found(folder, name))

    def meant(self, importer: str, written: str) -> str | None:
        """The file or folder that an import statement names, such as `..models.resnet`; None for what is not in the project."""
        folder, name = os.path.dirname(importer), written.lstrip(".")
        if name != written:
            for _ in range(len(written) - len(name) - 1):
                folder = os.path.dirname(folder)
            return self._within(folder, name) if name else folder
        first, _, inner = name.partition(".")
        if not name or _is_elsewhere(first):
            return None
        return self.trail.remembered(
            ("meant", folder, name), lambda: self._found_within(importer, first, inner)
        )

    def all_meant(self, importer: str, written: str) -> list[str]:
        """All that an import statement may name in the project, as nobody knows in which folders Python looks."""
        name = written.lstrip(".")
        if name != written:
            found = self.meant(importer, written)
            return [found] if found is not None else []
        first, _, inner = name.partition(".")
        if self.module(importer, first) is None:
            return []
        places = self._search_path(os.path.dirname(importer))
        tops = [top for place in places if (top := self.inside(place, first)) is not None]
        return [found for top in tops if (found := self._within(top, inner) if inner else top) is not None]

    def _found_within(self, importer: str, first: str, inner: str) -> str | None:
        module = self.module(importer, first)
        if module is None and inner:
            module = self.checkout(importer, first, inner.partition(".")[0])
        return self._within(module, inner) if module is not None and inner else module

    def _within(self, package: str, name: str) -> str | None:
        """The module of a package with a name such as `models.resnet`."""
        return self.trail.remembered(("within", package, name), lambda: self._find_within(package, name))

    def _find_within(self, package: str, name: str) -> str | None:
        module: str | None = package
        for part in name.split("."):
            module = self.inside(module, part) if module is not None else None
        return module

    def checkout(self, importer: str, name: str, part: str) -> str | None:
        """The root of the project, if it is a package itself, has such a module, and the import names nothing else.

        A package whose repository is its own folder is checked out under any name: `TTS.utils` is `utils` there.
        """
        if _is_elsewhere(name) or name in libraries():
            return None
        root = self._up_to_the_root(os.path.dirname(importer))[-1]
        is_package = self._has(root, PACKAGE) and self._is_root(root)
        return root if is_package and self.inside(root, part) is not None else None

    def inside(self, package: str, name: str) -> str | None:
        """The module of a package: a file, or a folder that holds modules."""
        if self._has(package, name) and self._is_package(os.path.join(package, name)):
            return os.path.join(package, name)
        return os.path.join(package, f"{name}.py") if self._has(package, f"{name}.py") else None

    def members(self, package: str) -> frozenset[str]:
        """The names of all that may be a module of a package; none of a file."""
        names = self._all_of(package) if not package.endswith(".py") else ()
        return frozenset(name.removesuffix(".py") for name in names)

    def file(self, module: str) -> str | None:
        """The file that runs when a module is imported; None for a folder without `__init__.py`."""
        if module.endswith(".py"):
            return module
        return os.path.join(module, PACKAGE) if self._has(module, PACKAGE) else None

    def package(self, path: str) -> list[str]:
        """The files of the outermost package that a file or folder is in, those of a large one in part."""
        folder = path if not path.endswith(".py") else os.path.dirname(path)
        return self.trail.remembered(("package", folder), lambda: self._whole(folder))

    def is_large(self, path: str) -> bool:
        """Whether the package that a file or folder is in is a library: each file sees but a part of it."""
        return len(self.package(path)) >= LARGE

    def _whole(self, folder: str) -> list[str]:
        while self._has(os.path.dirname(folder), PACKAGE) and os.path.dirname(folder) != folder:
            folder = os.path.dirname(folder)
        return self._below(folder)

    def nearby(self, path: str) -> list[str]:
        """The Python files around a file, the nearest first: those of its folder, then of the folder above, and so on."""
        folder = os.path.dirname(path)
        return self.trail.remembered(("nearby", folder), lambda: self._near(folder))

    def _near(self, folder: str) -> list[str]:
        found: dict[str, None] = {}
        for above in self._up_to_the_root(folder):
            found.update(dict.fromkeys(self._below(above)))
            if len(found) >= _NEAR:
                break
        return list(islice(found, _NEAR))

    def _below(self, folder: str) -> list[str]:
        """The files in a folder and in those below it, the nearest first; no more than are asked for."""
        return self.trail.remembered(("below", folder), lambda: self._walked(folder))

    def _walked(self, folder: str) -> list[str]:
        found: list[str] = []
        pending = [folder]
        while pending and len(found) < _NEAR:
            current = pending.pop(0)
            for name, is_folder in sorted(self._all_of(current).items()):
                if is_folder and "." not in name and name not in _NOT_OURS:
                    pending.append(f"{current}{os.sep}{name}")
                elif not is_folder and name.endswith(".py"):
                    found.append(f"{current}{os.sep}{name}")
        return found[:_NEAR]

    def _found(self, folder: str, name: str) -> str | None:
        level = len(name) - len(name.lstrip("."))
        if level:
            for _ in range(level - 1):
                folder = os.path.dirname(folder)
            return self.inside(folder, name[level:]) if name[level:] else folder
        if _is_elsewhere(name):
            return None
        is_library = name in libraries() or name.startswith("torch")
        for place in self._search_path(folder):
            found = self.inside(place, name)
            if found is not None and not (is_library and self._is_installed(place, name, folder)):
                return found
        return None

    def _is_installed(self, place: str, name: str, folder: str) -> bool:
        """Whether what files of a folder import by the name of a library is what is installed, and not the project's own in this place: that
        of a script comes first, and a library imports itself.
        """
        if place == folder or folder.startswith(os.path.join(place, name)):
            return False
        return not (folder.startswith(place + os.sep) and self._has_scripts(place))

    def _search_path(self, folder: str) -> list[str]:
        """The folders in which Python may look for a top-level module, the most likely first.

        Those are the folder of a script, and for a package the one it lies in, up to the root of the project, each with
        its `src`. A file in a package may be run as a script as well.
        """
        return self.trail.remembered(("search path", folder), lambda: self._places(folder))

    def _places(self, folder: str) -> list[str]:
        above = self._up_to_the_root(folder)
        outside = [place for place in above if not self._has(place, PACKAGE)]
        sources = [os.path.join(place, "src") for place in outside if self._has(place, "src")]
        return [*outside, *sources, *(place for place in above if place not in outside)]

    def _has_scripts(self, folder: str) -> bool:
        """Whether a folder outside all packages has files that may be run, so that what they import is looked for there first."""
        names = self._all_of(folder)
        return PACKAGE not in names and any(
            name.endswith(".py") and not (is_folder or name in _NO_SCRIPTS or name.startswith("test_"))
            for name, is_folder in names.items()
        )

    def outermost(self, path: str) -> str:
        """The outermost folder of the project of a file."""
        return self._up_to_the_root(os.path.dirname(path))[-1]

    def _up_to_the_root(self, folder: str) -> list[str]:
        """A folder and those above it, up to the root of the project; only the one above if no root is in sight."""
        found = [folder]
        while not self._is_root(found[-1]):
            found.append(os.path.dirname(found[-1]))
            if len(found) == _UP or found[-1] == found[-2]:
                return found[:2]
        return found

    def _is_root(self, folder: str) -> bool:
        self.trail.add(Name(folder, _IS_ROOT))
        return (
            folder == self.root
            or os.path.basename(folder) in _NOT_OURS
            or not _ROOT_MARKS.isdisjoint(self.listed(folder))
        )

    def _is_package(self, folder: str) -> bool:
        self.trail.add(Name(folder, _IS_PACKAGE))
        return os.path.basename(folder) not in _NOT_OURS and _holds_modules(self.listed(folder))

    def _has(self, folder: str, name: str) -> bool:
        """Whether a folder has something of this name."""
        self.trail.add(Name(folder, name.removesuffix(".py")))
        return name in self.listed(folder)

    def _all_of(self, folder: str) -> dict[str, bool]:
        self.trail.add(Name(folder, ANY))
        return self.listed(folder)

    def known(self) -> Iterable[tuple[str, dict[str, bool]]]:
        """The folders that were listed, each with what is in it."""
        return self._listed.items()

    def listed(self, folder: str) -> dict[str, bool]:
        """What is in a folder and may be a module or the mark of a root, each with whether it is a folder, and no link to one."""
        if folder not in self._listed:
            self._listed[folder] = _list(folder)
        return self._listed[folder]

    def is_unchanged(self) -> bool:
        """Whether the folders that were listed have what they had."""
        return all(_list(folder) == names for folder, names in self._listed.items())


def _is_elsewhere(name: str) -> bool:
    """Whether a top-level module is never one of the project."""
    return name in sys.stdlib_module_names or name == "torch"


def _list(folder: str) -> dict[str, bool]:
    try:
        with os.scandir(folder) as listing:
            return {
                entry.name: is_folder
                for entry in listing
                if _may_count(entry.name)
                and (
                    (is_folder := entry.is_dir(follow_symlinks=False))
                    or entry.name.endswith(".py")
                    or entry.is_symlink()
                    or entry.name in _ROOT_MARKS
                )
            }
    except OSError:
        return {}


def _may_count(name: str) -> bool:
    """Whether a name may be that of a module or the mark of a root: not `.ta_cache`, and not what Python itself makes."""
    return ("." not in name.removesuffix(".py") and name not in _NOT_OURS) or name in _ROOT_MARKS


def changed_names(before: dict[str, bool], after: dict[str, bool]) -> set[str]:
    """The names in a folder (`trail.Name`) whose look-up may give another answer, as what it holds has changed."""
    changed = {name for name, _ in before.items() ^ after.items()}
    names = {name.removesuffix(".py") for name in changed}
    if changed:
        names.add(ANY)
    if not changed.isdisjoint(_ROOT_MARKS):
        names.add(_IS_ROOT)
    if _holds_modules(before) != _holds_modules(after):
        names.add(_IS_PACKAGE)
    return names


def _holds_modules(names: dict[str, bool]) -> bool:
    return any(name.endswith(".py") or is_folder for name, is_folder in names.items())
