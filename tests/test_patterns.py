"""Lines of a `.gitignore` mean what git takes them to mean, and none of them takes long, whoever wrote it."""

import json
import re
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec

from ta_lint.core.patterns import Patterns, is_pattern

NAMES = ["a", "b", "ab", "ba", "b.py", ".a", "a b", "a]", "[a]", "-", "7", "A", "!a", "#", "a\\"]
PIECES = [*"ab.py]-! #7A^", "*", "*", "**", "?", "\\*", "\\?", "\\[", "\\\\", "\\ ", "\\a"]
BRACKETS = [
    "[ab]",
    "[!a]",
    "[^b]",
    "[a-c]",
    "[]a]",
    "[!]]",
    "[-a]",
    "[a-]",
    "[\\]b]",
    "[b-a]",
    "[+-9]",
    "[a/]",
]
BRACKETS += [
    f"[{not_}[:{name}:]{also}]"
    for name in ("alpha", "digit", "punct")
    for not_, also in product(("", "!"), ("", "-"))
]
BROKEN = ["[", "[a", "[]", "[[:no:]]"]


def line_of(segment: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """A line with up to four segments, perhaps negated, anchored or for folders alone."""
    path = st.lists(segment, min_size=1, max_size=4).map("/".join)
    before, after = st.sampled_from(["", "", "", "!"]), st.sampled_from(["", "", "/", " "])
    return st.tuples(before, st.sampled_from(["", "", "/", "**/"]), path, after).map("".join)


COMMON = line_of(st.sampled_from(["a", "b", "ab", "*", "a*", "*b", "b?", "*.py", "[ab]", ".a"]))
ODD = line_of(
    st.lists(st.sampled_from([*PIECES, *BRACKETS, *BROKEN]), min_size=1, max_size=5).map("".join)
    | st.sampled_from(["a", "b", "*", "**"])
).filter(
    lambda line: re.search(r"[^/!]\*\*", line) is None
)  # git matches `a**/b` with `ab`, which its manual denies


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with every name as a file at each of three depths, and folders of other names to hold them."""
    top = tmp_path_factory.mktemp("tree")
    for folder in ("", "f", "a b.d", "f/ab7", "f/ab7/b-", "a[/"):
        (top / folder).mkdir(exist_ok=True)
        for name in NAMES:
            (top / folder / name).touch()
    subprocess.run(["git", "init", "-q"], cwd=top, check=True)
    return top


def ignored(top: Path, lines: list[str], paths: list[str]) -> set[str]:
    """The paths that git ignores for these lines."""
    (top / ".gitignore").write_text("".join(f"{line}\n" for line in lines))
    command = ["git", "-c", "core.excludesFile=", "check-ignore", "--no-index", "--stdin", "-z"]
    ran = subprocess.run(command, cwd=top, input="\0".join(paths), capture_output=True, text=True)
    assert ran.returncode in (0, 1), ran.stderr
    return set(ran.stdout.split("\0")) - {""}


@pytest.mark.parametrize("lines", [COMMON, ODD], ids=["common", "odd"])
def test_lines_mean_what_git_takes_them_to_mean(tree: Path, lines: st.SearchStrategy[str]) -> None:
    """A3: an expression without backtracking has the same verdicts."""
    kinds = {
        path.relative_to(tree).as_posix(): path.is_dir()
        for path in tree.rglob("*")
        if ".git" not in path.relative_to(tree).parts and path.name != ".gitignore"
    }

    @settings(max_examples=150, deadline=None, derandomize=True, database=None)
    @given(st.lists(lines, min_size=1, max_size=4))
    def agree(lines: list[str]) -> None:
        patterns = Patterns(filter(is_pattern, lines))
        excluded = {
            path for path, is_folder in kinds.items() if patterns.exclude(f"{path}/" if is_folder else path)
        }
        assert excluded == ignored(tree, lines, list(kinds)), lines

    agree()


def test_common_lines_mean_what_pathspec_takes_them_to_mean() -> None:
    paths = ["/".join(names) for depth in (1, 2, 3) for names in product(NAMES[:6], repeat=depth)]

    @settings(max_examples=100, deadline=None, derandomize=True, database=None)
    @given(
        st.lists(COMMON.filter(lambda line: line[0] != "!"), min_size=1, max_size=4),
        st.sampled_from(["", "/"]),
    )
    def agree(lines: list[str], end: str) -> None:
        patterns, spec = Patterns(lines), GitIgnoreSpec.from_lines(lines)
        for path in paths:
            assert patterns.exclude(path + end) == bool(spec.check_file(path + end).include), (
                lines,
                path + end,
            )

    agree()


def test_of_lines_that_contradict_each_other_the_last_holds() -> None:
    patterns = Patterns(["*.py", "!keep.py", "a/keep.py"])
    assert patterns.verdict("b/drop.py") is True
    assert patterns.verdict("b/keep.py") is False
    assert patterns.verdict("a/keep.py") is True
    assert patterns.verdict("b/keep.txt") is None


@pytest.mark.parametrize(
    "line", ["build", "*.py[cod]", "**/a/", r"a\ b", "!x", "a/**", "[!a]b", "ä", "[z-a]", "# a", ""]
)
def test_a_line_that_git_reads_is_a_pattern(line: str) -> None:
    assert is_pattern(line)


@pytest.mark.parametrize("line", ["!", "/", "a//b", "a//", "[a", "[[:letters:]]", "a\\"])
def test_a_line_that_git_matches_with_nothing_is_none(line: str) -> None:
    assert not is_pattern(line)


LONG = "a" * 250
HOSTILE = [
    "*a" * 25 + "b",
    "*a" * 1000 + "b",
    "*" + "?*" * 100 + "b",
    "*[ab]" * 25 + "c",
    "*[!b]" * 25 + "b",
    "*[[:alpha:]]" * 25 + "7",
    "*aa" * 25 + "*b",
    "/" + "*a" * 25 + "b/c",
    "*a" * 25 + "b/",
    "!" + "*a" * 25 + "b",
    "**/a" * 25 + "/b",
    "a/**/" * 25 + "b",
    "**/*a*a*a*a*a/" * 12 + "b",
    "x/" + "**/*" * 25 + "b",
    "\\a" + "*a" * 25 + "b",
    "**/" * 2000 + "b",
    "a/**" + "*" * 5000,
    "[" * 50_000,
    "[[:a" * 20_000,
    "*a" * 20 + " " * 20_000 + "b",
]


@pytest.mark.parametrize("where", [".gitignore", "exclude", "per-file-ignores"])
def test_no_line_takes_long_on_long_paths(tmp_path: Path, where: str) -> None:
    """A3: lines for which an expression that goes back over its choices would take years."""
    folder = tmp_path.joinpath(LONG, *"a" * 50)
    folder.mkdir(parents=True)
    (tmp_path / LONG / f"{LONG}.py").write_text("import torch\n")
    (folder / f"{LONG}.py").write_text("import torch\n")
    lines = list(filter(is_pattern, HOSTILE))
    assert len(lines) > 15
    if where == ".gitignore":
        (tmp_path / ".gitignore").write_text("\n".join(HOSTILE))
        table = ""
    elif where == "exclude":
        table = f"exclude = {json.dumps(lines)}\n"
    else:
        table = "".join(f"per-file-ignores.{json.dumps(line)} = ['TA4']\n" for line in lines)
    (tmp_path / "pyproject.toml").write_text(f"[tool.ta]\n{table}", encoding="utf-8")
    command = [sys.executable, "-m", "ta_lint", "check", "--no-cache", "--select=ALL"]
    ran = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=60
    )  # it takes a second
    assert ran.returncode == 0
    assert all(line.endswith("matches no file") for line in ran.stderr.splitlines())


@given(st.lists(st.sampled_from([*PIECES, *BRACKETS, "/"]), min_size=1, max_size=40), st.integers(0, 40))
@settings(max_examples=300, deadline=5000, derandomize=True, database=None)
def test_no_generated_line_takes_long_on_a_long_path(pieces: list[str], depth: int) -> None:
    line = "".join(pieces)
    if is_pattern(line):
        Patterns([line]).verdict("aaaa/" * depth + LONG)


@given(st.text("ab*?[]!^-\\/ :.#\n\u2028é", max_size=12))
@settings(max_examples=1000, deadline=None, derandomize=True, database=None)
def test_any_line_is_a_pattern_or_refused(line: str) -> None:
    if is_pattern(line):
        assert Patterns([line]).verdict("a/b") in (True, False, None)
