"""What the imports of a project lead to: definitions in its files, or full names outside of it."""

import builtins
import os
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from ta_lint.core.digest import digest_of
from ta_lint.project.around import MOST_IMPORTERS, Around, WordFinder
from ta_lint.project.exports import Exports, exports
from ta_lint.project.layout import PACKAGE, Layout
from ta_lint.project.stars import Stars
from ta_lint.project.trail import Answer, Leaf, Surface, WholeText, leaves

P = ParamSpec("P")
T = TypeVar("T")

_REEXPORTS_DEEP = 8
_MOST_OF_A_PROGRAM = 60  # files; what many programs share is a library, and nobody sees all of its users
_LARGEST = 1 << 20  # characters of a file
# The first words of the questions whose answers depend on what files export.
_OF_EXPORTS = frozenset({"ancestors", "giving", "importers", "ours", "star", "starred", "target"})
# A file with one of these words may bind names at its top that its statements there do not show.
_BINDS_UNSEEN = (
    "__dict__",
    "__getattr__",
    "builtins",
    "exec",
    "global",
    "globals",
    "importlib",
    "locals",
    "sys.modules",
    "vars()",
)
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


def _on_behalf(
    method: Callable[Concatenate["Imports", str, P], T],
) -> Callable[Concatenate["Imports", str, P], T]:
    """A question for facts about the file that is its first argument, unless another question needs it.

    Facts ask the same again and again, so it is answered once for each file that is linted.
    """

    @wraps(method)
    def asked(imports: "Imports", path: str, /, *rest: P.args, **named: P.kwargs) -> T:
        if imports._trail.is_followed:
            return method(imports, path, *rest, **named)
        imports._asked.add(path)
        question = method, path, rest
        if question not in imports._answers:
            with imports._trail.into(imports._used.setdefault(path, set())):
                imports._answers[question] = method(imports, path, *rest, **named)
        return imports._answers[question]  # type: ignore[no-any-return]

    return asked


