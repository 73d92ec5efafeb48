"""What a project asks of its dependencies: the oldest torch that it allows, and the frameworks of an old release."""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ta_lint.core.errors import Unreadable
from ta_lint.core.lazy import regex
from ta_lint.core.reading import read
from ta_lint.core.settings import Tables, table

if TYPE_CHECKING:
    from packaging.version import Version

# Where dependencies stand if not in a `pyproject.toml`, the first that say something first: pip's files, conda's, others.
_LISTS = (
    "requirements.txt",
    "setup.cfg",
    "setup.py",
    "requirements",
    r"[\w.-]*requirements[\w.-]*\.txt",
    r"[\w.-]*(?:env|conda)[\w.-]*\.ya?ml",
    r"(?i:readme(?:[_-][\w-]+)?(?:\.(?:md|rst|txt))?)",
)
_LISTED_IN = regex("|".join(_LISTS))
_README = regex(_LISTS[-1])
_LONGEST_LIST = 1 << 16  # bytes

# How a requirement of torch is written in them: by pip, also under the name of the project, and by conda, with the build: `pytorch=1.8.0=py3.7_0`.
_BOUND = r"(?:py)?(torch[ \t]*[<>=~!][^#;\n]*)"
_LINE = r"(?m)^[ \t]*" + _BOUND
_TORCH = {
    ".txt": _LINE,
    ".cfg": _LINE,
    ".py": r"[\"'](torch[ \t]*[<>=~!][^\"'\n#;]*)",
    ".yml": r"(?m)^[ \t]*-[ \t]*[\"']?(?:[\w-]+::)?" + _BOUND,
}
_BUILD = regex(r"(torch[ \t]*)=[ \t]*(\d+(?:\.\d+)*)(?:\.\*)?(?:=.*)?")

# A command of a README that installs: `pip install transformers==4.43.4 accelerate`.
_INSTALLS = r"(?m)\b(?:pip3?|conda|mamba)[ \t]+(?:-\S+[ \t]+)*install[ \t]+(.*)$"

# A release that a README names: `transformers==4.28.1` anywhere, and in a list or table `- Transformers 4.28.1`,
# `| transformers | v4.28.1 |`. One that later ones follow is no pin: `transformers 4.28+`.
_PIN = (
    r"(?im)(?:(?<![\w./-]){name}[ \t]*==[ \t]*|"
    r"^[ \t]*+(?:[-*+>|]|\d+\.)?[ \t`*_\[]*+(?:hugging ?face[ -])?{name}[`*_\]]*+[ \t|:(=]*+(?:version)?[ \t`]*+v?)"
    r"(\d+\.\d+(?:\.\d+)*)(?![\w.+]|[ \t`]*(?:\+|<|>|~|-|or\b|and\b|to\b))"
)

# A requirement with its bounds, as pip and conda write it, and releases that rules speak of: one of them has to be allowed, or a
# later one than the first.
_BOUNDS = r"(?<![\w.-]){name}(?:\[[\w, -]*\])?[ \t]*([<>=~!][^#;\"'\n]*)"
_LIGHTNING = "(?:pytorch[-_ ])?lightning"
_RELEASES = {
    "lightning": (
        regex(_BOUNDS.format(name=_LIGHTNING)),
        ("2.0.0", "2.1.0", "2.2.0", "2.4.0", "2.6.0", "2.99.0"),
    ),
    "transformers": (
        regex(_BOUNDS.format(name="transformers")),
        ("4.46.0", "4.48.0", "4.50.0", "4.53.0", "4.57.0", "4.99.0", "5.0.0", "5.2.0", "5.99.0"),
    ),
}


# Packages that run on Lightning 1 alone.
_OF_LIGHTNING_1 = regex(r"(?<![\w.-])(?:pytorch-)?lightning-(?:bolts|flash)(?![\w-])")


def dependencies(tables: Tables, directory: str) -> "tuple[Version | None, frozenset[str]]":
    """The lowest torch version that a project allows, and the frameworks of which it asks for an old release.

    By its `pyproject.toml`, or else by another list of its dependencies. Old is Lightning before 2, and transformers before 4.46.
    """
    lists = dict(_lists(directory))
    target = of_pyproject(tables)
    if target is None:
        target = next(filter(None, (_of_list(name, text) for name, text in lists.items())), None)
    texts = (_of_tables(tables), *lists.values())
    return target, frozenset(name for name in _RELEASES if _is_old(name, texts))


def is_listed_in(name: str) -> bool:
    """Whether a file or folder of this name has, or may have, a list of dependencies."""
    return _LISTED_IN.fullmatch(name) is not None


def _lists(directory: str) -> Iterator[tuple[str, str]]:
    """The lists of dependencies in a folder, by name."""
    try:
        names = sorted(filter(is_listed_in, os.listdir(directory)))
    except OSError:
        return
    names.sort(key=lambda name: next(place for place, each in enumerate(_LISTS) if re.fullmatch(each, name)))
    for name in names:
        path = os.path.join(directory, name)
        if name == "requirements":
            yield from _lists_in(path)
        elif (text := _read(path)) is not None:
            yield name, _installed(text) if _README.fullmatch(name) else text


