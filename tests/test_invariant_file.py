"""The file of invariants: what is written is read, people may edit it, and what is wrong in it is said by name."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ta_lint.core.errors import UsageError
from ta_runtime.invariants import file
from ta_runtime.invariants.invariant import Invariant

ONE = Invariant("contain", {"parent": "__main__.Net", "child": "torch.nn.Linear"}, {"phase": "train"}, 90, 2)
OTHER = Invariant(
    "period", {"call": "torch.Tensor.backward", "each": "torch.optim.AdamW.step", "times": 4}, {}, 20, 1
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file.save(tmp_path / "invariants.json", [ONE, OTHER], traces=["runs/1"], torch=["2.13.0"])
    return tmp_path / "invariants.json"


def edited(path: Path, **changes: Any) -> Path:
    """The file with its first entry changed; None removes a key."""
    whole = json.loads(path.read_text())
    entry = {**whole["invariants"][0], **changes}
    whole["invariants"][0] = {key: value for key, value in entry.items() if value is not None}
    path.write_text(json.dumps(whole))
    return path


def test_what_is_written_is_read(path: Path) -> None:
    assert file.load(path) == [ONE, OTHER]


def test_a_switch_is_read_as_it_was_written(tmp_path: Path) -> None:
    terms = {"call": "torch.nn.functional.dropout", "argument": "training", "value": False}
    switch = Invariant("constant_argument", terms, {"phase": "eval"}, 40, 1)  # type: ignore[arg-type]
    file.save(tmp_path / "invariants.json", [switch])
    [read] = file.load(tmp_path / "invariants.json")
    assert read == switch
    assert read.terms["value"] is False


def test_a_file_says_what_people_want_to_know(path: Path) -> None:
    whole = json.loads(path.read_text())
    assert (whole["format"], whole["version"], whole["traces"], whole["torch"]) == (
        "ta-runtime invariants", 1, ["runs/1"], ["2.13.0"],
    )  # fmt: skip
    entry = whole["invariants"][0]
    assert list(entry)[:7] == ["id", "says", "template", "terms", "where", "holds", "runs"]
    assert (entry["id"], entry["says"]) == (ONE.id, "`Net` always calls `Linear`, while it trains")


def test_an_id_is_of_what_is_said_and_where() -> None:
    assert replace(ONE, holds=1, note="x", suppressed=True).id == ONE.id
    assert replace(ONE, where={}).id != ONE.id != replace(ONE, terms={**ONE.terms, "child": "other"}).id


def test_an_entry_of_a_person_needs_template_and_terms(path: Path) -> None:
    edited(path, id=None, says=None, where=None, holds=None, runs=None, suppressed=None, note=None)
    assert file.load(path)[0] == Invariant(ONE.template, ONE.terms, {})


def test_changed_terms_are_another_invariant(path: Path) -> None:
    terms = {"parent": "__main__.Net", "child": "torch.nn.Conv2d"}
    (changed, _) = file.load(edited(path, terms=terms))
    assert changed.id != ONE.id
    assert file.says(changed) == "`Net` always calls `Conv2d`, while it trains"


def test_a_mark_and_a_note_are_read(path: Path) -> None:
    (marked, _) = file.load(edited(path, suppressed=True, note="see #12"))
    assert (marked.suppressed, marked.note, marked.id) == (True, "see #12", ONE.id)


def test_several_files_are_one(path: Path) -> None:
    second = path.with_name("second.json")
    file.save(second, [replace(ONE, holds=10, runs=1, suppressed=True, note="see #12")])
    one, other = file.merged([path, second])
    assert (one.id, one.holds, one.runs, one.suppressed, one.note) == (ONE.id, 100, 3, True, "see #12")
    assert other == OTHER


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"template": "contian"},
            r"invariants\[0\], contain-\w+: there is no template `contian`; there are .*contain",
        ),
        ({"template": 3}, r"Expected `str`, got `int` - at `\$\.invariants\[0\]\.template`"),
        ({"template": None}, r"missing required field `template`"),
        (
            {"template": "threshold", "terms": {"call": "x", "argument": "y", "side": "max"}},
            r"invariants\[0\].*: `terms` lacks 'kind'",
        ),
        (
            {"template": "change", "terms": {"call": "x", "state": "a parameter", "is": "moved"}},
            r"invariants\[0\].*: `terms` has 'moved', which `change` does not know",
        ),
        ({"terms": {"parent": "x", "child": 3}}, r"`terms` has `child` as 3; it is a text"),
        (
            {"template": "period", "terms": {"call": "x", "each": "y", "times": "one"}},
            r"`terms` has `times` as 'one'; it is a whole number",
        ),
        (
            {"template": "period", "terms": {"call": "x", "each": "y", "times": True}},
            r"`terms` has `times` as True; it is a whole number",
        ),
        ({"terms": {"parent": "x"}}, r"invariants\[0\].*: `terms` lacks 'child'"),
        ({"where": {"step": "3"}}, r"`where` knows no `step`; it can be about phase, rank, class"),
        (
            {"where": {"phase": "training"}},
            r"`where` has `phase` as `training`; it can be setup or train or eval",
        ),
        ({"supressed": True}, r"unknown field `supressed` - at `\$\.invariants\[0\]`"),
        ({"suppressed": "yes"}, r"Expected `bool`, got `str`"),
    ],
)
def test_what_is_wrong_in_an_entry_is_said_with_its_place(
    changes: dict[str, Any], said: str, path: Path
) -> None:
    with pytest.raises(UsageError, match=said) as error:
        file.load(edited(path, **changes))
    assert str(error.value).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON"),
        ("\udce9", "is not JSON"),
        ("[]", "Expected `object`"),
        ("{}", "no file of invariants"),
        (
            '{"format": "ta-runtime invariants", "version": 2, "new": []}',
            "has version 2, and this ta-runtime reads version 1",
        ),
        ('{"format": "ta-runtime invariants", "version": 1}', "missing required field `invariants`"),
    ],
)
def test_what_is_no_such_file_is_refused_by_name(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(UsageError, match=said) as error:
        file.load(path)
    assert str(error.value).startswith(f"{path}: ")


def test_a_file_that_is_not_there_is_told_how_to_make() -> None:
    with pytest.raises(
        UsageError,
        match=r"^nothing.json: no such file; make it with `ta-runtime infer TRACE -o nothing.json`",
    ):
        file.load(Path("nothing.json"))


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="directory"):
        file.load(tmp_path)
