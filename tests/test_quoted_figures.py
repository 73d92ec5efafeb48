"""D31: what the README says of accuracy and cost is what the documents with the measurements say."""

import re
import tomllib
from pathlib import Path

import accuracy
import short_runs
from sections import section

README = (Path(__file__).parent.parent / "README.md").read_text("utf-8")


def test_the_readme_quotes_the_latest_look() -> None:
    judged, true, worth = accuracy.above_note(accuracy.latest())
    assert f"{accuracy.percent(true, judged)} ({true} of {judged}) of the errors and warnings" in README
    assert f"{accuracy.percent(worth, judged)} ({worth} of {judged}) there" in README


def test_the_readme_quotes_the_sets_that_stay_unseen_and_says_that_no_command_repeats_them() -> None:
    """It promised a command behind each number."""
    [table] = re.findall(r"(?<=^\| question )(?:.*\n)+?(?=\n)", README, re.MULTILINE)
    sets = tomllib.loads(accuracy.UNSEEN.read_text("utf-8"))["set"]
    shares = [(each["share"], each.get("at_hand", "")) for each in sets if each["share"].endswith("%")]
    assert shares
    for share, at_hand in shares:
        assert share in table
        assert at_hand in README.replace(table, "")
    assert "except those of the sets that stay unseen" in README


def test_the_readme_quotes_what_a_short_run_pays() -> None:
    table = section(short_runs.DOCUMENT, short_runs.MAKER)
    ratios = [float(row.split("|")[4]) for row in table.splitlines() if re.match(r"\| (?:MLP|LSTM|CNN)", row)]
    assert len(ratios) == 3
    low, high = (round(100 * (ratio - 1)) for ratio in (min(ratios), max(ratios)))
    assert f"{low} to {high} % of the CPU time of a run of 6 to 7 seconds" in README
