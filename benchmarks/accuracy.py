"""How often ta-lint is right, and how much it finds: `docs/accuracy.md`, made of judgements and measurements.

`python benchmarks/accuracy.py` writes the document; with `--check` it only says whether it is up to date.
"""

import argparse
import json
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import independent
from corpus import CORPORA
from fixes import NEAR, by_reason, by_rule, left, sums
from fixes import RESULTS as FIXES
from mutations import MUTATIONS
from tables import aligned

from ta_lint.core.catalogue import catalogue

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "accuracy.md"
JUDGEMENTS = ROOT / "tests" / "ecosystem" / "findings.toml"
HELD_OUT = ROOT / "tests" / "ecosystem" / "held-out.toml"
LIVE = ROOT / "tests" / "ecosystem" / "live.toml"
MUTATION = ROOT / "benchmarks" / "mutation.json"


def main() -> int:
    """Write the document, or compare it; returns the exit status."""
    parser = argparse.ArgumentParser(description="Make docs/accuracy.md.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit status 1 if it is stale")
    text = document()
    if not parser.parse_args().check:
        DOCUMENT.write_text(text, encoding="utf-8")
        return 0
    if DOCUMENT.is_file() and DOCUMENT.read_text(encoding="utf-8") == text:
        return 0
    print("accuracy.py: docs/accuracy.md is stale; run python benchmarks/accuracy.py", file=sys.stderr)
    return 1


def document() -> str:
    """The whole document, from what is written down in this repository."""
    judged = tomllib.loads(JUDGEMENTS.read_text(encoding="utf-8")).get("finding", [])
    mutation = json.loads(MUTATION.read_text(encoding="utf-8"))
    unseen = tomllib.loads(HELD_OUT.read_text(encoding="utf-8"))
    live = tomllib.loads(LIVE.read_text(encoding="utf-8"))["bug"]
    lines = [*_head(), *_corpora(mutation), *_precision(judged), *_held_out(unseen), *_live(live)]
    lines += [*_fixes(json.loads(FIXES.read_text(encoding="utf-8"))), *_independent()]
    lines += [*_recall(mutation), *_in_several_files(mutation), *_misses(mutation)]
    return "\n".join(lines) + "\n"


def percent(part: int, whole: int) -> str:
    """A share as a whole number, rounded down: 100 % is all of them."""
    return f"{100 * part // whole} %" if whole else "-"


def _head() -> Iterator[str]:
    yield "# Accuracy"
    yield ""
    yield "Made by `python benchmarks/accuracy.py` from `tests/ecosystem/`, `benchmarks/fixes.json`,"
    yield "`benchmarks/independent.json` and `benchmarks/mutation.json`. Do not edit it."
    yield ""
    yield "Two questions are asked of real code that nobody here wrote. Of what the linter finds, how much is true: every"
    yield "finding of a default rule is judged by reading the code around it. And of what is wrong, how much does it find:"
    yield "programs are linted as they were before commits that mended them, and healthy training loops are broken, one at a"
    yield "time, in the way that each loop rule is about."


def _corpora(mutation: dict[str, Any]) -> Iterator[str]:
    yield ""
    yield "## The code"
    yield ""
    rows: list[tuple[str, ...]] = [("release", "from", "training loops", "without a finding of a loop rule")]
    for name, corpus in CORPORA.items():
        counts = mutation["corpora"].get(f"{name}-{corpus.version}", {"loops": 0, "healthy": 0})
        release = f"{name} {corpus.version}, {corpus.topic}"
        rows.append((release, corpus.kind, str(counts["loops"]), str(counts["healthy"])))
    every = mutation["corpora"].values()
    loops, healthy = (sum(counts[key] for counts in every) for key in ("loops", "healthy"))
    rows.append(("all", "", str(loops), str(healthy)))
    yield from aligned(rows)


def _precision(judged: list[dict[str, Any]]) -> Iterator[str]:
    yield ""
    yield "## Findings"
    yield ""
    yield "The rules were tried on this code while they were written, and what was false was mended. So a precision of"
    yield "100 % says that nothing false is left here, and no more than that."
    yield ""
    counts: dict[str, Counter[str]] = {}
    for finding in judged:
        counts.setdefault(finding["rule"], Counter())[finding["verdict"]] += 1
    rows: list[tuple[str, ...]] = [("rule", "findings", "true", "false", "precision")]
    for rule in sorted(counts):
        rows.append(_precision_row(f"{rule} {catalogue()[rule].name}", counts[rule]))
    rows.append(_precision_row("all", sum(counts.values(), Counter())))
    yield from aligned(rows)
    silent = sorted(_default_rules() - counts.keys())
    if silent:
        yield ""
        yield f"Default rules that find nothing there: {', '.join(silent)}."


