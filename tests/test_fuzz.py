"""A fixed small share of what `benchmarks/fuzz.py` does without end, and that each of its properties can fail."""

import json
import os
import resource
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import fuzz
import hypothesmith
import libcst as cst
import pytest
from fuzzing import properties, work
from fuzzing.notebooks import notebook
from fuzzing.originals import originals
from fuzzing.programs import MUTATIONS, dressed, is_python, mutated, torchlike
from fuzzing.properties import Input, Judgement, judged
from fuzzing.shrinking import shrunk
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ta_lint import checks, fixing
from ta_lint.checks import Check, MayGive, TextFinding
from ta_lint.checks.gate import Gate, Keywords
from ta_lint.core import sarif
from ta_lint.core.source import Source
from ta_lint.facts import FileFacts, Suspicion
from ta_lint.runner import start_thread
from ta_lint.syntax.edits import ProposedFix, insert_after, replace_with_atom

POOL = originals(None)
"""The blocks of pages and cases alone: no corpora, so that the share is the same everywhere."""

few = settings(
    derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck), print_blob=False
)
seeds = st.integers(0, 2**32).map(Random)


def judgement(data: bytes | str, name: str = "train.py", target: str | None = None) -> Judgement:
    """What becomes of a file, on a deep stack as in the fuzzer."""
    done: list[Judgement] = []
    given = Input(name, data if isinstance(data, bytes) else data.encode(), target)
    start_thread(lambda: done.append(judged(given))).join()
    return done[0]


@settings(few, max_examples=50)
@given(hypothesmith.from_grammar(), st.booleans(), seeds)
def test_a_program_of_the_bare_grammar_leaves_the_linter_standing(
    program: str, is_torchlike: bool, rng: Random
) -> None:
    text = torchlike(program, rng, POOL) if is_torchlike else program
    assert judgement(text.encode("utf-8", "surrogatepass")).problems == []


# by number, as Hypothesis would draw other seeds with each module that happens to be loaded
@pytest.mark.parametrize("seed", range(150))
def test_a_mutated_case_leaves_the_linter_standing(seed: int) -> None:
    rng = Random(seed)
    program = dressed(mutated(POOL.block(rng), rng, POOL), rng)
    assert judgement(program, target=rng.choice(properties.TARGETS)).problems == []


@pytest.mark.parametrize("seed", range(40))
def test_a_mutated_notebook_leaves_the_linter_standing(seed: int) -> None:
    rng = Random(seed)
    programs = [mutated(POOL.block(rng), rng, POOL) for _ in range(rng.randint(1, 2))]
    data = notebook(programs, rng, POOL)
    assert judgement(data, "train.ipynb").problems == []


BUGGY = "import torch\nmodel = torch.nn.Linear(4, 1)\nstep()\nstep(1)\n"

Check_ = Callable[[FileFacts], Iterator[Suspicion]]


