"""How often ta-lint is right, and how much it finds: `docs/accuracy.md`, made of judgements and measurements.

`python benchmarks/accuracy.py` writes the document; with `--check` it only says whether it is up to date.
"""

import argparse
import csv
import json
import sys
import tomllib
from collections import Counter
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import Any

import independent
from corpus import CORPORA
from fixes import NEAR, by_reason, by_rule, left, sums
from fixes import RESULTS as FIXES
from mutations import MUTATIONS
from tables import aligned

from ta_lint.core.catalogue import catalogue
from ta_lint.core.finding import Severity

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "accuracy.md"
JUDGEMENTS = ROOT / "tests" / "ecosystem" / "findings.toml"
HELD_OUT = ROOT / "tests" / "ecosystem" / "held-out.toml"
JUDGED = ROOT / "tests" / "ecosystem"
UNSEEN = ROOT / "tests" / "ecosystem" / "sets-that-stay-unseen.toml"
FRAMEWORKS = ROOT / "tests" / "ecosystem" / "frameworks.toml"
LIVE = ROOT / "tests" / "ecosystem" / "live.toml"
MUTATION = ROOT / "benchmarks" / "mutation.json"
WORTH = 80
"""How much percent of the findings above note should be worth a person's time."""


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
    lines = [
        *_head(),
        *_stay_unseen(tomllib.loads(UNSEEN.read_text(encoding="utf-8"))["set"]),
        *_from_paragraphs(
            *map(judgements, ("from_paragraphs", "from_paragraphs_again", "from_paragraphs_in_files"))
        ),
    ]
    lines += [*_corpora(mutation), *_precision(judged), *_held_out(unseen)]
    lines += _frameworks(tomllib.loads(FRAMEWORKS.read_text(encoding="utf-8")))
    fixes = json.loads(FIXES.read_text(encoding="utf-8"))
    lines += _live(tomllib.loads(LIVE.read_text(encoding="utf-8"))["bug"])
    lines += [*_signal(unseen, fixes), *_fixes(fixes), *_independent()]
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
    yield "This page answers six questions about real code that nobody here wrote."
    yield ""
    yield "| question | method | section |"
    yield "|---|---|---|"
    yield "| How much is found in code that nobody tried? | cases that stay out of this repository | [Sets that stay unseen](#sets-that-stay-unseen) |"
    yield "| Are findings true? | read the code around every finding | [Findings](#findings) |"
    yield "| Are they true in new code? | the same in unseen repositories | [Unseen code](#unseen-code) |"
    yield "| Are they worth a person's time? | the same, by severity | [Signal](#signal) |"
    yield "| Are real bugs found? | lint before and after a fix | [Bugs that were fixed](#bugs-that-were-fixed) |"
    yield "| Are planted bugs found? | break healthy training loops | [Broken loops](#broken-loops) |"


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
    yield "Every finding of a default rule in the releases above, judged by reading the code around it. The rules were developed on"
    yield "this code and false findings were repaired, so 100 % means only that no false finding is left here. The next section"
    yield "has the figures for unseen code."
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
        yield f"{len(silent)} default rules find nothing here: {', '.join(silent)}."


def _held_out(unseen: dict[str, Any]) -> Iterator[str]:
    yield ""
    yield "## Unseen code"
    yield ""
    yield "Public repositories on which no rule had been tried. Every finding of a default rule is judged; of frequent rules, a"
    yield "sample. False findings were then repaired: the last column counts those that are left."
    yield ""
    yield "### The first look"
    yield ""
    yield f"{len(unseen['repositories'])} repositories, {unseen['files']:,} files, {unseen['lines']:,} lines."
    yield ""
    yield from _look(unseen["rule"])
    second = unseen["second"]
    yield ""
    yield "### The second look"
    yield ""
    yield f"{len(second['repositories'])} more, {second['files']:,} files ({second['notebooks']} notebooks), {second['lines']:,}"
    yield "lines, when notebooks and the rules TA7xx to TA9xx were new. In Python files only those rules are counted."
    yield ""
    yield from _look(second["rule"])
    third = unseen["third"]
    yield ""
    yield "### The third look"
    yield ""
    yield f"{len(third['repositories'])} more, {third['files']:,} files ({third['notebooks']} notebooks), {third['lines']:,}"
    yield "lines, when the linter had begun to follow imports through a project."
    yield ""
    yield from _look(third["rule"])
    yield from _fourth(unseen["fourth"])
    yield from _fifth(unseen["fifth"])
    yield from _sixth(unseen["sixth"])
    yield from _seventh(judgements("seventh"))
    yield from _eighth(judgements("eighth"), judgements("eighth_bugs"))
    yield from _ninth(judgements("ninth"), judgements("ninth_bugs"))
    yield from _tenth(judgements("tenth"), judgements("tenth_bugs"))
    yield from _eleventh(judgements("eleventh"), judgements("eleventh_bugs"))
    yield from _twelfth(judgements("twelfth"))
    yield from _thirteenth(judgements("thirteenth"), judgements("thirteenth_bugs"))
    yield from _fourteenth(judgements("fourteenth"), judgements("fourteenth_bugs"))
    yield from _fifteenth(judgements("fifteenth"), judgements("fifteenth_bugs"))


