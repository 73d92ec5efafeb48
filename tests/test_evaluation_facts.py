"""What a run knows of its evaluations: which samples loaders draw, which come again, and what the ranks tell of theirs."""

import weakref

import pytest
import torch
from torch.utils.data import TensorDataset

import ta_lint.checks.runs.ta325_loader_restarted_in_loop as ta325
import ta_runtime.checks.ta320_validation_overlaps_training as ta320
import ta_runtime.checks.ta328_split_differs_by_rank as ta328
from ta_lint.events.metric import TorchMetric
from ta_runtime.facts import (
    DataShare,
    Indices,
    Loader,
    Machine,
    Overlap,
    Pass,
    Refutation,
    Run,
    SampleHashes,
    Suspicion,
    Told,
)
from ta_runtime.facts.history import History
from ta_runtime.observers import metrics, samples
from ta_runtime.probes.places import Place

LINE = Place("train.py", 1)
DATA = TensorDataset(torch.zeros(8))


def loader(**facts: object) -> Loader:
    return Loader(LINE, loader=lambda: None, **facts)  # type: ignore[arg-type]


def run(*loaders: Loader) -> Run:
    return Run(steps=100, machine=Machine(None), loaders=list(loaders), history=History())


def told(*batches: torch.Tensor) -> SampleHashes:
    found = SampleHashes()
    for batch in batches:
        samples.tell_apart(found, [batch], [batch.numpy().data.cast("B")])
    return found


def test_numbers_are_followed_through_parts_of_parts() -> None:
    whole = Indices(weakref.ref(DATA), (), 8)
    nested = Indices(weakref.ref(DATA), ([0, 2], [7, 5, 3]), 8)  # the outer part first
    assert whole.numbers() == set(range(8))
    assert nested.numbers() == {7, 3}


def test_samples_are_hashed_by_themselves_and_blank_ones_are_not() -> None:
    rows = torch.randn(6, 32, generator=torch.Generator().manual_seed(0))
    found = told(rows[:4], rows[2:])
    assert (found.count, found.repeated, len(found.hashes), found.whole) == (8, 2, 6, True)
    blank = told(torch.zeros(4, 32))
    assert (blank.count, blank.whole) == (0, False)


def test_of_a_large_sample_a_part_is_hashed_that_is_the_same_in_each_batch() -> None:
    rows = torch.randn(4, 5000, generator=torch.Generator().manual_seed(0))
    assert told(rows).hashes == told(rows[2:], rows[:2]).hashes


def test_a_loader_evaluates_if_no_step_but_one_by_chance_follows_its_batches() -> None:
    assert loader(inferred=4, passes=[Pass(batches=8, steps=1)]).evaluates
    assert not loader(inferred=4, passes=[Pass(batches=8, steps=5)]).evaluates
    assert not loader(inferred=4, passes=[Pass(batches=1, steps=1)]).evaluates
    assert not loader(inferred=0, passes=[Pass(batches=8)]).evaluates


@pytest.mark.parametrize(
    ("shared", "repeated", "by_number", "found"),
    [(2, 0.0, False, True), (1, 0.0, False, False), (9, 0.01, False, False), (2, 0.0, True, True)],
)
def test_an_overlap_counts_above_a_hundredth_and_above_what_comes_by_chance(
    shared: int, repeated: float, by_number: bool, found: bool
) -> None:
    evaluated = loader(inferred=1)
    facts = run(evaluated)
    facts.overlaps = [Overlap(evaluated, loader(), 100, shared, by_number, repeated, whole=True)]
    assert [isinstance(said, Suspicion) for said in ta320.check_run(facts)] == [True] * found


def test_twenty_passes_in_a_row_that_were_left_make_a_pattern() -> None:
    def said(restarted: int, **facts: object) -> list[object]:
        plain = {"length": 8, "draws_once": True, "restarted_at": LINE}
        return list(ta325.check_progress(run(loader(restarted=restarted, **{**plain, **facts}))))

    assert len(said(20)) == 1
    assert said(19) == said(20, draws_once=False) == said(20, length=1) == []


@pytest.mark.parametrize(
    ("theirs", "kind"), [(0b1111_0000, Refutation), (0b1111_0011, Suspicion), (0b1100_0000, None)]
)
def test_what_another_rank_trains_on_is_compared_with_what_this_one_evaluates(
    theirs: int, kind: type | None
) -> None:
    mine = DataShare(8, 0b0000_1111, trains=False, evaluates=True)
    facts = run(loader(), loader())
    facts.told = Told(parts=[DataShare(8, 0b1111_0000, trains=True, evaluates=False), mine])
    other = mine if theirs == 0b1111_0000 else DataShare(8, 0b0011_1111, trains=False, evaluates=True)
    facts.peers = {1: Told(parts=[DataShare(8, theirs, trains=True, evaluates=False), other])}
    assert [type(said) for said in ta328.check_run(facts)] == ([kind] if kind is not None else [])


def test_a_metric_is_reset_where_it_has_gathered_less() -> None:
    found = TorchMetric(LINE, "MeanMetric")
    for updates, is_computed in [(8, False), (8, True), (8, True), (16, False), (16, True)]:
        metrics._note(found, updates, is_computed=is_computed)
    assert (found.added, found.resets) == ([8, 8], 0)
    metrics._note(found, 3, is_computed=True)
    assert (found.added, found.resets) == ([3], 1)