def _held_out(unseen: dict[str, Any]) -> Iterator[str]:
    yield ""
    yield "## Code that no rule had been tried on"
    yield ""
    yield f"{len(unseen['repositories'])} public repositories, {unseen['files']:,} files, {unseen['lines']:,} lines: what a"
    yield "first look found, and how much of what was false there is left since. Of frequent rules a sample is judged."
    yield ""
    yield from _look(unseen["rule"])
    second = unseen["second"]
    yield ""
    yield "### The second look"
    yield ""
    yield f"{len(second['repositories'])} more, {second['files']:,} files ({second['notebooks']} notebooks), {second['lines']:,}"
    yield "lines, when TA7xx to TA9xx and notebooks were new: what those families found, and the others in notebooks."
    yield ""
    yield from _look(second["rule"])
    third = unseen["third"]
    share = percent(third["worth"], third["above"])
    yield ""
    yield "### The third look"
    yield ""
    yield f"{len(third['repositories'])} more, {third['files']:,} files ({third['notebooks']} notebooks), {third['lines']:,}"
    yield "lines, when facts had begun to lead through the files of a project. Of the findings above note"
    yield f"{third['worth']} of {third['above']} ({share}) were worth a person's time; most of the others were of API that only the"
    yield f"documentation calls deprecated, and are notes since. Of the {third['above_later']} in the"
    yield f"{third['later']} repositories that were looked at after that, {third['worth_later']} are."
    yield ""
    yield from _look(third["rule"])
    yield from _fourth(unseen["fourth"])


def _fourth(fourth: dict[str, Any]) -> Iterator[str]:
    later = fourth["later"]
    yield ""
    yield "### The fourth look"
    yield ""
    yield f"{len(fourth['repositories'])} more, {fourth['files']:,} files ({fourth['notebooks']} notebooks), {fourth['lines']:,}"
    yield "lines, when the rules about losses, schedules, reinforcement learning, diffusion, evaluation and data were new: what is"
    yield "above note, 12 of the rules that find most, and of a new rule everything. Worth a person's time is what one would"
    yield "mend for its own sake: no mere warning of torch, and no file that a program wrote itself."
    yield ""
    rows: list[tuple[str, ...]] = [("", "judged", "true", "worth a person's time")]
    for name, counts in (
        ("new rules", fourth["new"]),
        ("new rules, without what was mended", fourth["new_mended"]),
        ("all above note", fourth["above"]),
        ("all above note, without what was mended", fourth["above_mended"]),
        (f"new rules, in {later['repositories']} of them looked at after that", later["new"]),
        (f"all above note, in these {later['repositories']}", later["above"]),
    ):
        judged, true, worth = counts
        rows.append((name, str(judged), *(f"{part} ({percent(part, judged)})" for part in (true, worth))))
    yield from aligned(rows)
    yield ""
    yield from _look(fourth["rule"])
    yield ""
    yield "False, and left:"
    yield ""
    for one in fourth["left"]:
        yield f"- {one['repository']} {one['path']}:{one['line']} {one['rule']}: {one['reason']}"


def _live(bugs: list[dict[str, Any]]) -> Iterator[str]:
    yield ""
    yield "## Live bugs"
    yield ""
    yield f"{len(bugs)} bugs of {len({bug['repository'] for bug in bugs})} repositories that the linter found, and that stood at their"
    yield "newest commit when they were looked at. None is a matter of style or of deprecated API."
    yield ""
    for bug in bugs:
        place = f"{bug['repository']} {bug['commit'][:10]} {bug['path']}:{bug['line']}"
        yield f"- {place} {bug['rule']}: {bug['reason']}"


def _look(judged: list[dict[str, Any]]) -> Iterator[str]:
    rows: list[tuple[str, ...]] = [
        ("rule", "findings", "judged", "true", "false", "precision", "false, left")
    ]
    total: Counter[str] = Counter()
    for row in judged:
        total.update({key: row[key] for key in ("findings", "true", "false", "left")})
        rows.append(_held_out_row(f"{row['id']} {catalogue()[row['id']].name}", row))
    yield from aligned([*rows, _held_out_row("all", total)])


def _held_out_row(name: str, row: Mapping[str, int]) -> tuple[str, ...]:
    true, false = row["true"], row["false"]
    judged = true + false
    cells = (row["findings"], judged, true, false, percent(true, judged), row["left"])
    return name, *map(str, cells)