def _fourth(fourth: dict[str, Any]) -> Iterator[str]:
    later = fourth["later"]
    yield ""
    yield "### The fourth look"
    yield ""
    yield f"{len(fourth['repositories'])} more, {fourth['files']:,} files ({fourth['notebooks']} notebooks), {fourth['lines']:,}"
    yield "lines, when the rules about losses, schedules, reinforcement learning, diffusion, evaluation and data were new. Every"
    yield "finding above note and every finding of a new rule is judged; of rules that find most, a sample of 12. Here a finding is"
    yield "worth a person's time only if the bug itself is worth a fix: a warning that torch prints anyway is not."
    yield ""
    rows: list[tuple[str, ...]] = [("", "judged", "true", "worth a person's time")]
    for name, counts in (
        ("new rules", fourth["new"]),
        ("new rules, without findings repaired since", fourth["new_mended"]),
        ("all above note", fourth["above"]),
        ("all above note, without findings repaired since", fourth["above_mended"]),
        (f"new rules, the last {later['repositories']} repositories, linted after the repairs", later["new"]),
        (f"all above note, the same {later['repositories']} repositories", later["above"]),
    ):
        judged, true, worth = counts
        rows.append((name, str(judged), *(f"{part} ({percent(part, judged)})" for part in (true, worth))))
    yield from aligned(rows)
    yield ""
    yield from _look(fourth["rule"])
    yield ""
    yield "False, and left:"
    yield ""
    yield from _left(fourth["left"])


def _fifth(fifth: dict[str, Any]) -> Iterator[str]:
    yield ""
    yield "### The fifth look"
    yield ""
    yield f"{len(fifth['repositories'])} more, {fifth['files']:,} files ({fifth['notebooks']} notebooks), {fifth['lines']:,}"
    yield "lines, in parts: what one taught was repaired before the next was linted, once. New rules are those of the fourth look, with"
    yield "their notes; judged are all findings of theirs and all above note, of a rule with more than 15 in a part 15 at random."
    yield ""
    rows: list[tuple[str, ...]] = [("", "repositories", "judged", "true", "worth a person's time")]
    for number, part in enumerate(fifth["part"], 1):
        for name in ("new", "new_above", "above"):
            judged, true, worth = part[name]
            what = {"new": "new rules", "new_above": "new rules, above note", "above": "all above note"}[name]
            shares = (f"{share} ({percent(share, judged)})" for share in (true, worth))
            rows.append((f"part {number}, {what}", str(part["repositories"]), str(judged), *shares))
    yield from aligned(rows)
    yield ""
    yield "Findings that were hardly ever worth a person's time in this look and those before are notes since:"
    yield ""
    rows = [("rule", "judged", "worth it", "now a note")]
    for one in fifth["lowered"]:
        rows.append((_named(one["id"]), str(one["judged"]), str(one["worth"]), one["what"]))
    yield from aligned(rows)
    yield ""
    yield from _look(fifth["rule"])
    yield ""
    yield "False, and left:"
    yield ""
    yield from _left(fifth["left"])


def _sixth(sixth: dict[str, Any]) -> Iterator[str]:
    frameworks = tomllib.loads(FRAMEWORKS.read_text(encoding="utf-8"))
    looks = [frameworks[name] for name in sixth["of_frameworks"]]
    files, notebooks, lines = (sum(look[key] for look in looks) for key in ("files", "notebooks", "lines"))
    yield ""
    yield "### The sixth look"
    yield ""
    yield f"The {sum(len(look['repositories']) for look in looks)} repositories of the fourth to sixth look at frameworks (below), {files:,} files ({notebooks} notebooks), {lines:,}"
    yield "lines. No rule had been tried there, except those about language models and frameworks, which are left out here. All findings"
    yield "above note are judged; if a rule has more than 15, a random sample of 15."
    yield ""
    yield from _look(sixth["rule"])
    yield ""
    yield "False, and left:"
    yield ""
    yield from _left(sixth["left"])