def _lists_in(folder: str) -> Iterator[tuple[str, str]]:
    """The lists in a folder `requirements`: `base.txt` first."""
    try:
        names = sorted(os.listdir(folder), key=lambda name: (name != "base.txt", name))
    except OSError:
        return
    for name in names:
        if name.endswith(".txt") and (text := _read(os.path.join(folder, name))) is not None:
            yield "requirements.txt", text


def _read(path: str) -> str | None:
    try:
        return read(path, _LONGEST_LIST).decode("utf-8", "replace")
    except Unreadable:
        return None


def _installed(readme: str) -> str:
    """What the commands of a README install, one a line, and the releases that it names."""
    words = [word.strip("`'\"") for command in re.findall(_INSTALLS, readme) for word in command.split()]
    for name, spelled in (("lightning", _LIGHTNING), ("transformers", "transformers")):
        words += [f"{name}=={release}" for release in re.findall(_PIN.format(name=spelled), readme)]
    return "\n".join(words)


# -- torch ----------------------------------------------------------------------------------------------------


def _of_list(name: str, text: str) -> "Version | None":
    """The lowest torch version that the text of a list allows."""
    if _README.fullmatch(name):
        return None
    written = _TORCH[os.path.splitext(name)[1].replace("yaml", "yml")]
    found = (_BUILD.sub(r"\1==\2", each) for each in re.findall(written, text))
    bounds = [_lower_bound(each.rstrip(", \t\r\"'")) for each in found]
    return min((bound for bound in bounds if bound is not None), default=None)


def of_pyproject(tables: Tables) -> "Version | None":
    """The lowest torch version that a project's own dependencies allow; None if they do not say.

    The main dependencies take precedence over extras and groups.
    """
    project = table(tables, "project")
    extras = table(project, "optional-dependencies").values()
    groups = table(tables, "dependency-groups").values()
    for requirements in (project.get("dependencies"), *extras, *groups):
        texts = (
            [item for item in requirements if isinstance(item, str)] if isinstance(requirements, list) else []
        )
        if bounds := [bound for text in texts if (bound := _lower_bound(text)) is not None]:
            return min(bounds)
    poetry = table(tables, "tool", "poetry", "dependencies").get("torch")
    if isinstance(poetry, dict):
        poetry = poetry.get("version")
    if not isinstance(poetry, str):
        return None
    return _lower_bound("torch" + re.sub(r"\^|(?<![~=])~(?!=)", ">=", poetry))


def _lower_bound(text: str) -> "Version | None":
    if not text.startswith("torch"):  # most are about others: skip the parser and its import
        return None
    from packaging.requirements import Requirement
    from packaging.version import Version

    try:
        requirement = Requirement(text)
        versions = [
            Version(specifier.version.removesuffix(".*"))
            for specifier in requirement.specifier
            if specifier.operator in (">=", "==", "~=", ">")
        ]
    except (ValueError, RecursionError):  # not a valid requirement, but that is not for us to report
        return None
    return max(versions, default=None) if requirement.name == "torch" else None


# -- frameworks -----------------------------------------------------------------------------------------------


def _is_old(name: str, texts: Collection[str]) -> bool:
    pattern, releases = _RELEASES[name]
    if name == "lightning" and any(map(_OF_LIGHTNING_1.search, texts)):
        return True
    for text in texts:
        if bounds := pattern.findall(text):
            return not any(_allows(bound, releases) for bound in bounds)
    return False


def _of_tables(tables: Mapping[str, Any]) -> str:
    """The requirements of a `pyproject.toml`, with those of its extras, one a line."""
    project = table(tables, "project")
    lists = (project.get("dependencies"), *table(project, "optional-dependencies").values())
    listed = [item for each in lists if isinstance(each, list) for item in each if isinstance(item, str)]
    return "\n".join((*listed, *_of_poetry(table(tables, "tool", "poetry", "dependencies"))))


def _of_poetry(listed: Tables) -> Iterator[str]:
    """Poetry's requirements, as pip writes them: `1.5` is one release, and `^1.5` ends before 2."""
    for name, given in listed.items():
        bound = given.get("version") if isinstance(given, dict) else given
        if not isinstance(bound, str):
            continue
        if (caret := re.fullmatch(r"\^((\d{1,9})[\w.]*)", bound)) is not None:
            yield f"{name}>={caret[1]},<{int(caret[2]) + 1}"
        elif bound[:1].isdecimal():
            yield f"{name}=={bound}"
        else:
            yield f"{name}{re.sub(r'^~(?!=)', '~=', bound)}"


def _allows(bound: str, releases: Iterable[str]) -> bool:
    """Whether a bound, such as `>=1.5,<2`, allows one of the releases; one that cannot be read does."""
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

    oldest, *_ = releases = list(releases)
    text = re.sub(r"^=(?!=)", "==", bound.strip().rstrip(","))  # as conda writes it
    try:
        allowed = SpecifierSet(text)
        exact = [each.version for each in allowed if each.operator == "==" and "*" not in each.version]
        if exact:
            return all(Version(version) >= Version(oldest) for version in exact)
        return any(allowed.contains(version) for version in releases)
    except ValueError:  # not a specifier, or one with a number that Python does not read
        return True