class Imports:
    """The imports of all files of a project, each looked up once."""

    def __init__(self, layout: Layout, around: Around) -> None:
        self._layout = layout
        self._around = around
        self._trail = layout.trail
        self._given: dict[str, str] = {}  # a digest of each text that was given
        self._texts: dict[str, str] = {}  # those whose exports nobody has asked for yet
        self._exports: dict[str, Exports | None] = {}
        self._stars_of = Stars(layout, self.exports)
        self._used: dict[
            str, set[Leaf | Answer]
        ] = {}  # what answers come from, by the file on whose behalf they were asked
        self._answers: dict[object, Any] = {}  # to questions for facts, while one file is linted
        self._surfaces: dict[tuple[str, WordFinder[Any]], str] = {}
        self._linted = ""
        self._asked: set[str] = set()  # the files on whose behalf was asked while this one is linted
        self._read: set[str] = set()  # the files whose text it has facts from

    def give(self, path: str, text: str) -> None:
        """Take this text for that of a file, whatever is on disk."""
        digest = digest_of(text.encode("utf-8", "surrogatepass"))
        if self._given.get(path) == digest:
            return
        known = self._exports.pop(path, None)
        self._given[path], self._texts[path] = digest, text
        if known is not None and known != self.exports(path):
            self._forget_answers()

    def _forget_answers(self) -> None:
        self._trail.forget(_OF_EXPORTS)
        self._answers.clear()
        self._surfaces.clear()

    def forget_unsaved(self) -> None:
        """Take the texts on disk again for those that were given."""
        for path in [path for path in self._given if path in self._exports and not self._is_on_disk(path)]:
            on_disk = self._exports_on_disk(path)
            if self._exports[path] != on_disk:
                self._exports[path] = on_disk
                self._forget_answers()
        self._given.clear()
        self._texts.clear()

    def _is_on_disk(self, path: str) -> bool:
        content = self._around.contents.get(path)
        return content is not None and content.digest == self._given[path]

    def begin(self, path: str) -> None:
        """Note from here on which files are asked while this one is linted."""
        self._linted = path
        self._answers.clear()
        self._asked, self._read = {path}, {path}

    def read(self, path: str) -> None:
        """Note that facts are taken from the text of a file."""
        self._asked.add(path)
        self._read.add(path)

    def followed(self, path: str) -> AbstractContextManager[None]:
        """What is asked inside counts as asked for a file that is linted."""
        return self._trail.into(self._used.setdefault(path, set()))

    def used(self, path: str) -> set[Leaf]:
        """What facts about a file, linted just now, come from besides its own text."""
        is_linted = self._linted == path
        asking = self._asked if is_linted else {path}
        found = leaves(source for file in asking for source in self._used.get(file, ()))
        found.update(map(Surface, asking))
        found.update(map(WholeText, self._read if is_linted else ()))
        return found - {Surface(path), WholeText(path)}

    def exports(self, path: str) -> Exports | None:
        """What a file binds at its top; None if it cannot be read or parsed."""
        self._trail.add(Surface(path))
        if path not in self._exports:
            text = self._texts.pop(path, None)
            self._exports[path] = _exports(text) if text is not None else self._exports_on_disk(path)
        return self._exports[path]

    def _exports_on_disk(self, path: str) -> Exports | None:
        return self._around.ask(path, "exports", _exports_in, _as_exports)

    def surface(self, path: str, words: WordFinder[Any]) -> str:
        """A digest of all that other files may see of a file but its text; `words` as for `Around.said`."""
        key = path, words
        if key not in self._surfaces:
            seen = self._around.surface(path, words), _sorted(self.exports(path))
            self._surfaces[key] = digest_of(repr(seen).encode())
        return self._surfaces[key]

    @_on_behalf
    def attributes_of_imports(self, importer: str) -> frozenset[str]:
        """The names that the files which a file imports from may bind on `self` or in a class."""
        return frozenset[str]().union(*map(self._around.attributes, self._imported_files(importer)))

    def _imported_files(self, importer: str) -> set[str]:
        """The files of the project that the names which a file imports are defined in."""
        bound = self.exports(importer)
        if bound is None:
            return set()
        targets = {target for found in bound.names.values() for target in found if target}.union(bound.stars)
        definitions = (self.target(importer, target).definition for target in sorted(targets))
        return {definition.file for definition in definitions if definition is not None}

    @_on_behalf
    def is_nearby(self, path: str, words: tuple[str, ...]) -> bool:
        """Whether a file, or one near it, has one of these words; see `Around.has`."""
        return any(self._has(file, words) for file in (path, *self._layout.nearby(path)))

    @_on_behalf
    def importers(self, path: str, name: str) -> list[str]:
        """The files that import what a file binds to a name; empty if there are too many for their calls to tell anything."""
        return self._trail.remembered(("importers", path, name), lambda: self._find_importers(path, name))

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
        starred = self._trail.remembered(("starred", importer), lambda: self._starred_by(importer, bound))
        return [written for module in sorted(modules & starred.keys()) for written in starred[module]]

    def _starred_by(self, importer: str, bound: Exports) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for written in bound.stars:
            definition = self.target(importer, written).definition
            if definition is not None:
                folder, file = os.path.split(definition.file)
                found.setdefault(folder if file == PACKAGE else definition.file, []).append(written)
        return found

    @_on_behalf
    def beside(self, path: str, words: tuple[str, ...]) -> list[str] | None:
        """The other files of the programs that a file is part of, with one of these words if any; None if they are too many to tell.

        Where the programs have too many files, those that import this one are looked through.
        """
        files = self._trail.remembered(("program", path), lambda: self._program(path))
        if files is None:
            files = self._around.users(path)
        if files is None:
            return None
        others = sorted(files - {path})
        return [file for file in others if self._has(file, words)] if words else others

    def _has(self, path: str, words: tuple[str, ...]) -> bool:
        """Whether a file has one of these words."""
        self._trail.add(WholeText(path))
        return any(self._around.has(path, word) for word in words)

    @_on_behalf
    def calls(self, asking: str, path: str, name: str) -> bool:
        """Whether a file may call something of this name; it is `asking` that this says something about."""
        self._trail.add(WholeText(path))
        return self._around.calls(path, name)

    def _program(self, path: str) -> set[str] | None:
        """The files that import a file, directly or not, with all that these import; None if they are too many."""
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
        return found

    def _leads_to(self, importer: str, target: str, definition: Definition) -> bool:
        """Whether an import is one of a definition, or of the module that it is in."""
        found = self.target(importer, target).definition if target else None
        return found is not None and found.file == definition.file and found.name in ("", definition.name)

    @_on_behalf
    def ancestors(self, importer: str, name: str) -> frozenset[str] | None:
        """The full names of the classes outside of the project that an imported class derives from; None if it is no class."""
        found = self.target(importer, name).definition
        if found is None or found.attributes:
            return None
        return self._ancestors_of((found.file, found.name), {})

    def _ancestors_of(
        self, place: tuple[str, str], known: dict[tuple[str, str], frozenset[str] | None]
    ) -> frozenset[str] | None:
        """The full names outside of the project that a class derives from, by its file and name; None if it is no class.

        `known` are the answers of this question so far.
        """
        if place not in known:
            known[place] = None  # as of a class that derives from itself
            known[place] = self._trail.remembered(("ancestors", *place), lambda: self._above(place, known))
        return known[place]

    def _above(
        self, place: tuple[str, str], known: dict[tuple[str, str], frozenset[str] | None]
    ) -> frozenset[str] | None:
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
        return frozenset(found)

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

    @_on_behalf
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

    @_on_behalf
    def is_function(self, importer: str, name: str) -> bool:
        """Whether what a file imports under a name is a function of the project."""
        found = self.target(importer, name).definition
        bound = self.exports(found.file) if found is not None else None
        return found is not None and bound is not None and found.name in bound.functions

    @_on_behalf
    def starred(self, importer: str, modules: tuple[str, ...], name: str) -> str | None:
        """The full name of what a file has by `from module import *` of one of these modules, if the project has the module."""
        ours = self._trail.remembered(
            ("ours", importer, modules),
            lambda: [module for module in reversed(modules) if self._is_ours(importer, module)],
        )
        for module in ours:
            found = self.target(importer, full := _member(module, name))
            is_there = found.definition is not None and bool(found.definition.name)
            if is_there or found.outside is not None:
                return full
        return None

    @_on_behalf
    def may_give(self, importer: str, modules: tuple[str, ...], name: str) -> bool:
        """Whether `from module import *` of one of these modules may give a file a name. `Stars` takes what a file most likely has; this is no only
        if that is certain: a module that is not in the project may give any name, and so may a file that binds names where nobody sees it.
        """
        pending = [(importer, module) for module in modules]
        seen = {importer}
        while pending:
            file, written = pending.pop()
            found = self._layout.all_meant(file, written)
            if not found or any(name in self._layout.members(module) for module in found):
                return True
            for given in {self._layout.file(module) for module in found} - {None, *seen}:
                assert given is not None
                seen.add(given)
                bound = self.exports(given)
                if bound is None or name in bound.names or self._has(given, _BINDS_UNSEEN):
                    return True
                pending += [(given, star) for star in bound.stars]
        return False

    @_on_behalf
    def target(self, importer: str, name: str) -> Target:
        """What a full name means in a file that imports it; relative names begin with dots."""
        return self._trail.remembered(
            ("target", importer, name), lambda: self._look_up(importer, name, _REEXPORTS_DEEP)
        )

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
            bound = self.exports(file) if file is not None and file != importer else None
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


def _exports(text: str) -> Exports | None:
    return exports(text) if len(text) <= _LARGEST else None


def _exports_in(data: bytes) -> list[Any] | None:
    """The exports of a file with these bytes, as JSON can keep them."""
    bound = _exports(data.decode("utf-8", "replace"))
    if bound is None:
        return None
    names = {name: sorted(targets) for name, targets in bound.names.items()}
    return [names, bound.stars, bound.classes, sorted(bound.functions)]


def _as_exports(written: list[Any] | None) -> Exports | None:
    if written is None:
        return None
    names, stars, classes, functions = written
    return Exports(
        {name: frozenset(targets) for name, targets in names.items()},
        tuple(stars),
        {name: tuple(bases) for name, bases in classes.items()},
        frozenset(functions),
    )


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
