"""What the imports of a project lead to: definitions in its files, or full names outside of it."""

import builtins
import os
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from hashlib import blake2b
from typing import Any, NamedTuple

from ta_lint.project.around import MOST_IMPORTERS, Around
from ta_lint.project.exports import Exports, exports
from ta_lint.project.layout import PACKAGE, Layout
from ta_lint.project.stars import Stars

_REEXPORTS_DEEP = 8
_MOST_OF_A_PROGRAM = 60  # files; what many programs share is a library, and nobody sees all of its users
_LARGEST = 1 << 20  # characters of a file
_UNSEEN = "?"  # the name of a base class that is not found


class Definition(NamedTuple):
    """What an import leads to: a name at the top of a file, and attributes of it; the file itself if the name is empty."""

    file: str
    name: str
    attributes: tuple[str, ...]


class Target(NamedTuple):
    """What an import means: a definition in the project, or a full name outside of it, or neither if it is not known."""

    definition: Definition | None = None
    outside: str | None = None


_UNKNOWN = Target()


class _Ancestry(NamedTuple):
    """The full names outside of the project that a class derives from, and the files that say so."""

    names: frozenset[str] | None
    files: frozenset[str]


class Imports:
    """The imports of all files of a project, each looked up once."""

    def __init__(self, layout: Layout, around: Around) -> None:
        self._layout = layout
        self._around = around
        self._given: dict[str, bytes] = {}  # a digest of each text that was given
        self._texts: dict[str, str] = {}  # those whose exports nobody has asked for yet
        self._exports: dict[str, Exports | None] = {}
        self._targets: dict[tuple[str, str], Target] = {}
        self._stars_of = Stars(layout, self.exports)
        self._trail: set[str] = set()  # the files that the current look-up leads through
        self._packages: set[str] = set()  # those of which it looks through all that they import by star
        self._importers: dict[tuple[str, str], list[str]] = {}
        self._starred_by: dict[str, dict[str, list[str]]] = {}
        self._ours: dict[
            tuple[str, tuple[str, ...]], list[str]
        ] = {}  # of modules that a file names, the last first
        self._ancestors: dict[tuple[str, str], _Ancestry] = {}
        self._used: dict[
            str, set[str]
        ] = {}  # the files looked up, by the one whose names or importers were asked for
        self._used_stars: dict[str, set[str]] = {}  # the files whose stars were looked through, by the same
        self._searched: dict[str, set[str]] = {}  # for words, by the file whose facts depend on them
        self._surfaces: dict[tuple[str, Callable[[bytes], frozenset[Any]]], str] = {}
        self._linted = ""
        self._asked: set[str] = set()  # the files whose names the linted one has asked for
        self._read: set[str] = set()  # the files whose text it has facts from
        self._programs: dict[str, tuple[set[str], set[str]] | None] = {}

    def give(self, path: str, text: str) -> None:
        """Take this text for that of a file, whatever is on disk."""
        digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if self._given.get(path) == digest:
            return
        known = self._exports.pop(path, None)
        self._given[path], self._texts[path] = digest, text
        if known is not None and known != self.exports(path):
            self._targets.clear()
            self._importers.clear()
            self._starred_by.clear()
            self._ancestors.clear()
            self._programs.clear()
            self._stars_of.clear()

    def begin(self, path: str) -> None:
        """Note from here on which files are asked while this one is linted."""
        self._linted = path
        self._asked, self._read = {path}, {path}

    def read(self, path: str) -> None:
        """Note that facts are taken from the text of a file."""
        self._asked.add(path)
        self._read.add(path)

    def used(self, path: str) -> tuple[set[str], set[str], set[str]]:
        """The other files that facts about a file, linted just now, come from: those whose text counts, those of which only the
        imports and names count, and those whose importers were looked for.
        """
        is_linted = self._linted == path
        asking = self._asked if is_linted else {path}
        read = (self._read if is_linted else set()).union(*(self._searched.get(file, ()) for file in asking))
        found = asking.union(*(self._used.get(file, ()) for file in asking))
        packages = set[str]().union(*(self._used_stars.get(file, ()) for file in asking))
        found.update(*map(self._stars_of.files, packages))
        asked = {asked for asked, _ in self._importers if asked in found or asked == path}
        for file in asking:
            program = self._programs.get(file)
            asked |= program[1] if program is not None else set()
        return read - {path}, found - read - {path}, asked

    def exports(self, path: str) -> Exports | None:
        """What a file binds at its top; None if it cannot be read or parsed."""
        if path not in self._exports:
            text = self._texts.pop(path, None)
            if text is None:
                text = self._around.bytes_of(path).decode("utf-8", "replace")
            self._exports[path] = exports(text) if len(text) <= _LARGEST else None
        return self._exports[path]

    def surface(self, path: str, words: Callable[[bytes], frozenset[Any]]) -> str:
        """A digest of all that other files may see of a file but its text; `words` as for `Around.said`."""
        key = path, words
        if key not in self._surfaces:
            seen = self._around.surface(path, words), _sorted(self.exports(path))
            self._surfaces[key] = blake2b(repr(seen).encode(), digest_size=16).hexdigest()
        return self._surfaces[key]

    def attributes_of_imports(self, importer: str) -> frozenset[str]:
        """The names that the files which a file imports from may bind on `self` or in a class."""
        return frozenset[str]().union(*map(self._around.attributes, self.imported_files(importer)))

    def imported_files(self, importer: str) -> set[str]:
        """The files of the project that the names which a file imports are defined in."""
        bound = self.exports(importer)
        if bound is None:
            return set()
        targets = {target for found in bound.names.values() for target in found if target}.union(bound.stars)
        definitions = (self.target(importer, target).definition for target in sorted(targets))
        return {definition.file for definition in definitions if definition is not None}

    def is_nearby(self, path: str, words: tuple[str, ...]) -> bool:
        """Whether a file, or one near it, has one of these words; see `Around.has`."""
        return any(self._has(path, file, words) for file in (path, *self._layout.nearby(path)))

    def importers(self, path: str, name: str) -> list[str]:
        """The files that import what a file binds to a name; empty if there are too many for their calls to tell anything."""
        key = path, name
        if key not in self._importers:
            self._importers[key] = self._find_importers(path, name)
        found = self._importers[key]
        self._used.setdefault(path, set()).update(found)
        return found

    def _find_importers(self, path: str, name: str) -> list[str]:
        definition = Definition(path, name, ())
        ends = {name, _module_name(path)}  # of the imports that may lead there
        packages = self._around.packages(path)
        found: list[str] = []
        for file in self._around.may_import(path, name):
            if file == path:
                continue
            bound = self.exports(file)
            if bound is None:
                continue
            imported = (target for targets in bound.names.values() for target in targets)
            targets = [target for target in imported if target.rpartition(".")[2] in ends]
            targets += [_member(module, name) for module in self._stars(file, bound, packages)]
            if any(self._leads_to(file, target, definition) for target in targets):
                found.append(file)
                if len(found) > MOST_IMPORTERS:
                    return []
        return found

    def _stars(self, importer: str, bound: Exports, modules: AbstractSet[str]) -> list[str]:
        """The modules among these, files or folders, of which a file imports everything, as it writes them."""
        if importer not in self._starred_by:
            found = self._starred_by[importer] = {}
            for written in bound.stars:
                definition = self.target(importer, written).definition
                if definition is not None:
                    folder, file = os.path.split(definition.file)
                    found.setdefault(folder if file == PACKAGE else definition.file, []).append(written)
        starred = self._starred_by[importer]
        return [written for module in modules & starred.keys() for written in starred[module]]

    def beside(self, path: str, words: tuple[str, ...]) -> list[str] | None:
        """The other files of the programs that a file is part of, with one of these words if any; None if they are too many to tell.

        Where the programs have too many files, those that import this one are looked through.
        """
        self._asked.add(path)
        if path not in self._programs:
            self._programs[path] = self._program(path)
        program = self._programs[path]
        files = program[0] if program is not None else self._around.users(path)
        if files is None:
            return None
        self._used.setdefault(path, set()).update(files)
        others = sorted(files - {path})
        return [file for file in others if self._has(path, file, words)] if words else others

    def _has(self, asking: str, path: str, words: tuple[str, ...]) -> bool:
        """Whether a file has one of these words; what depends on it are facts about the file that asks."""
        self._searched.setdefault(asking, set()).add(path)
        return any(self._around.has(path, word) for word in words)

    def calls(self, asking: str, path: str, name: str) -> bool:
        """Whether a file may call something of this name; what depends on it are facts about the file that asks."""
        self._searched.setdefault(asking, set()).add(path)
        return self._around.calls(path, name)

    def _program(self, path: str) -> tuple[set[str], set[str]] | None:
        """The files that import a file, directly or not, with all that these import; and those whose importers were looked for."""
        above = {path}
        pending = [path]
        while pending:
            new = set(self._around.may_import(pending.pop())) - above
            above |= new
            pending += new
            if len(above) > _MOST_OF_A_PROGRAM:
                return None
        found = set(above)
        pending = [*above]
        while pending:
            named = map(self._layout.file, self._around.imports(pending.pop()))
            new = {file for file in named if file is not None} - found
            found |= new
            pending += new
            if len(found) > _MOST_OF_A_PROGRAM:
                return None
        return found, above

    def _leads_to(self, importer: str, target: str, definition: Definition) -> bool:
        """Whether an import is one of a definition, or of the module that it is in."""
        found = self.target(importer, target).definition if target else None
        return found is not None and found.file == definition.file and found.name in ("", definition.name)

    def ancestors(self, importer: str, name: str) -> frozenset[str] | None:
        """The full names of the classes outside of the project that an imported class derives from; None if it is no class."""
        found = self.target(importer, name).definition
        if found is None or found.attributes:
            return None
        place = found.file, found.name
        if place not in self._ancestors:
            known: dict[tuple[str, str], frozenset[str] | None] = {}
            above = self._ancestors_of(place, known)
            kept = (self._ancestors[one].files for one in known if one in self._ancestors)
            self._ancestors[place] = _Ancestry(above, frozenset(file for file, _ in known).union(*kept))
        self._asked |= self._ancestors[place].files
        return self._ancestors[place].names

    def _ancestors_of(
        self, place: tuple[str, str], known: dict[tuple[str, str], frozenset[str] | None]
    ) -> frozenset[str] | None:
        """The full names outside of the project that a class derives from, by its file and name; None if it is no class.

        `known` are the answers of this question so far.
        """
        if place in known:
            return known[place]
        if place in self._ancestors:
            known[place] = self._ancestors[place].names
            return known[place]
        known[place] = None  # as of a class that derives from itself
        file, name = place
        bound = self.exports(file)
        if bound is None or name not in bound.classes or bound.target(name) != "":
            return None
        found: set[str] = set()
        for written in bound.classes[name]:
            base = self._base(file, written)
            above = frozenset({base.outside or _UNSEEN})
            if base.definition is not None:
                named = self._ancestors_of((base.definition.file, base.definition.name), known)
                above = named if named is not None else frozenset({_UNSEEN})
            found |= above
        known[place] = frozenset(found)
        return known[place]

    def _base(self, file: str, base: str) -> Target:
        """What a base class means as it is written in a file."""
        first, _, rest = base.partition(".")
        bound = self.exports(file)
        if bound is not None and first not in bound.names and (name := self.starred(file, bound.stars, base)):
            return self.target(file, name)
        if bound is None or first not in bound.names:
            return Target(outside=f"builtins.{base}") if base in dir(builtins) else _UNKNOWN
        imported = bound.target(first)
        if imported is None:
            return _UNKNOWN
        if not imported:
            return Target(Definition(file, base, ()))
        return self.target(file, f"{imported}.{rest}" if rest else imported)

    def may_have(self, importer: str, name: str, member: str) -> bool:
        """Whether an imported class, or one that it derives from, may have an attribute, or a method such as `def step`."""
        found = self.target(importer, name).definition
        level = {(found.file, found.name)} if found is not None else set()
        seen = set(level)
        for _ in range(_REEXPORTS_DEEP):
            if any(member in self._around.attributes(file) for file, _ in level):
                return True
            level = {place for file, name in level for place in self._bases(file, name)} - seen
            seen |= level
        return bool(level)  # of bases that far up, nothing is known

    def _bases(self, file: str, name: str) -> Iterator[tuple[str, str]]:
        """The file and name of each base of a class that the project defines."""
        bound = self.exports(file)
        for base in bound.classes.get(name, ()) if bound is not None else ():
            above = self._base(file, base).definition
            if above is not None:
                yield above.file, above.name

    def is_function(self, importer: str, name: str) -> bool:
        """Whether what a file imports under a name is a function of the project."""
        found = self.target(importer, name).definition
        bound = self.exports(found.file) if found is not None else None
        return found is not None and bound is not None and found.name in bound.functions

    def starred(self, importer: str, modules: tuple[str, ...], name: str) -> str | None:
        """The full name of what a file has by `from module import *` of one of these modules, if the project has the module."""
        key = importer, modules
        if key not in self._ours:
            self._ours[key] = [module for module in reversed(modules) if self._is_ours(importer, module)]
        for module in self._ours[key]:
            found = self.target(importer, full := _member(module, name))
            is_there = found.definition is not None and bool(found.definition.name)
            if is_there or found.outside is not None:
                return full
        return None

    def target(self, importer: str, name: str) -> Target:
        """What a full name means in a file that imports it; relative names begin with dots."""
        self._asked.add(importer)
        key = importer, name
        if key not in self._targets:
            self._trail, self._packages = set(), set()
            self._targets[key] = self._look_up(importer, name, _REEXPORTS_DEEP)
            self._used.setdefault(importer, set()).update(self._trail)
            self._used_stars.setdefault(importer, set()).update(self._packages)
        return self._targets[key]

    def _look_up(self, importer: str, name: str, depth: int) -> Target:
        if depth == 0 or not name:
            return _UNKNOWN
        rest = name.lstrip(".")
        dots, parts = name[: len(name) - len(rest)], rest.split(".") if rest else []
        first = dots or parts.pop(0)
        module = self._layout.module(importer, first)
        if module is None and parts and not dots:
            module = self._layout.checkout(importer, first, parts[0])
        if module is None:
            return _UNKNOWN if dots else Target(outside=name)
        return self._in_module(importer, module, parts, depth)

    def _in_module(self, importer: str, module: str, parts: list[str], depth: int) -> Target:
        for place, part in enumerate(parts):
            file = self._layout.file(module)
            bound = self._exports_on_trail(file) if file is not None and file != importer else None
            if file is not None and bound is not None and part in bound.names:
                return self._named(file, bound, part, parts[place + 1 :], depth)
            below = self._layout.inside(module, part) if not module.endswith(".py") else None
            if below is None:
                starred = bound.stars if bound is not None and file is not None else ()
                return self._starred(file or "", starred, parts[place:], depth)
            module = below
        file = self._layout.file(module)
        return Target(Definition(file, "", ())) if file is not None else _UNKNOWN

    def _named(self, file: str, bound: Exports, name: str, attributes: list[str], depth: int) -> Target:
        target = bound.target(name)
        if target is None:
            return _UNKNOWN
        if not target:
            return Target(Definition(file, name, tuple(attributes)))
        return self._look_up(file, ".".join([target, *attributes]), depth - 1)

    def _starred(self, file: str, modules: tuple[str, ...], parts: list[str], depth: int) -> Target:
        """What a name means that one of several modules gives by `from module import *`."""
        if not modules:
            return _UNKNOWN
        self._packages.add(file)
        for module in self._stars_of.giving(file, parts[0]):
            found = self._look_up(file, _member(module, ".".join(parts)), depth - 1)
            if found.definition is not None or (found.outside is not None and self._is_ours(file, module)):
                return found
        return _UNKNOWN

    def _is_ours(self, importer: str, module: str) -> bool:
        """Whether the project has a module that a file imports."""
        rest = module.lstrip(".")
        first = module[: len(module) - len(rest)] or rest.partition(".")[0]
        return self._layout.module(importer, first) is not None

    def _exports_on_trail(self, file: str) -> Exports | None:
        self._trail.add(file)
        return self.exports(file)


def _sorted(bound: Exports | None) -> tuple[object, ...]:
    """Exports in an order that does not change from run to run."""
    if bound is None:
        return ()
    names = sorted((name, sorted(targets)) for name, targets in bound.names.items())
    return names, bound.stars, sorted(bound.classes.items()), sorted(bound.functions)


def _module_name(path: str) -> str:
    """The last name of the module that a file is."""
    folder, file = os.path.split(path)
    return os.path.basename(folder) if file == PACKAGE else file.removesuffix(".py")


def _member(module: str, name: str) -> str:
    """The full name of what a module binds, as a relative or absolute import spells it."""
    return f"{module}{'' if module.endswith('.') else '.'}{name}"