@pytest.fixture
def planting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Puts a check in the place of TA603, whose fixes are unsafe."""
    load = checks.load

    def put(over_facts: Check_ | None, over_text: Any = None, keywords: Keywords = ()) -> None:
        planted = Check("TA603", Gate(keywords), over_facts, over_text)
        monkeypatch.setattr(checks, "load", lambda rule: planted if rule == "TA603" else load(rule))
        checks.enabled.cache_clear()

    yield put
    checks.enabled.cache_clear()


def suspecting(fix: Callable[[cst.Call], ProposedFix | None] = lambda call: None) -> Check_:
    """Suspects every call of `step`, and fixes it as told."""

    def check(module: FileFacts) -> Iterator[Suspicion]:
        for call in module.tree.all(cst.Call):
            if module.code(call.func) == "step":
                yield Suspicion(call, "it is suspicious", fix=fix(call))

    return check


def calling_another(call: cst.Call) -> ProposedFix:
    return ProposedFix("call another", (replace_with_atom(call.func, "other"),))


def kinds(data: bytes | str = BUGGY, name: str = "train.py") -> set[str]:
    return {problem.kind for problem in judgement(data, name).problems}


def test_a_sound_check_with_a_sound_fix_has_no_problem(planting: Callable[..., None]) -> None:
    planting(suspecting(calling_another))
    done = judgement(BUGGY)
    assert done.problems == []
    assert (done.found["TA603"], done.fixed["TA603"], done.compiles) == (2, 2, True)


def test_a_check_that_raises_is_a_problem(planting: Callable[..., None]) -> None:
    def check(module: FileFacts) -> Iterator[Suspicion]:
        raise KeyError("x")
        yield  # type: ignore[unreachable]

    planting(check)
    assert kinds() == {"TA000"}


def test_an_engine_that_raises_is_a_problem(
    planting: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fix_file(*_: Any) -> None:
        raise ValueError("no")

    monkeypatch.setattr(properties, "fix_file", fix_file)
    assert kinds() == {"traceback: fix, unsafe"}


def test_a_format_that_raises_is_a_problem(
    planting: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    planting(suspecting())
    monkeypatch.delattr(sarif, "sarif_log")
    assert kinds() == {"traceback: format sarif"}


def test_a_gate_that_hides_a_finding_is_a_problem(planting: Callable[..., None]) -> None:
    planting(suspecting(), keywords=("nobody_says_this",))
    assert [problem.what for problem in judgement(BUGGY).problems] == [
        "a finding is not found with gates: TA603"
    ] * 2


def test_findings_that_change_from_one_time_to_the_next_are_a_problem(planting: Callable[..., None]) -> None:
    seen: list[FileFacts] = []

    def check_text(source: Source, may_give: MayGive) -> Iterator[TextFinding]:
        seen.append(None)  # type: ignore[arg-type]
        yield TextFinding(1, 1, 1, 2, f"this is time {len(seen)}")

    planting(None, check_text)
    assert "not the same twice" in kinds()


@pytest.mark.parametrize(
    "place", [(9, 1, 9, 2), (1, 1, 1, 40), (2, 3, 2, 1), (0, 1, 1, 1), (3, 8, 3, 9)], ids=str
)
def test_a_finding_outside_the_file_is_a_problem(
    place: tuple[int, int, int, int], planting: Callable[..., None]
) -> None:
    planting(None, lambda source, may_give: [TextFinding(*place, "it is suspicious")])
    assert "outside the file" in kinds()


def test_a_fix_that_breaks_the_file_is_a_problem(
    planting: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    planting(suspecting(lambda call: ProposedFix("open it", (insert_after(call, "("),))))
    assert kinds() == set()  # as the linter sees it itself, and says so
    assert judgement(BUGGY).complaints == {"the fix of TA603 would break the file; it was not made": 2}
    monkeypatch.setattr(fixing, "_is_broken", lambda *_: False)
    assert "broken fix" in kinds()


def test_a_fix_that_brings_itself_again_is_a_problem(planting: Callable[..., None]) -> None:
    planting(suspecting(lambda call: ProposedFix("call it", (insert_after(call, "()"),))))
    assert "unstable fix" in kinds("import torch\nstep()\n")


def test_a_fix_that_leaves_what_was_found_is_a_problem(planting: Callable[..., None]) -> None:
    def once(call: cst.Call) -> ProposedFix | None:
        return ProposedFix("give it one", (replace_with_atom(call, "step(1)"),)) if not call.args else None

    planting(suspecting(once))
    assert kinds() == {"fixed, and still found"}


def test_a_fix_that_changes_more_than_it_names_is_a_problem(
    planting: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    planting(suspecting(calling_another))
    edited = fixing._edited

    def also_at_the_end(source: Source, findings: Any) -> Source:
        done = edited(source, findings)
        return replace(done, text=f"{done.text}\n")

    monkeypatch.setattr(fixing, "_edited", also_at_the_end)
    assert kinds() == {"changed beside the fixes"}


def test_a_fix_of_a_suppressed_finding_is_a_problem(
    planting: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    planting(suspecting(calling_another))
    suppressed = "import torch\nstep()  # noqa: TA603\nstep(1)\n"
    assert kinds(suppressed) == set()
    monkeypatch.setattr(
        fixing, "_admitted", lambda findings, *_: [finding for finding in findings if finding.fix is not None]
    )
    assert "changed beside the fixes" in kinds(suppressed)


def test_a_notebook_that_is_written_anew_is_a_problem(
    planting: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    planting(suspecting(calling_another))
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "source": BUGGY.splitlines(keepends=True)}
    content = {
        "cells": [{**cell, "source": "import torch"}, cell],
        "metadata": {"a": [1, 2.5, "\u2028", {}]},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    data = json.dumps(content, indent=1)
    assert kinds(data, "train.ipynb") == set()
    bytes_of = fixing.bytes_of  # type: ignore[attr-defined]

    def anew(source: Source, like: bytes) -> bytes:
        done = bytes_of(source, like)
        return json.dumps(json.loads(done)).encode() if done != like else done

    monkeypatch.setattr(fixing, "bytes_of", anew)
    assert kinds(data, "train.ipynb") == {"changed beside the fixes"}


def test_too_much_work_is_a_problem(planting: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    def check(module: FileFacts) -> Iterator[Suspicion]:
        for number in range(300_000):
            abs(number)
        yield from ()

    monkeypatch.setattr(work, "SUSPICIOUS", 0.0)
    planting(check)
    assert kinds() == set()
    monkeypatch.setattr(work, "CALLS", 200_000)
    assert kinds() == {"hang"}


def test_work_is_the_same_however_often_it_is_counted() -> None:
    def limited(calls: int) -> None:
        with work.limited(calls):
            for number in range(1000):
                abs(number)

    limited(1010)
    for _ in range(3):
        with pytest.raises(work.Exhausted):
            limited(1000)


def test_what_is_judged_leaves_this_process_all_its_time() -> None:
    """The kernel ended the tests that came later in the same process."""
    before = resource.getrlimit(resource.RLIMIT_CPU)
    assert kinds() == set()
    assert resource.getrlimit(resource.RLIMIT_CPU) == before


def events(monkeypatch: pytest.MonkeyPatch, *given: Input) -> list[fuzz.Event]:
    monkeypatch.setattr(fuzz, "inputs", lambda batch: iter(given))
    return list(fuzz.fuzz([fuzz.Batch("programs", 0, 0)], 1))


def test_an_input_that_kills_the_process_is_a_problem_and_the_next_ones_are_judged(
    planting: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def check_text(source: Source, may_give: MayGive) -> Iterator[TextFinding]:
        if "abort" in source.text:
            os.kill(os.getpid(), signal.SIGKILL)
        yield from ()

    planting(None, check_text)
    fatal, sound = Input("train.py", b"import torch\nx = 1\nabort\n"), Input("train.py", b"import torch\n")
    died, lived = events(monkeypatch, fatal, sound)
    [problem] = died.judgement.problems
    assert problem.signature == ("crash", "the process ended with SIGKILL")
    assert died.small[problem.signature] == b"torchabort"
    assert (lived.given, lived.judgement.problems) == (sound, [])


def test_a_failing_input_is_saved_small_and_fails_again_when_it_is_replayed(
    planting: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    planting(suspecting(), keywords=("nobody_says_this",))
    outcome = fuzz.Outcome(tmp_path)
    text = "import torch\nif x:\n    step()\n"
    for event in events(monkeypatch, Input("train.py", text.encode(), "2.0", "a test")):
        outcome.take(event)
    assert outcome.problems == {("gates", "a finding is not found with gates: TA603"): 1}
    [path] = tmp_path.glob("*.py")
    assert len(path.read_bytes()) < 16 < len(text)
    capsys.readouterr()
    assert fuzz.replay([path]) == 1
    assert "a finding is not found with gates: TA603" in capsys.readouterr().out
    planting(suspecting())
    assert fuzz.replay([path]) == 0
    summary = "\n".join(outcome.summary())
    assert "| a test |" in summary
    assert "Problems: 1, of 1 kinds" in summary


def test_what_is_shrunk_is_as_small_as_it_can_be() -> None:
    data = b"\n".join(b"line %d here" % number for number in range(100))
    assert shrunk(data, lambda part: b"7" in part and b"e" in part) in (b"e7", b"7e", b"e 7")


def test_a_seed_makes_the_same_inputs_again() -> None:
    batch = fuzz.Batch("notebooks", 3, 1, 5)
    assert list(fuzz.inputs(batch)) == list(fuzz.inputs(batch))
    assert list(fuzz.inputs(batch)) != list(fuzz.inputs(replace(batch, seed=4)))
    kinds = [batch.kind for batch in fuzz.batches(200, 60, 0)]
    assert (kinds.count("programs"), kinds.count("notebooks")) == (4, 2)
    assert sum(batch.size for batch in fuzz.batches(200, 60, 0)) == 260


@pytest.mark.parametrize("mutation", sorted(set(MUTATIONS), key=lambda mutation: mutation.__name__))  # type: ignore[attr-defined]
def test_each_mutation_changes_programs_and_mostly_leaves_them_python(mutation: Any) -> None:
    changed = kept = 0
    for number, block in enumerate(POOL.blocks[::60]):
        after = mutation(block, Random(number), POOL)
        changed += after != block
        kept += is_python(after)
    assert changed > 3
    assert kept > 3