def _precision_row(name: str, counts: Counter[str]) -> tuple[str, ...]:
    true, false = counts["true"], counts["false"]
    return name, str(true + false), str(true), str(false), percent(true, true + false)


def _default_rules() -> set[str]:
    return {
        rule for rule, page in catalogue().items() if page.default and "static" in page.observers
        and rule not in ("TA000", "TA001", "TA002")
    }  # fmt: skip


def _fixes(results: list[dict[str, Any]]) -> Iterator[str]:
    yield ""
    yield "## Bugs that were fixed"
    yield ""
    yield "Commits of public repositories that mend a bug, whatever the linter says of it. A fix counts as found if a finding"
    yield f"of its rule stands within {NEAR} lines of what it changes, in the statement that changes, or at the head of the loop,"
    yield "function or class around it; the finding goes if its file then has fewer. What is found elsewhere is in other lines or"
    yield "another file of the program, and the fix removes it."
    yield ""
    yield from by_rule(results)
    yield ""
    yield "The same by what kept the linter silent when the fixes were collected; `no` is what it found then, and what no rule was about."
    yield ""
    yield from by_reason(results)
    yield ""
    yield sums(results)
    yield ""
    yield "What is not named for a reason, each read by hand:"
    yield ""
    yield from left(results)


def _independent() -> Iterator[str]:
    results = json.loads(independent.RESULTS.read_text(encoding="utf-8"))
    judged = tomllib.loads(independent.JUDGEMENTS.read_text(encoding="utf-8"))
    yield ""
    yield "## Sets that others made"
    yield ""
    yield "Files that others wrote to show what their tool finds, or collected to study it, none of which is in this repository:"
    yield "`benchmarks/independent.toml` says which rule is about what, and why what is missed is missed."
    yield from _patterns(results["patterns"], judged["patterns"])
    yield from _scenarios(results["scenarios"], judged["scenarios"])
    yield from _scripts(results["scripts"], judged["scripts"])
    yield from _peer(results["torchfix"], judged["torchfix"])


def _patterns(result: dict[str, Any], judged: dict[str, Any]) -> Iterator[str]:
    yield ""
    yield "### Patterns"
    yield ""
    yield f"Of {judged['repository']} at {result['commit'][:10]}: {len(result['patterns'])} patterns, each with files that have"
    yield f"it and files that do not. {len(judged['rules'])} are what a rule is about, by their descriptions."
    yield ""
    yield from independent.patterns_table(result)
    yield ""
    false = [place for place in result["alarms"] if not judged["judged"][place]]
    yield f"Of all patterns, {result['negatives']} files are healthy, and {result['other']} may be. The default rules report"
    yield f"{len(result['alarms'])} lines of them, of which {len(false)} {'is' if len(false) == 1 else 'are'} false:"
    yield ""
    yield from (f"- {place}" for place in false)
    yield ""
    yield "What is not named:"
    yield ""
    yield from _reasons(result, judged)


def _reasons(result: dict[str, Any], judged: dict[str, Any]) -> Iterator[str]:
    """Why each miss is one, once."""
    return (f"- {place}: {judged['missed'][place]}" for place in dict.fromkeys(result["missed"]))


def _scenarios(result: dict[str, Any], judged: dict[str, Any]) -> Iterator[str]:
    yield ""
    yield "### Whole scripts with several patterns"
    yield ""
    yield f"Of {judged['repository']} at {result['commit'][:10]} as well: {result['scripts']} scripts that a language model wrote with"
    yield "two or three of the patterns in each, those of default rules counted here."
    yield ""
    yield from independent.scenarios_table(result)
    yield ""
    yield from _reasons(result, judged)


def _scripts(result: dict[str, Any], judged: dict[str, Any]) -> Iterator[str]:
    yield ""
    yield "### Scripts with one bug"
    yield ""
    yield f"Of {judged['repository']} at {result['commit'][:10]}: {len(result['bugs']) + result['others']} scripts that use"
    yield f"torch, {result['others']} of them with a bug that no rule is about, such as shapes that do not fit. The set holds no"
    yield "mended scripts: the line is changed as the answer to the question says."
    yield ""
    yield from independent.scripts_table(result)
    yield ""
    missed = [row["bug"] for row in result["bugs"] if not row["named"]]
    yield from (f"- {bug}, {judged['bugs'][bug]['cause']}: {judged['missed'][bug]}" for bug in missed)


