"""What checks say of a place: repeats are counted, and a suspicion there outweighs every refutation."""

from collections.abc import Iterable

import pytest

from ta_runtime import incidents
from ta_runtime.facts import Refutation, Said, Sight, Suspicion, Unobserved
from ta_runtime.incidents import Incident, Incidents, Inspection
from ta_runtime.probes.places import Place
from ta_runtime.ranks import RankReport, merged_inspected

LINE = Place("train.py", 9)
ELSEWHERE = Place("train.py", 12)


def healthy(place: Place = LINE, share: float = 0.0) -> tuple[str, Refutation]:
    return "TA204", Refutation(place, "no batch is waited for", {"share of step": share})


def broken(place: Place = LINE, rule: str = "TA204") -> tuple[str, Suspicion]:
    return rule, Suspicion(place, "broken")


def test_a_refutation_is_kept_with_what_the_last_look_measured() -> None:
    seen = Incidents()
    for step, share in enumerate([0.1, 0.2, 0.3]):
        assert seen.add([healthy(share=share)], step) == []
    [refuted] = seen.inspected
    assert (refuted.rule, refuted.times, refuted.last_step) == ("TA204", 3, 2)
    assert refuted.said == healthy(share=0.3)[1]


@pytest.mark.parametrize(
    ("steps", "looks", "stands"),
    [
        (1, range(1), True),
        (5, range(5), True),
        (5, range(4), False),
        (900, [0], False),
        (1000, range(30), False),
        (1000, range(0, 1000, 35), False),
        (1000, range(0, 1000, 33), True),
    ],
    ids=["the only step", "all steps", "all but one", "the first", "30 early", "29 spread", "31 spread"],
)
def test_what_depends_on_data_is_refuted_by_many_looks_over_the_run(
    steps: int, looks: Iterable[int], stands: bool
) -> None:
    """N3: the numbers of the steps begin where the run was resumed."""
    for first in (0, 5000):
        seen = Incidents()
        seen.first, seen.steps = first, steps
        for step in looks:
            for place in (LINE, LINE):  # twice in a step is one look
                seen.add(
                    [("TA110", Refutation(place, "all values are finite", of_data=True)), healthy(ELSEWHERE)],
                    first + step,
                )
        assert [(each.rule, each.refutes) for each in seen.inspected] == [("TA110", stands), ("TA204", True)]


@pytest.mark.parametrize("said", [[healthy(), broken()], [broken(), healthy()]], ids=["before", "after"])
def test_a_suspicion_at_the_same_place_outweighs_a_refutation(
    said: list[tuple[str, Suspicion | Refutation]],
) -> None:
    seen = Incidents()
    for step, saying in enumerate(said):
        seen.add([saying], step)
    assert seen.inspected == []
    assert [incident.rule for incident in seen] == ["TA204"]


def test_a_suspicion_of_another_rule_or_place_leaves_a_refutation_alone() -> None:
    seen = Incidents()
    seen.add([healthy(), broken(ELSEWHERE), broken(rule="TA205")], 0)
    assert [refuted.said.place for refuted in seen.inspected] == [LINE]


def test_a_place_that_was_suspected_only_as_what_followed_from_another_is_still_refuted() -> None:
    first = ("TA101", Suspicion(ELSEWHERE, "not finite", cause="non-finite"))
    follower = ("TA100", Suspicion(LINE, "not finite", cause="non-finite", order=3))
    seen = Incidents()
    seen.add([first, follower, ("TA100", Refutation(LINE, "all values are finite", {"finite": 1}))], 0)
    assert [incident.rule for incident in seen] == ["TA101"]
    assert [refuted.rule for refuted in seen.inspected] == ["TA100"]


def test_refutations_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incidents, "_MOST_LOOKS", 3)
    seen = Incidents()
    seen.add([healthy(Place("train.py", line)) for line in range(1, 6)], 0)
    seen.add([healthy(Place("train.py", 2), share=0.5)], 1)
    assert [refuted.said.place.line for refuted in seen.inspected] == [1, 2, 3]
    assert seen.inspected[1].said == healthy(Place("train.py", 2), share=0.5)[1]


def test_of_what_several_ranks_refuted_there_is_one_with_the_ranks_that_looked() -> None:
    def refuted(place: Place, share: float) -> Inspection:
        return Inspection(*healthy(place, share), last_step=4)

    own, theirs = refuted(LINE, 0.1), [refuted(LINE, 0.2), refuted(ELSEWHERE, 0.3)]
    first, second = merged_inspected(
        [own], {1: RankReport(inspected=theirs), 2: RankReport(inspected=[refuted(LINE, 0.4)])}
    )
    assert (first.said, first.ranks) == (own.said, {0, 1, 2})
    assert (second.said, second.ranks) == (theirs[1].said, {1})
    assert own.ranks == theirs[0].ranks == set()


@pytest.mark.parametrize("refuted_first", [True, False])
def test_a_look_that_could_see_outweighs_one_that_could_not(refuted_first: bool) -> None:
    said: list[tuple[str, Said]] = [healthy(), ("TA204", Unobserved(LINE, "the loader has no workers"))]
    seen = Incidents()
    for step, saying in enumerate(said if refuted_first else said[::-1]):
        seen.add([saying], step)
    [inspection] = seen.inspected
    assert (inspection.refutes, inspection.times) == (True, 1)


def test_too_little_looking_leaves_unobserved_with_the_reason() -> None:
    seen = Incidents()
    seen.steps = 900
    seen.add([("TA110", Refutation(LINE, "all values are finite", of_data=True))], 0)
    [inspection] = seen.inspected
    assert inspection.said == Unobserved(LINE, "looked at 1 of 900 steps, too few to refute")


def test_what_a_finding_hides_no_look_refutes() -> None:
    """D17: layers in a plain list are not in the model, so whether any depends on the mode is unknown."""
    hiding = Incident("TA410", Suspicion(Place("src/model.py", 21), "a list", hides=Sight.LAYERS), 0, 0)
    no_layer = Refutation(LINE, "no layer depends on the mode", rests_on=Sight.LAYERS)
    resting, others = Inspection("TA611", no_layer, 3), Inspection(*healthy(), 3)
    reason = "layers of the model are not registered, says TA410 at model.py:21"
    assert resting.beside([hiding]).said == Unobserved(LINE, reason)
    assert resting.beside([]).refutes
    assert others.beside([hiding]).refutes


def test_of_ranks_one_that_could_look_decides() -> None:
    blind = Inspection("TA204", Unobserved(LINE, "the loader has no workers"), 3)
    [inspection] = merged_inspected([blind], {1: RankReport(inspected=[Inspection(*healthy(), 3)])})
    assert (inspection.refutes, inspection.ranks) == (True, {1})