def judgements(look: str) -> list[dict[str, str]]:
    """The judgements of a look since the seventh: `true` and `worth` are 1 or 0; of notes, `worth` is empty."""
    with (JUDGED / f"{look}.tsv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def latest() -> list[dict[str, str]]:
    """The judgements of the latest look, which the README quotes."""
    return judgements("fifteenth")


def above_note(judged: list[dict[str, str]]) -> tuple[int, int, int]:
    """How many errors and warnings of that look were judged, how many of them are true, and how many worth a person's time."""
    above = [one for one in judged if one["severity"] != "note"]
    true = [one for one in above if one["true"] == "1"]
    return len(above), len(true), sum(one["worth"] == "1" for one in true)


def _seventh(judged: list[dict[str, str]]) -> Iterator[str]:
    count, true, worth = above_note(judged)
    notes = [one["true"] for one in judged if one["severity"] == "note"]
    yield ""
    yield "### The seventh look"
    yield ""
    yield "89 more, drawn and judged by someone who wrote no rule. They have 196 errors and warnings. Of these, 127 were judged, with"
    yield f"{len(notes)} notes. **{true} of the {count} are true ({percent(true, count)}), and {worth} are worth a person's time ({percent(worth, count)})**; {notes.count('1')} of"
    yield f"{len(notes)} notes are true. What the look taught was repaired after it, so no figure for the linter since then can come from it."
    yield from _judged(judged)


def _eighth(judged: list[dict[str, str]], bugs: list[dict[str, str]]) -> Iterator[str]:
    """The first look for which the bugs were written down before the linter ran."""
    yield ""
    yield "### The eighth look"
    yield ""
    yield "49 more. Someone who wrote no rule drew 30 training scripts of 23 of them, read them line by line and wrote down the bugs **before**"
    yield f"the linter ran. {_named_of(bugs)}"
    yield "17 of those that it does not name are left out on purpose, as their pages say (TA700 where torch is not pinned,"
    yield "TA613 in rollouts, TA332). The linter was that of commit 82168e6, before fourteen more rules moved to the dry run."
    yield ""
    yield f"{_worth_of(judged)} 60 more are true and not worth it:"
    yield "one missing star import, twelve times in each of five copies of a script. The false ones of TA602 and TA611 are repaired since."
    yield from _judged(judged)


def _ninth(judged: list[dict[str, str]], bugs: list[dict[str, str]]) -> Iterator[str]:
    """The second one."""
    yield ""
    yield "### The ninth look"
    yield ""
    yield "51 more, and another reader who wrote no rule. The bugs of 30 scripts of 21 of these repositories were written down and sealed before"
    yield f"the linter ran. {_named_of(bugs)}"
    yield "About ten of those that it does not name are left out on purpose. TA700, TA702 and TA401 are not counted as bugs here. The linter was that"
    yield "of the day, 2026-11-29, with 37 rules on the dry run."
    yield ""
    yield f"{_worth_of(judged)} Of TA910 and TA913, 15 were drawn of"
    yield "36 and 16; without TA913, 32 of 42 are true and 17 worth it."
    yield from _judged(judged)


def _tenth(judged: list[dict[str, str]], bugs: list[dict[str, str]]) -> Iterator[str]:
    """The third one."""
    yield ""
    yield "### The tenth look"
    yield ""
    yield "52 more, and a third reader. The bugs of 30 scripts of 21 of them were written down and sealed before the linter ran."
    yield _named_of(bugs)
    yield "About twenty of those that it does not name are left out on purpose, as their pages say (games of a policy and samplers, TA612 and TA613;"
    yield "removed arguments, TA900), and about nine are within reach. Nine of the eleven are named by a note. The linter was that of 2026-11-29,"
    yield "with 51 rules on the dry run."
    yield ""
    yield f"{_worth_of(judged)} All were judged, as no rule had more than 15."
    yield "Without TA912 and TA913, 40 of 43 are true and 22 worth it."
    yield from _judged(judged)


def _eleventh(judged: list[dict[str, str]], bugs: list[dict[str, str]]) -> Iterator[str]:
    """The fourth one."""
    later = {"TA703", "TA906", "TA910", "TA912"}
    kinds = [one["named"] for one in bugs if one["named"] != "-" and one["rule"] not in later]
    yield ""
    yield "### The eleventh look"
    yield ""
    yield "55 more, and a fourth reader. The bugs of 27 scripts of 23 of them were written down and sealed before the linter ran. Three more"
    yield "scripts were read and are left out, since others had looked at their repositories while they taught the dry run."
    yield _named_of(bugs)
    yield f"Without rules about old code and names (TA703, TA906, TA910, TA912), it names {kinds.count('1')} of {len(kinds)}. One script of before torch 0.4"
    yield "has 14 of the 60. The linter was that of 2026-11-29, with 56 rules on the dry run. A fifth person judged the findings."
    yield ""
    yield f"{_worth_of(judged)} All were judged."
    yield "Of those that are true and not worth it, most are in code that nothing runs: names that are not defined (TA910) and"
    yield "removed arguments (TA900). The false ones of TA310 (a sampler that is one of two), TA425 and TA509, and one of TA623, are repaired since."
    yield from _judged(judged)


def _twelfth(judged: list[dict[str, str]]) -> Iterator[str]:
    """The fifth one, of findings alone."""
    yield ""
    yield "### The twelfth look"
    yield ""
    yield "82 more, and a sixth person, who judged the findings and wrote down no bugs: it does not show what is missed. The linter"
    yield "was that of the morning of 2026-11-30, with 56 rules on the dry run. It found something in 32 of them."
    yield ""
    yield f"{_worth_of(judged)} All were judged."
    yield "Of those that are true and not worth it, more than half are in code that nobody runs, such as notebook cells and copies."
    yield "The false ones of TA416, TA505, TA621 and TA630, and one of TA612, are repaired since. TA540 is right about the flag, but what it advises"
    yield "is wrong where a buffer runs over several episodes."
    yield from _judged(judged)


def _thirteenth(judged: list[dict[str, str]], bugs: list[dict[str, str]]) -> Iterator[str]:
    """The sixth one, with findings and bugs."""
    groups = {(one["repo"], one["rule"]): False for one in judged}
    for one in judged:
        groups[one["repo"], one["rule"]] |= one["true"] == "1"
    yield ""
    yield "### The thirteenth look"
    yield ""
    yield "60 more, and two more readers, who wrote no rule. The bugs of 30 scripts of 30 of them were written down and sealed before the linter ran."
    yield _named_of(bugs)
    yield "Eight of those that it does not name are in two files that Python cannot parse. Three more are in a repository whose dry run broke off with a"
    yield "mistake of the linter, repaired since (TA000). Eight are at the edge of what the page of their rule says. The linter was that of 2026-11-30,"
    yield "with 68 rules on the dry run. The share named is below that of the eleventh look, and above the 22 to 23 % of the eighth to tenth."
    yield ""
    yield f"{_worth_of(judged)} All were judged."
    yield f"Eleven of the false ones are one mistake in eleven copies of a function (TA704): counted once for each rule in a repository, {sum(groups.values())} of {len(groups)} are"
    yield "true. Among the true ones not worth it, 24 are names that are not defined in code that nothing runs (TA910)."
    yield from _judged(judged)


def _fourteenth(judged: list[dict[str, str]], bugs: list[dict[str, str]]) -> Iterator[str]:
    """The seventh one, by two more readers, after the repairs of the sixth."""
    old = [one for one in judged if one["repo"] == "violet-zct/pytorch_NMT"]
    kept = [one for one in judged if one not in old]
    true, worth = (sum(one[key] == "1" for one in kept) for key in ("true", "worth"))
    missed = Counter(one["rule"] for one in bugs if one["named"] == "0")
    yield ""
    yield "### The fourteenth look"
    yield ""
    yield "60 more, and two more readers, who wrote no rule. The bugs of 30 scripts of 30 of them were written down and sealed before the linter ran."
    yield _named_of(bugs)
    yield "The linter was that of 2026-12-01, with 69 rules on the dry run, after what the thirteenth look had taught. It"
    yield f"misses {missed['TA206']} losses that are kept with their graph (TA206), most through a dictionary, a tuple or a meter, {missed['TA704']} checkpoints (TA704), some"
    yield f"put together in one file and read in another, and {missed['TA910']} names in files that TA910 passes over."
    yield ""
    yield f"{_worth_of(judged)} All were judged."
    yield f"{len(old)} of them are in one program of Python 2; without it {true} of {len(kept)} are true and {worth} worth it."
    yield from _judged(judged)


def _fifteenth(judged: list[dict[str, str]], bugs: list[dict[str, str]]) -> Iterator[str]:
    """The eighth one with bugs, after the repairs of the fourteenth; other people judged the findings."""
    names = [one for one in judged if one["rule"] == "TA910"]
    groups = {(one["repo"], one["rule"]): one["true"] for one in judged}
    missed = Counter(one["rule"] for one in bugs if one["named"] == "0")
    yield ""
    yield "### The fifteenth look"
    yield ""
    yield "60 more, and four people who wrote no rule: two read 30 scripts of 30 of them, whose bugs were sealed before the linter ran, and two judged"
    yield "the findings."
    yield _named_of(bugs)
    yield "The linter was that of 2026-12-01, the first in which the dry run of a script goes on for what it imports. It misses"
    yield f"{missed['TA704']} checkpoints (TA704), most in programs that never resume, which the rule asks for, and {missed['TA612'] + missed['TA613']} evaluations (TA612, TA613)."
    yield ""
    yield f"{_worth_of(judged)} All were judged."
    yield f"{len(names)} are names that are not defined (TA910), all true, {sum(one['worth'] == '1' for one in names)} worth it: the others are in code that nothing runs. Nine false ones are one program"
    yield f"in nine copies (TA704): counted once for each rule in a repository, {sum(one == '1' for one in groups.values())} of {len(groups)} are true."
    yield from _judged(judged)


def _named_of(bugs: list[dict[str, str]]) -> str:
    """How many bugs there are, and how many of those that a default rule of the linter is about it names."""
    asked = [one["named"] for one in bugs if one["named"] != "-"]
    certain = [one["named"] for one in bugs if one["named"] != "-" and one["confidence"] == "certain"]
    none = sum(one["rule"] == "none" for one in bugs)
    named, sure = asked.count("1"), certain.count("1")
    return (
        f"There are {len(bugs)}. No rule is about {none} of these, and a default rule of the linter about {len(asked)}.\n"
        f"**It names {named} of the {len(asked)} ({percent(named, len(asked))})**, "
        f"of the {len(certain)} that the reader was certain of {sure} ({percent(sure, len(certain))})."
    )


def _worth_of(judged: list[dict[str, str]]) -> str:
    count, true, worth = above_note(judged)
    return (
        f"**{true} of its {count} errors and warnings are true ({percent(true, count)}), "
        f"and {worth} are worth a person's time ({percent(worth, count)})**."
    )


def _judged(judged: list[dict[str, str]]) -> Iterator[str]:
    yield ""
    rows: list[tuple[str, ...]] = [("rule", "severity then", "judged", "true", "worth it")]
    for rule, severity in sorted({(one["rule"], one["severity"]) for one in judged}):
        found = [one for one in judged if (one["rule"], one["severity"]) == (rule, severity)]
        true_ones, worth_ones = (str(sum(one[key] == "1" for one in found)) for key in ("true", "worth"))
        rows.append(
            (_named(rule), severity, str(len(found)), true_ones, "-" if severity == "note" else worth_ones)
        )
    yield from aligned(rows)
    yield ""
    yield "False:"
    yield ""
    for one in judged:
        if one["true"] == "0":
            yield f"- {one['repo']} {one['path']}:{one['line']} {one['rule']}: {one['reason']}"


def _stay_unseen(sets: list[dict[str, Any]]) -> Iterator[str]:
    yield ""
    yield "## Sets that stay unseen"
    yield ""
    yield "Cases that people wrote or collected before they looked at a check, and that are kept out of this repository, so that nothing"
    yield "is ever repaired by them. **Only these figures say how much the tool finds in code that it has not met.** The last column is the figure of"
    yield "the like set that was at hand while the rules were written, and says how well that set was learned."
    yield ""
    rows: list[tuple[str, ...]] = [("what", "who was asked", "on", "found", "at hand")]
    for one in sets:
        hand = f"{one['at_hand']}, {one['where']}" if "at_hand" in one else "-"
        rows.append((one["what"], one["asked"], str(one["on"]), one["share"], hand))
    yield from aligned(rows)


def _from_paragraphs(
    first: list[dict[str, str]], again: list[dict[str, str]], in_files: list[dict[str, str]]
) -> Iterator[str]:
    """The share of programs that were named in each round, by the first digit of the rule."""
    yield ""
    yield "### Programs from a paragraph"
    yield ""
    yield "People who had not seen the linter wrote programs with one bug for each default rule from the first paragraph of its page alone, and"
    yield "programs that look like it and are right. This is what the linter said when it first saw them. What it missed was then used to repair"
    yield "it, so no later figure of these programs says anything."
    yield ""
    yield f"- On 2026-11-30, four people: **it named {_named_in(first)}**."
    yield "- On 2026-12-01, three others, with two programs a rule: one plain, and one whose bug is behind a helper, an attribute or a dictionary, for the"
    yield f"  rules whose findings are errors or warnings: **it named {_named_in(again)}**:"
    yield f"  {_part_of([one for one in again if one['program'] == 'bad1'])} of the plain ones, and {_part_of([one for one in again if one['program'] == 'bad2'])} of the others."
    yield "- On 2026-12-01, three others again, with projects of four to seven files in which the bug is spread over at least two of them:"
    yield f"  **it named {_named_in(in_files)}**. Nothing that it missed has been repaired since."
    yield ""
    rows: list[tuple[str, ...]] = [("rules", "first", "share", "again", "share", "in files", "share")]
    for family in sorted({one["rule"][:3] for one in first}):
        cells: list[str] = []
        for programs in (first, again, in_files):
            found = [one["found"] == "1" for one in _bad(programs) if one["rule"].startswith(family)]
            cells += [f"{sum(found)} of {len(found)}", percent(sum(found), len(found))]
        rows.append((f"{family}xx", *cells))
    yield from aligned(rows)


def _bad(programs: list[dict[str, str]]) -> list[dict[str, str]]:
    return [one for one in programs if not one["program"].startswith("good")]


def _named_in(programs: list[dict[str, str]]) -> str:
    good = [one for one in programs if one["program"].startswith("good")]
    alarms = sum(one["found"] == "1" for one in good)
    return f"{_part_of(_bad(programs))}, and alarmed on {alarms} of {len(good)} that are right"


def _part_of(programs: list[dict[str, str]]) -> str:
    named = sum(one["found"] == "1" for one in programs)
    return f"{named} of {len(programs)} ({percent(named, len(programs))})"


def _left(left: list[dict[str, Any]]) -> Iterator[str]:
    for one in left:
        yield f"- {one['repository']} {one['path']}:{one['line']} {one['rule']}: {one['reason']}"


def _live(bugs: list[dict[str, Any]]) -> Iterator[str]:
    yield ""
    yield "## Live bugs"
    yield ""
    yield f"{len(bugs)} bugs that the linter found at the newest commit of {len({bug['repository'] for bug in bugs})} repositories. None is a matter of style"
    yield "or of deprecated API."
    yield ""
    for bug in bugs:
        place = f"{bug['repository']} {bug['commit'][:10]} {bug['path']}:{bug['line']}"
        yield f"- {place} {bug['rule']}: {bug['reason']}"


def _signal(unseen: dict[str, Any], fixes: list[dict[str, Any]]) -> Iterator[str]:
    """How many findings above note are worth a person's time, by the severities that the rules have today."""
    yield ""
    yield "## Signal"
    yield ""
    yield "A finding is worth a person's time if the reader would change the code because of it. Errors and warnings should be; the"
    yield f"bar is {WORTH} %. Findings were judged once, and this section is computed with the severities of the rules today. A"
    yield "finding that a check itself makes a note counts as its rule does, so the shares are a lower bound. The first two looks"
    yield "were judged as true or false only. Severities of rules were changed because of these looks, and false findings repaired, so"
    yield "the rows are no measure of unseen code, and no sum over them would be one."
    yield ""
    looks = [("first", unseen), *((name, look) for name, look in unseen.items() if isinstance(look, dict))]
    rows: list[tuple[str, ...]] = [("look", "judged", "above note", "true", "worth it", "share", "bar")]
    looks += [
        (name, {"rule": _rows(judgements(name))})
        for name in (
            "seventh",
            "eighth",
            "ninth",
            "tenth",
            "eleventh",
            "twelfth",
            "thirteenth",
            "fourteenth",
            "fifteenth",
        )
    ]
    rows += [(name, *_worth_cells(look["rule"])) for name, look in looks]
    weighed = [row for _, look in looks for row in look["rule"] if "minor" in row]
    yield from aligned(rows)
    third = unseen["third"]
    yield ""
    yield f"In the last {third['later']} repositories of the third look, seen after the others were worked through, the figure is"
    yield f"{third['worth_later']} of {third['above_later']}."
    judged: Counter[str] = Counter()
    worth: Counter[str] = Counter()
    for row in weighed:
        judged[row["id"]] += row["true"] + row["false"]
        worth[row["id"]] += row["true"] - row["minor"]
    yield ""
    yield "Errors and warnings that are mostly not worth it:"
    yield ""
    rows = [("rule", "severity", "judged", "worth it")]
    for rule in sorted(judged):
        if not _is_note(rule) and 2 * worth[rule] < judged[rule]:
            severity = catalogue()[rule].severity.value
            rows.append((_named(rule), severity, str(judged[rule]), str(worth[rule])))
    yield from aligned(rows)
    yield ""
    yield "Notes that found something worth it, or that are about a bug that people fixed (next section):"
    yield ""
    fixed = Counter(fix["rule"] for fix in fixes if fix["rule"] in catalogue())
    rows = [("rule", "judged", "worth it", "fixed bugs")]
    for rule in sorted(judged.keys() | fixed):
        if _is_note(rule) and (worth[rule] or fixed[rule]):
            rows.append((_named(rule), str(judged[rule]), str(worth[rule]), str(fixed[rule])))
    yield from aligned(rows)


def _rows(judged: list[dict[str, str]]) -> list[dict[str, Any]]:
    """The errors and warnings of a look by rule, as the looks before the seventh have theirs."""
    rows: dict[str, dict[str, Any]] = {}
    for one in judged:
        if one["severity"] != "note":
            row = rows.setdefault(one["rule"], {"id": one["rule"], "true": 0, "false": 0, "minor": 0})
            row["true" if one["true"] == "1" else "false"] += 1
            row["minor"] += one["true"] == "1" and one["worth"] == "0"
    return list(rows.values())


def _worth_cells(judged: list[dict[str, Any]]) -> tuple[str, ...]:
    """What a look says of its findings above note, and whether that reaches the bar."""
    above = [row for row in judged if not _is_note(row["id"])]
    every, count = (sum(row["true"] + row["false"] for row in rows) for rows in (judged, above))
    true = sum(row["true"] for row in above)
    if not any("minor" in row for row in judged):
        return str(every), str(count), str(true), "not judged", "-", "-"
    worth = true - sum(row["minor"] for row in above)
    reached = "reached" if 100 * worth >= WORTH * count else "missed"
    return str(every), str(count), str(true), str(worth), percent(worth, count), reached


def _is_note(rule: str) -> bool:
    return catalogue()[rule].severity is Severity.NOTE


def _named(rule: str) -> str:
    return f"{rule} {catalogue()[rule].name}{'' if catalogue()[rule].default else ' (not by default)'}"


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


def _frameworks(look: dict[str, Any]) -> Iterator[str]:
    judged, shipped = look["finding"], look["shipped"]
    tuning = {name.partition("@")[0] for name in look["tuning"]}
    count = len(look["tuning"]) + len(look["others"])
    yield ""
    yield "### The look at frameworks"
    yield ""
    yield f"{count} more; {len(tuning)} of them fine-tune language models with Transformers, TRL, PEFT, Accelerate or Lightning, at the"
    yield f"commits that `tests/ecosystem/frameworks.toml` names: {look['files']:,} files ({look['notebooks']:,} notebooks), {look['lines']:,}"
    yield "lines. Every finding of the rules about language models (TA15x) and frameworks (TA65x to TA67x) is judged."
    yield ""
    yield from _by_rule(judged)
    yield ""
    language = [one for one in judged if one["rule"] < "TA600" and one["repository"] in tuning]
    contracts = [one for one in judged if one["rule"] > "TA600"]
    yield f"Language models, in the repositories that fine-tune them: {_share(language)}. Contracts of frameworks: {_share(contracts)}."
    last = [one for one in judged if one["repository"] in look["last"]]
    fresh = ([one for one in found if one in last] for found in (language, contracts))
    shares = [f"{_true(found)} of {len(found)}" for found in fresh]
    yield f"In the last {len(look['last'])} repositories, linted after most repairs, {shares[0]} findings about language models are true, and"
    yield f"{shares[1]} about contracts; these are repaired since."
    yield ""
    yield from _second_look_at_frameworks(look["second"])
    yield ""
    yield from _third_look_at_frameworks(look["third"])
    yield ""
    yield from _later_looks_at_frameworks([look[key] for key in ("fourth", "fifth", "sixth")])
    yield ""
    yield "### Examples that frameworks ship"
    yield ""
    yield "The example folders of six frameworks. Every finding above note is judged; of TA700, a sample."
    yield ""
    rows: list[tuple[str, ...]] = [("framework", "files", "findings", "judged", "true", "false", "worth it")]
    every: list[dict[str, Any]] = []
    for one in shipped:
        found = one.get("finding", [])
        every += found
        name = f"{one['framework']} at {one['commit'][:10]}"
        rows.append((name, str(one["files"]), str(one["findings"]), *_verdicts(found)))
    files, findings = (sum(one[key] for one in shipped) for key in ("files", "findings"))
    rows.append(("all", str(files), str(findings), *_verdicts(every)))
    yield from aligned(rows)
    yield ""
    yield from _by_rule(every)
    yield ""
    yield f"{_share(every)}."


def _second_look_at_frameworks(look: dict[str, Any]) -> Iterator[str]:
    judged: list[dict[str, Any]] = look["finding"]
    first, count = look["first"], len(look["repositories"])
    yield "### The second look at frameworks"
    yield ""
    yield f"{count} newer repositories that import one of these frameworks: {look['files']:,} files ({look['notebooks']:,} notebooks),"
    yield f"{look['lines']:,} lines. Every finding of the same rules is judged, at first sight. Of 21 of them only a part was there: the third look has the rest."
    yield ""
    last = [one for one in judged if one["repository"] not in first]
    parts = {f"first {len(first)}": _of(first, judged), f"last {count - len(first)}": last, "both": judged}
    yield from _in_parts(judged, parts)
    others, true, worth, above = look["others"]
    yield ""
    yield f"Other rules have {others} errors and warnings in these repositories: {true} are true ({percent(true, others)}) and {worth} worth a"
    yield f"person's time. After the repairs {above} are left, all true, {percent(worth, above)} of them worth it."


def _third_look_at_frameworks(look: dict[str, Any]) -> Iterator[str]:
    judged: list[dict[str, Any]] = look["finding"]
    first, cut, missed = look["first"], look["cut"], look["missed"]
    count = len(look["repositories"]) - len(missed)
    yield "### The third look at frameworks"
    yield ""
    yield f"{count} more repositories, and what the archives of the second look had left out: the rest of {len(cut)} of its repositories, and"
    yield f"{len(missed)} that seemed to import no framework. Together {look['files']:,} files ({look['notebooks']:,} notebooks), {look['lines']:,} lines."
    yield ""
    names = {name.partition("@")[0] for name in look["repositories"]} - {*first, *missed}
    parts = {
        f"first {len(first)}": _of(first, judged),
        f"last {count - len(first)}, linted after the repairs of the first": _of(names, judged),
        f"the rest of {len(cut)}, and {len(missed)}": _of({*cut, *missed}, judged),
        "all": judged,
    }
    yield from _in_parts(judged, parts)
    contracts = [one for one in judged if one["rule"] > "TA600"]
    yield ""
    yield f"Contracts of frameworks: {_share(contracts)}."
    yield "Their bar of 95 % is missed here at first sight, also in the last 37, where one file has four of the five false findings. They were about"
    yield "gradients that a loader's batches already hold, schedules that the module keeps, what one function makes, and releases that Poetry pins."


def _later_looks_at_frameworks(looks: list[dict[str, Any]]) -> Iterator[str]:
    judged: list[dict[str, Any]] = [one for look in looks for one in look["finding"]]
    files, notebooks, lines = (sum(look[key] for look in looks) for key in ("files", "notebooks", "lines"))
    yield "### The fourth to sixth look at frameworks"
    yield ""
    yield f"{sum(len(look['repositories']) for look in looks)} more repositories: {files:,} files ({notebooks:,} notebooks), {lines:,} lines. False findings"
    yield "were repaired between the looks; each look is at first sight."
    yield ""
    parts = {
        f"{name}, {len(look['repositories'])}": look["finding"]
        for name, look in zip(("fourth", "fifth", "sixth"), looks, strict=True)
    }
    yield from _in_parts(judged, {**parts, "all": judged})
    yield ""
    yield "**The sixth look reaches the bar of 95 % for contracts.** The false findings before it were about releases that a file"
    yield "named `wav2vec_env.yml` or a package for Lightning 1 alone pins, and about `lr_decay_steps`, which counted epochs. Those about language models were loaders"
    yield "for validation, a module for Lightning 1, and a script that only predicts. All are repaired."


def _of(repositories: Container[str], judged: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for one in judged if one["repository"] in repositories]


def _in_parts(judged: list[dict[str, Any]], parts: Mapping[str, list[dict[str, Any]]]) -> Iterator[str]:
    """What was judged in a look, by rule and by the parts of the look."""
    yield from _by_rule(judged)
    yield ""
    rows: list[tuple[str, ...]] = [
        ("repositories", "language models", "contracts", "contracts, a bug counted once a file")
    ]
    for name, found in parts.items():
        language = [one for one in found if one["rule"] < "TA600"]
        contracts = [one for one in found if one["rule"] > "TA600"]
        once = {(one["repository"], one["path"], one["rule"]): one for one in contracts}
        rows.append((name, *(_true_of(group) for group in (language, contracts, [*once.values()]))))
    yield from aligned(rows)


def _true_of(judged: list[dict[str, Any]]) -> str:
    return f"{_true(judged)} of {len(judged)}" if judged else "-"


def _by_rule(judged: list[dict[str, Any]]) -> Iterator[str]:
    rows: list[tuple[str, ...]] = [
        ("rule", "judged", "true", "false", "worth it", "precision", "false, left")
    ]
    for rule in (*sorted({one["rule"] for one in judged}), None):
        found = [one for one in judged if rule in (one["rule"], None)]
        name = f"{rule} {catalogue()[rule].name}" if rule is not None else "all"
        left = sum(one["verdict"] == "false" and one.get("left", False) for one in found)
        rows.append((name, *_verdicts(found), percent(_true(found), len(found)), str(left)))
    yield from aligned(rows)


def _verdicts(judged: list[dict[str, Any]]) -> tuple[str, str, str, str]:
    """The findings, the true ones, the false ones, and those worth a person's time."""
    true, worth = _true(judged), sum(finding["worth"] for finding in judged)
    return str(len(judged)), str(true), str(len(judged) - true), str(worth)


def _true(judged: list[dict[str, Any]]) -> int:
    return sum(finding["verdict"] == "true" for finding in judged)


def _share(judged: list[dict[str, Any]]) -> str:
    """How many are true, and how many of those that are still reported."""
    left = [one for one in judged if one.get("left", one["verdict"] == "true")]
    first, now = ((_true(found), len(found)) for found in (judged, left))
    return f"{first[0]} of {first[1]} are true ({percent(*first)}), and {now[0]} of the {now[1]} that are still reported ({percent(*now)})"


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
    yield "Commits of public repositories that fix a bug, collected without asking the linter. The program is linted before and after"
    yield f"each fix. *Found before*: a finding of the rule is within {NEAR} lines of the change, in the changed statement, or at the"
    yield "head of the loop, function or class around it. *Gone after*: the file then has fewer. *Found elsewhere*: the finding is in"
    yield "other lines or another file, and the fix removes it."
    yield ""
    yield from by_rule(results)
    yield ""
    yield "The same by the reason why the linter was silent when the fixes were collected (`no`: it was not silent, or had no rule):"
    yield ""
    yield from by_reason(results)
    yield ""
    yield sums(results)
    yield ""
    yield "Fixes that the linter does not name, each read by hand:"
    yield ""
    yield from left(results)


def _independent() -> Iterator[str]:
    results = json.loads(independent.RESULTS.read_text(encoding="utf-8"))
    judged = tomllib.loads(independent.JUDGEMENTS.read_text(encoding="utf-8"))
    yield ""
    yield "## Sets that others made"
    yield ""
    yield "Files that others wrote as examples for their tool, or collected for a study. They are not in this repository;"
    yield "`benchmarks/independent.toml` says which rule each is about, and why a miss is one."
    yield from _patterns(results["patterns"], judged["patterns"])
    yield from _scenarios(results["scenarios"], judged["scenarios"])
    yield from _scripts(results["scripts"], judged["scripts"])
    yield from _peer(results["torchfix"], judged["torchfix"])


def _patterns(result: dict[str, Any], judged: dict[str, Any]) -> Iterator[str]:
    yield ""
    yield "### Patterns"
    yield ""
    yield f"Of {judged['repository']} at {result['commit'][:10]}: {len(result['patterns'])} patterns, each with files that"
    yield f"have it and files that do not. By their descriptions, a rule is about {len(judged['rules'])} of them."
    yield ""
    yield from independent.patterns_table(result)
    yield ""
    false = [place for place in result["alarms"] if not judged["judged"][place]]
    yield f"{result['negatives']} files are healthy, and {result['other']} may be. The default rules report {len(result['alarms'])} lines"
    yield f"in them; {len(false)} {'is' if len(false) == 1 else 'are'} false:"
    yield ""
    yield from (f"- {place}" for place in false)
    yield ""
    yield "Missed:"
    yield ""
    yield from _reasons(result, judged)


def _reasons(result: dict[str, Any], judged: dict[str, Any]) -> Iterator[str]:
    """Why each miss is one, once."""
    return (f"- {place}: {judged['missed'][place]}" for place in dict.fromkeys(result["missed"]))


def _scenarios(result: dict[str, Any], judged: dict[str, Any]) -> Iterator[str]:
    yield ""
    yield "### Whole scripts with several patterns"
    yield ""
    yield f"Of {judged['repository']} at {result['commit'][:10]} : {result['scripts']} scripts that a language model wrote,"
    yield "with two or three of the patterns in each. Only patterns of default rules are counted."
    yield ""
    yield from independent.scenarios_table(result)
    yield ""
    yield from _reasons(result, judged)


def _scripts(result: dict[str, Any], judged: dict[str, Any]) -> Iterator[str]:
    yield ""
    yield "### Scripts with one bug"
    yield ""
    yield f"Of {judged['repository']} at {result['commit'][:10]}: {len(result['bugs']) + result['others']} scripts that use"
    yield f"torch. {result['others']} have a bug that no rule is about, such as shapes that do not fit. The set has no repaired scripts, so"
    yield "the line is changed as the accepted answer says."
    yield ""
    yield from independent.scripts_table(result)
    yield ""
    missed = [row["bug"] for row in result["bugs"] if not row["named"]]
    yield from (f"- {bug}, {judged['bugs'][bug]['cause']}: {judged['missed'][bug]}" for bug in missed)


def _peer(result: dict[str, Any], judged: dict[str, Any]) -> Iterator[str]:
    yield ""
    yield "### The tests of TorchFix"
    yield ""
    yield f"The lines that {judged['repository']} at {result['commit'][:10]} expects its checkers to report. A line counts as"
    yield "reported if the rule with the same id has a finding there, or names it as a related place."
    yield ""
    yield from independent.torchfix_table(result)
    yield ""
    yield from _reasons(result, judged)


def _recall(mutation: dict[str, Any]) -> Iterator[str]:
    yield ""
    yield "## Broken loops"
    yield ""
    yield "Healthy training loops of the corpora get one bug each, as users write it. A mutant is found if its rule reports"
    yield "something that it does not report in the original file. Loops in tests are left out: a seed that is set again in every"
    yield "pass is right there."
    yield ""
    rows: list[tuple[str, ...]] = [("rule", "loops", "mutants", "found", "recall")]
    tallies: dict[str, dict[str, Any]] = mutation["rules"]
    tried = {rule: tally for rule, tally in tallies.items() if tally["mutants"]}
    for rule, tally in tried.items():
        rows.append((_named(rule), str(tally["originals"]), *_recall_cells([tally])))
    rows.append(("all", "", *_recall_cells(list(tried.values()))))
    default = [tally for rule, tally in tried.items() if catalogue()[rule].default]
    rows.append(("default rules", "", *_recall_cells(default)))
    yield from aligned(rows)
    yield ""
    yield "The mutations:"
    yield ""
    for rule in tried:
        yield f"- {rule}: {MUTATIONS[rule].__doc__}"
    untried = [rule for rule, tally in tallies.items() if not tally["mutants"]]
    if untried:
        yield ""
        yield f"No loop has anything for these to break: {', '.join(untried)}."
    yield ""
    yield "### Findings in the original loops"
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
    yield "The same programs, split into models, data, engine and script (`benchmarks/split.py`) wherever that is possible. The last"
    yield "column counts the mutants that are found in one file and missed in several."
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
    yield f"Findings in the original programs that appear only after splitting: {len(alarms)}."
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