def _peer(result: dict[str, Any], judged: dict[str, Any]) -> Iterator[str]:
    yield ""
    yield "### The tests of TorchFix"
    yield ""
    yield f"The lines that {judged['repository']} at {result['commit'][:10]} expects its checkers to report, and whether a rule"
    yield "with the same id reports them, or names them beside what it reports, as the uses of what is imported by name."
    yield ""
    yield from independent.torchfix_table(result)
    yield ""
    yield from _reasons(result, judged)


def _recall(mutation: dict[str, Any]) -> Iterator[str]:
    yield ""
    yield "## Broken loops"
    yield ""
    yield "Each mutation makes one bug, by what users write and not by what the checks look for. A mutant counts as found if"
    yield "its rule reports something that it does not report in the file as it is. Loops in tests are not broken: several"
    yield "rules leave tests alone, as a seed that is set again and again is right there."
    yield ""
    rows: list[tuple[str, ...]] = [("rule", "loops", "mutants", "found", "recall")]
    tallies: dict[str, dict[str, Any]] = mutation["rules"]
    tried = {rule: tally for rule, tally in tallies.items() if tally["mutants"]}
    for rule, tally in tried.items():
        name = f"{rule} {catalogue()[rule].name}{'' if catalogue()[rule].default else ' (not by default)'}"
        rows.append((name, str(tally["originals"]), *_recall_cells([tally])))
    rows.append(("all", "", *_recall_cells(list(tried.values()))))
    default = [tally for rule, tally in tried.items() if catalogue()[rule].default]
    rows.append(("default rules", "", *_recall_cells(default)))
    yield from aligned(rows)
    yield ""
    yield "What is done to a loop:"
    yield ""
    for rule in tried:
        yield f"- {rule}: {MUTATIONS[rule].__doc__}"
    untried = [rule for rule, tally in tallies.items() if not tally["mutants"]]
    if untried:
        yield ""
        yield f"No loop there has what these would break: {', '.join(untried)}."
    yield ""
    yield "### Findings on loops as they are"
    yield ""
    alarms = [
        (rule, verdict, place)
        for rule, tally in tallies.items()
        for verdict, places in tally["alarms"].items()
        for place in places
    ]
    if not alarms:
        yield "None."
    for rule, verdict, place in alarms:
        yield f"- {rule}, {verdict}: {place}"


def _in_several_files(mutation: dict[str, Any]) -> Iterator[str]:
    yield ""
    yield "### In several files"
    yield ""
    yield "Each of these programs that can be split is split as people write them (`benchmarks/split.py`): models, data, engine"
    yield "and script in a file each, as it is and with each mutation. What is missed there is found in one file."
    yield ""
    rows: list[tuple[str, ...]] = [("rule", "mutants", "found", "recall", "missed in several files alone")]
    tried = {rule: tally["several"] for rule, tally in mutation["rules"].items()}
    for rule, tally in tried.items():
        if tally["mutants"]:
            name = f"{rule} {catalogue()[rule].name}"
            rows.append((name, *_recall_cells([tally]), str(len(tally["misses"]))))
    missed = sum(len(tally["misses"]) for tally in tried.values())
    rows.append(("all", *_recall_cells(list(tried.values())), str(missed)))
    yield from aligned(rows)
    yield ""
    alarms = [(rule, place) for rule, tally in tried.items() for place in tally["alarms"]]
    yield f"Findings on programs as they are that only splitting brings: {len(alarms)}."
    if alarms:
        yield ""
    for rule, place in alarms:
        yield f"- {rule}: {place}"


def _recall_cells(tallies: list[dict[str, Any]]) -> tuple[str, str, str]:
    mutants, found = (sum(tally[key] for tally in tallies) for key in ("mutants", "found"))
    return str(mutants), str(found), percent(found, mutants)


def _misses(mutation: dict[str, Any]) -> Iterator[str]:
    yield ""
    yield "### What is missed"
    yield ""
    causes: dict[str, list[tuple[str, list[str]]]] = {}
    for rule, tally in mutation["rules"].items():
        for cause, places in tally["misses"].items():
            causes.setdefault(cause, []).append((rule, places))
    if not causes:
        yield "Nothing."
    by_size = sorted(causes.items(), key=lambda item: (-sum(len(places) for _, places in item[1]), item[0]))
    for number, (cause, rules) in enumerate(by_size):
        if number:
            yield ""
        yield f"{cause[:1].upper()}{cause[1:]}, {sum(len(places) for _, places in rules)}:"
        yield ""
        for rule, places in rules:
            counts = Counter(places)
            named = (place if count == 1 else f"{place} ({count})" for place, count in sorted(counts.items()))
            yield f"- {rule}: {', '.join(named)}"


if __name__ == "__main__":
    raise SystemExit(main())
