"""What the linter says of sets of bugs that others collected: of patterns, of scripts and of the tests of a peer.

`python benchmarks/independent.py REPOSITORIES [--set NAME] [--write]`; see `benchmarks/README.md`.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from corpus import Missing
from fixes import git_directory
from tables import aligned

from ta_lint.core.catalogue import catalogue

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "independent.json"
JUDGEMENTS = ROOT / "benchmarks" / "independent.toml"

_EXPECTED = re.compile(r"(\d+):\d+ (TOR\d{3}) ")


class Found(NamedTuple):
    """A finding: where it stands, its rule, and the other lines of its file that it names."""

    path: str
    line: int
    rule: str
    named: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.rule}"


def main() -> int:
    """Lint the sets that are at hand, and print what is found; returns the exit status."""
    arguments = _arguments()
    judged = tomllib.loads(JUDGEMENTS.read_text(encoding="utf-8"))
    results = {}
    try:
        for name in arguments.set or SETS:
            repository = judged[name]["repository"]
            folder = git_directory(arguments.repositories / repository.replace("/", "+"))
            if folder is None:
                print(f"{name}: skipped: no {repository}", file=sys.stderr)
                continue
            results[name] = SETS[name](judged[name], _texts(folder, judged[name]["folder"]))
            results[name]["commit"] = _git(folder, "rev-parse", "HEAD").decode().strip()
            print("\n".join(TABLES[name](results[name])), end="\n\n")
    except Missing as error:
        print(f"independent.py: error: {error}", file=sys.stderr)
        return 2
    if arguments.write:
        kept = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else {}
        RESULTS.write_text(json.dumps(kept | results, indent=1) + "\n", encoding="utf-8")
    open_questions = [place for result in results.values() for place in result["unexplained"]]
    for place in open_questions:
        print(f"not judged in {JUDGEMENTS.name}, or judged and no more: {place}", file=sys.stderr)
    return 1 if open_questions else 0


# -- patterns, each with files that have it and files that do not ---------------------------------------------


def patterns(judged: dict[str, Any], texts: dict[str, bytes]) -> dict[str, Any]:
    """What the rules on each pattern name of its positives, and what all default rules say of healthy files."""
    files = {}
    for path, text in texts.items():
        *_, pattern, kind, name = PurePosixPath(path).parts
        if kind.startswith("test_") and name.endswith(".py"):  # by a name of tests it would be taken for one
            files[f"{pattern}/{kind.removeprefix('test_')}/{name}"] = text
    rules: dict[str, list[str]] = judged["rules"]
    ours = sorted({rule for own in rules.values() for rule in own})
    found = _linted(files, f"--extend-select={','.join(ours)}")
    rows, alarms, missed = [], [], []
    for pattern in sorted({path.partition("/")[0] for path in files}):
        own = rules.get(pattern, [])
        positives = sorted(path for path in files if path.startswith(f"{pattern}/positive/"))
        named = [path for path in positives if any(f.path == path and f.rule in own for f in found)]
        missed += [path for path in positives if own and path not in named]
        rows.append({"pattern": pattern, "rules": own, "positives": len(positives), "named": len(named)})
    for finding in found:
        if "/positive/" not in finding.path and catalogue()[finding.rule].default:
            alarms.append(str(finding))
    return {
        "patterns": rows,
        "negatives": sum("/negative/" in path for path in files),
        "other": sum("/context_dependent/" in path for path in files),
        "alarms": alarms,
        "missed": missed,
        "unexplained": sorted(
            set(missed) ^ set(judged["missed"]) | set(alarms) ^ set(judged["judged"]) | _unknown(judged, rows)
        ),
    }


def _unknown(judged: dict[str, Any], rows: list[dict[str, Any]]) -> set[str]:
    """The patterns on torch and training that stand in no table, and those in a table that the set does not have."""
    there = {row["pattern"] for row in rows}
    tabled = {*judged["rules"], *judged["none"]}
    return {name for name in there - tabled if name.startswith("pt-")} | tabled - there


def patterns_table(result: dict[str, Any]) -> Iterator[str]:
    """The patterns that a rule is about, and how much of each is named."""
    rows: list[tuple[str, ...]] = [("pattern", "rules", "positives", "named")]
    tried = [row for row in result["patterns"] if row["rules"]]
    default = [row for row in tried if _is_default(row["rules"])]
    for row in tried:
        rules = ", ".join(row["rules"]) + ("" if row in default else " (not by default)")
        rows.append((row["pattern"], rules, str(row["positives"]), str(row["named"])))
    of_default = [sum(row[key] for row in default) for key in ("positives", "named")]
    rows.append(("of default rules", "", *map(str, of_default)))
    return aligned(rows)


def _is_default(rules: list[str]) -> bool:
    return any(catalogue()[rule].default for rule in rules)


# -- whole scripts, each with several patterns ----------------------------------------------------------------


def scenarios(judged: dict[str, Any], texts: dict[str, bytes]) -> dict[str, Any]:
    """What the rules on a pattern name of the scripts that have it, by the list that comes with them."""
    files = {path: text for path, text in texts.items() if path.endswith(".py")}
    rules: dict[str, list[str]] = judged["rules"]
    found = _linted(files)
    rows: dict[str, Counter[str]] = {}
    missed = []
    for path, pattern in _planted(texts[judged["list"]].decode()):
        if pattern in rules:
            named = any(finding.path == path and finding.rule in rules[pattern] for finding in found)
            rows.setdefault(pattern, Counter()).update(bugs=1, named=int(named))
            if not named:
                missed.append(f"{PurePosixPath(path).stem} {pattern}")
    return {
        "scripts": len(files),
        "patterns": {pattern: {"rules": rules[pattern], **row} for pattern, row in sorted(rows.items())},
        "missed": missed,
        "unexplained": sorted(set(missed) ^ set(judged["missed"])),
    }


def _planted(listed: str) -> Iterator[tuple[str, str]]:
    """The file and the pattern of each bug in the list, which is YAML of one shape."""
    path = ""
    for line in listed.splitlines():
        key, _, value = line.strip().removeprefix("- ").partition(": ")
        if key == "file":
            path = value
        elif key == "pattern_id":
            yield path, value


def scenarios_table(result: dict[str, Any]) -> Iterator[str]:
    """The bugs of each pattern."""
    rows: list[tuple[str, ...]] = [("pattern", "rules", "bugs", "named")]
    every = result["patterns"].items()
    rows += [(name, ", ".join(row["rules"]), str(row["bugs"]), str(row["named"])) for name, row in every]
    rows.append(("all", "", *(str(sum(row[key] for _, row in every)) for key in ("bugs", "named"))))
    return aligned(rows)


# -- scripts, each with one bug -------------------------------------------------------------------------------


def scripts(judged: dict[str, Any], texts: dict[str, bytes]) -> dict[str, Any]:
    """Whether the cause of each bug is named, and whether that goes where the script is mended."""
    files = {
        path: text
        for path, text in texts.items()
        if path.endswith(".py") and re.search(rb"(?m)^\s*(?:import|from) torch\b", text)
    }
    bugs: dict[str, dict[str, Any]] = judged["bugs"]
    selected = sorted({rule for bug in bugs.values() for rule in bug["rules"]})
    before = _linted(files, f"--select={','.join(selected)}")
    mended = dict(files)
    for name, bug in bugs.items():
        path = f"{name}/main.py"
        if "mended" in bug and path in files:
            mended[path] = _mended(files[path], *bug["mended"])
    after = _linted(mended, f"--select={','.join(selected)}")
    rows = []
    for name, bug in sorted(bugs.items()):
        if bug["rules"]:
            counts = [_count(findings, name, bug["rules"]) for findings in (before, after)]
            gone = "mended" in bug and counts[1] < counts[0]
            rows.append({"bug": name, "rules": bug["rules"], "named": counts[0] > 0, "gone": gone})
    missed = {row["bug"] for row in rows if not row["named"]}
    there = {path.partition("/")[0] for path in files}
    return {
        "bugs": rows,
        "others": len(bugs.keys() & there) - len(rows),
        "unexplained": sorted(missed ^ set(judged.get("missed", {})) | there ^ bugs.keys()),
    }


def _count(found: list[Found], bug: str, rules: list[str]) -> int:
    """How many findings of some rules the script of a bug has."""
    return sum(finding.path == f"{bug}/main.py" and finding.rule in rules for finding in found)


def _mended(text: bytes, line: int, function: str, other: str) -> bytes:
    """A script where a line calls another function with the first argument alone, or nothing but hands that on."""
    lines = text.decode().split("\n")
    call = rf"{re.escape(function)}\(((?:[^(),]|\([^()]*\))+)[^()]*\)"
    lines[line - 1], changes = re.subn(call, rf"{other}(\1)", lines[line - 1])
    if not changes:
        raise Missing(f"line {line} does not call {function}")
    return "\n".join(lines).encode()


def scripts_table(result: dict[str, Any]) -> Iterator[str]:
    """The bugs that a rule is about."""
    rows: list[tuple[str, ...]] = [("bug", "rules", "named", "gone when fixed")]
    for row in result["bugs"]:
        rules = ", ".join(row["rules"]) + ("" if _is_default(row["rules"]) else " (not by default)")
        rows.append((row["bug"], rules, _yes(row["named"]), _yes(row["gone"]) if row["named"] else "-"))
    return aligned(rows)


def _yes(answer: bool) -> str:
    return "yes" if answer else "no"


# -- what a peer expects of its own tests ---------------------------------------------------------------------


def torchfix(judged: dict[str, Any], texts: dict[str, bytes]) -> dict[str, Any]:
    """Which lines of TorchFix's tests a rule of the same id reports, or names beside what it reports.

    Each file is linted as a module and as a test, for some rules are of one alone.
    """
    sources = {path: text for path, text in texts.items() if re.search(r"/checker/\w+\.py$", path)}
    files = {f"{folder}/{path}": text for path, text in sources.items() for folder in ("modules", "tests")}
    rules = [rule.id for rule in catalogue().values() if any(code.startswith("TOR") for code in rule.also)]
    found = _linted(files, f"--select={','.join(rules)}")
    rows: dict[str, Counter[str]] = {}
    missed: list[str] = []
    for path in sorted(sources):
        text = texts[str(PurePosixPath(path).with_suffix(".txt"))].decode()
        expected = Counter((int(line), code) for line, code in _EXPECTED.findall(text))
        for (line, code), count in expected.items():
            at = [_reports(found, f"{folder}/{path}", line, code) for folder in ("modules", "tests")]
            reported = min(count, max(at))
            rows.setdefault(code, Counter()).update(lines=count, found=reported)
            missed += [f"{path}:{line} {code}"] * (count - reported)
    return {
        "ids": {code: dict(row) for code, row in sorted(rows.items())},
        "missed": missed,
        "unexplained": sorted(set(missed) ^ set(judged["missed"])),
    }


def _reports(found: list[Found], path: str, line: int, code: str) -> int:
    """How many findings of the rules with an id of TorchFix stand on a line, or name a place there."""
    rules = [rule.id for rule in catalogue().values() if code in rule.also]
    return sum(
        [finding.line, *finding.named].count(line)
        for finding in found
        if finding.path == path and finding.rule in rules
    )


def torchfix_table(result: dict[str, Any]) -> Iterator[str]:
    """The lines by id."""
    rows: list[tuple[str, ...]] = [("id", "rule", "lines", "reported")]
    for code, row in result["ids"].items():
        rules = " ".join(rule.id for rule in catalogue().values() if code in rule.also)
        rows.append((code, rules, str(row["lines"]), str(row["found"])))
    every = result["ids"].values()
    rows.append(("all", "", *(str(sum(row[key] for row in every)) for key in ("lines", "found"))))
    return aligned(rows)


SETS: dict[str, Callable[[dict[str, Any], dict[str, bytes]], dict[str, Any]]] = {
    "patterns": patterns,
    "scenarios": scenarios,
    "scripts": scripts,
    "torchfix": torchfix,
}
TABLES: dict[str, Callable[[dict[str, Any]], Iterator[str]]] = {
    "patterns": patterns_table,
    "scenarios": scenarios_table,
    "scripts": scripts_table,
    "torchfix": torchfix_table,
}


# -- reading and linting --------------------------------------------------------------------------------------


def _texts(repository: Path, folder: str) -> dict[str, bytes]:
    """The Python files and expectations below a folder of a repository, by their path in it; what is absent is left out."""
    listed = _git(repository, "ls-tree", "-r", "-z", "HEAD", f"{folder}/")
    texts = {}
    for entry in filter(None, listed.split(b"\0")):
        meta, _, path = entry.partition(b"\t")
        name = path.decode().removeprefix(f"{folder}/")
        if name.endswith((".py", ".txt", ".yaml")):
            ran = _ran(repository, "cat-file", "blob", meta.split()[2].decode())
            if ran.returncode == 0:
                texts[name] = ran.stdout
    return texts


def _git(repository: Path, *words: str) -> bytes:
    ran = _ran(repository, *words)
    if ran.returncode:
        raise Missing(f"git {words[0]} in {repository.name}: {ran.stderr.decode().strip()}")
    return ran.stdout


def _ran(repository: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", f"--git-dir={repository}", *words], check=False, capture_output=True)


def _linted(files: dict[str, bytes], *arguments: str) -> list[Found]:
    """What is found in files, each linted as one of a project that has them all.

    Raises:
        Missing: the linter fails.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        (folder / ".git").mkdir()  # the top of a project, to the linter
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(text)
        # What is linted must not be imported: -P, as files may be named like modules of the linter.
        command = [sys.executable, "-P", "-m", "ta_lint", "check", "--no-cache", "--isolated", "--exit-zero"]
        ran = subprocess.run(
            [*command, "--format=json", *arguments], cwd=folder, check=False, capture_output=True, text=True
        )
    if ran.returncode:
        raise Missing(f"ta-lint: {(ran.stderr.strip().splitlines() or ['it fails'])[-1]}")
    return [
        Found(
            finding["path"],
            finding["line"],
            finding["rule"],
            tuple(other["line"] for other in finding["related"] if other["path"] == finding["path"]),
        )
        for finding in json.loads(ran.stdout)
        if finding["suppression"] is None
    ]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Lint sets of bugs that others collected.")
    parser.add_argument("repositories", type=Path, help="folder of git directories, such as owner+name/")
    parser.add_argument("--set", choices=sorted(SETS), action="append", help="only this one; repeatable")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
