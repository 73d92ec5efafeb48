"""`ta-runtime diff` names the first thing that differs between two runs, or the ranks of one, and what follows from it."""

import hashlib
import json
import math
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import torch
from commands import at_once, python, ta_runtime, warm
from torch import Tensor

from ta_lint.core.errors import UsageError
from ta_runtime.cli import main
from ta_runtime.diff import Comparison, compare, compare_ranks
from ta_runtime.diff.page import as_html
from ta_runtime.diff.settings import VARYING
from ta_runtime.diff.sizes import size
from ta_runtime.diff.text import as_text
from ta_runtime.runs import Run, RunWriter
from ta_runtime.runs.schema import KINDS, RECORDS

PLANTED = Path(__file__).parent / "planted"
CHROMIUM = shutil.which("chromium")

# -- divergences that were planted into real trainings --------------------------------------------------------


@dataclass(frozen=True)
class First:
    """What has to be named: step, kind and name of the first difference, and of the first that is a number."""

    step: int
    kind: str
    name: str
    cause: str = ""
    """A pattern of what must be said of it."""
    number: tuple[int, str, str] | None = None
    """Where the first difference is a setting, the first number; None: none differs."""


FIRSTS = {
    "seed": First(0, "rng", "torch", "different seeds or none"),
    "one_sample": First(2, "batch", "loaded.0", "^1 of 8 samples differs while the random generators are equal"),
    "one_label": First(4, "batch", "loaded.1", "^1 of 8 samples differs"),
    "one_weight": First(0, "parameter", "fc.weight", "only one of 6 parameters"),
    "one_ulp": First(0, "parameter", "out.weight", "only one of 6 parameters"),
    "spare": First(2, "parameter", "spare", "only one of 7 parameters"),
    "one_weight_later": First(2, "parameter", "fc.weight", "outside of the optimizer wrote to it in step 1"),
    "checkpoint": First(0, "parameter", "fc.weight", "load another checkpoint"),
    "buffer": First(2, "buffer", "norm.running_mean", "wrote to it in step 1"),
    "moment": First(2, "optimizer", "out.weight.exp_avg", "the optimizer state differs in step 1"),
    "dropout": First(
        0, "configuration", "module.dropout", "share of the activations", (0, "activation", "dropout")
    ),
    "hidden_dropout": First(0, "activation", "out", "between `norm` and it does, for example `F.dropout`"),
    "dtype": First(0, "activation", "fc", "float32 in A and in bfloat16 in B: autocast"),
    "precision": First(
        0, "configuration", "autocast.cpu", "another precision", (0, "activation", "fc")
    ),
    "package": First(-1, "package", "planted", "recorded numbers are the same"),
    "variable": First(-1, "environment", "PLANTED_MODE", "recorded numbers are the same"),
    "known_variable": First(-1, "environment", "CUBLAS_WORKSPACE_CONFIG", "cuBLAS gives the same result twice"),
    "workers": First(
        0, "configuration", "DataLoader.num_workers", "each worker has random numbers", (0, "rng", "torch")
    ),
    "no_shuffle": First(
        0, "configuration", "DataLoader.sampler", "another order", (0, "batch", "loaded.0")
    ),
    "unseeded_order": First(0, "batch", "loaded.0", "samples come in another order"),
    "summation_order": First(0, "gradient", "fc.weight", "by rounding only: the same terms are summed in another order"),
    "learning_rate": First(
        0, "configuration", "AdamW.group0.lr", "of another size", (1, "parameter", "fc.weight")
    ),
    "schedule": First(3, "configuration", "AdamW.group0.lr", "From step 3 on", (4, "parameter", "fc.weight")),
    "evaluating_norm": First(
        0, "configuration", "module.Net.training", "batch normalisation", (0, "activation", "norm")
    ),
    "evaluating": First(0, "configuration", "module.Net.training", "dropout", (0, "activation", "norm")),
    "smoothing": First(0, "loss", "loss", "compare the loss function"),
    "reduction": First(0, "loss", "loss", "B is 8 times A: compare `reduction`"),
    "threads": First(0, "configuration", "threads", "another number of threads", (0, "activation", "norm")),
    "deterministic": First(0, "configuration", "deterministic_algorithms", "another result each time"),
    "gradient_hook": First(0, "gradient", "fc.weight", "B is 2 times A"),
    "frozen": First(0, "gradient", "fc.bias", "in B it is frozen"),
    "extra_draw": First(3, "rng", "torch", "drew more random numbers than the other in step 2"),
    "wider": First(0, "parameter", "scale", "only that of B has this parameter"),
}  # fmt: skip
BASES = {"hidden_dropout", "package", "spare", "unseeded_order", "summation_order"}
"""Those that are compared with a base of their own."""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all runs: of each divergence, of `base`, and of `again/base` by another process."""
    folder = tmp_path_factory.mktemp("runs")
    names = [*FIRSTS, *(f"{name}_base" for name in BASES), "base", "harmless_variable"]
    runs = [
        lambda: warm(folder, str(PLANTED / "mlp.py"), str(folder), *names, timeout=240),
        lambda: python(
            folder, str(PLANTED / "mlp.py"), str(folder / "again"), "base", "one_weight", timeout=120
        ),
    ]
    for ran in at_once(runs):
        assert ran.returncode == 0, ran.stderr
    return folder


def compared(folder: Path, name: str) -> Comparison:
    return compare(Run(folder / (f"{name}_base" if name in BASES else "base")), Run(folder / name))


@pytest.mark.parametrize("name", FIRSTS)
def test_the_first_cause_of_a_planted_divergence_is_named(recorded: Path, name: str) -> None:
    found, wanted = compared(recorded, name), FIRSTS[name]
    assert found.first is not None
    assert (found.first.step, found.first.kind, found.first.name) == (wanted.step, wanted.kind, wanted.name)
    assert re.search(wanted.cause, found.first.cause)
    number = found.numbers and (found.numbers.step, found.numbers.kind, found.numbers.name)
    is_setting = wanted.kind in ("environment", "package", "configuration")
    assert number == (wanted.number if is_setting else (wanted.step, wanted.kind, wanted.name))


def test_two_processes_that_do_the_same_are_equal(recorded: Path) -> None:
    found = compare(Run(recorded / "base"), Run(recorded / "again/base"))
    assert found.equal
    assert found.steps == [0, 1, 2, 3, 4]
    assert "The runs are equal" in as_text(found)


def test_a_generator_that_nothing_draws_from_is_no_difference(recorded: Path) -> None:
    """NumPy's begins with another state in each process that seeds torch alone."""
    runs = Run(recorded / "base"), Run(recorded / "again/base")
    assert compare(*runs).idle == ("numpy",)
    assert "generator numpy, from which nothing draws while the runs train" in " ".join(
        as_text(compare(*runs)).split()
    )
    strict = compare(*runs, strict=True).numbers
    assert strict is not None
    assert (strict.kind, strict.name) == ("rng", "numpy")
    found = compare(Run(recorded / "base"), Run(recorded / "again/one_weight")).first
    assert found is not None
    assert (found.kind, found.name) == ("parameter", "fc.weight")
    assert "generators of numpy differ too" in found.cause


def test_a_divergence_has_its_size(recorded: Path) -> None:
    ulp = compared(recorded, "one_ulp").first
    assert ulp is not None
    assert ulp.size is not None
    assert (ulp.size.ulps, ulp.size.differing, ulp.size.elements, ulp.size.places) == (1, 1, 48, ((1, 5),))
    weight = compared(recorded, "one_weight").first
    assert weight is not None
    assert weight.size is not None
    assert weight.size.largest == pytest.approx(0.5, rel=1e-6)
    kept = 0.5 / weight.a.norm if weight.a is not None and weight.a.norm else None
    assert weight.size.relative == pytest.approx(kept, rel=1e-5)


def test_what_was_equal_before_and_what_differs_later_is_counted(recorded: Path) -> None:
    found = compared(recorded, "one_sample")
    assert found.equal_through == 1
    assert {count.kind: count.compared for count in found.equal_before}["rng"] == 3
    assert {"parameter", "loss", "gradient"} <= {count.kind for count in found.later}
    assert {count.kind: count.step for count in found.later}["loss"] == 2
    assert "all numbers through step 1" in as_text(found)
    assert "differs later  nothing else\n" in as_text(compared(recorded, "spare"))


def test_names_that_always_differ_are_not_counted(recorded: Path) -> None:
    found = compared(recorded, "harmless_variable")
    assert found.equal
    assert found.ignored == ("SSH_TTY",)
    strict = compare(Run(recorded / "base"), Run(recorded / "harmless_variable"), strict=True)
    assert [setting.name for setting in strict.settings] == ["SSH_TTY"]
    assert {"PWD", "RANK", "LOCAL_RANK", "*_PID", "*_TIMESTAMP"} <= set(VARYING)
    assert "OMP_NUM_THREADS" not in VARYING


def test_what_the_user_ignores_is_not_compared(recorded: Path) -> None:
    runs = Run(recorded / "base"), Run(recorded / "learning_rate")
    first = compare(*runs, ignore=["configuration/*.lr"]).first
    assert first is not None
    assert (first.step, first.kind) == (1, "parameter")
    settings = compare(
        *runs, ignore=["parameter/*", "buffer/*", "activation/*", "loss", "gradient/*", "optimizer/*"]
    )
    assert settings.numbers is None
    assert settings.first is not None


# -- ranks ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "step", "kind", "record", "cause"),
    [
        ("written", 2, "parameter", "0.weight", "began to differ in step 1"),
        ("moment", 1, "optimizer", "2.weight.exp_avg", "began to differ in step 0"),
        ("unreduced", 2, "gradient", "2.bias", "differ between ranks after the reduction"),
        ("unwrapped", 0, "parameter", "0.weight", "The ranks begin with different parameters"),
    ],
)
def test_the_first_divergence_of_ranks_is_named(
    ranks: Path, name: str, step: int, kind: str, record: str, cause: str
) -> None:
    found = compare_ranks(Run(ranks / name)).first
    assert found is not None
    assert (found.step, found.rank, found.kind, found.name) == (step, 1, kind, record)
    assert cause in found.cause


def test_ranks_that_are_as_they_should_be_are_equal(ranks: Path) -> None:
    found = compare_ranks(Run(ranks / "healthy"))
    assert found.equal
    assert any("statistics of each rank's own batches" in note for note in found.notes)


def test_ranks_that_share_their_batches_are_named(ranks: Path) -> None:
    found = compare_ranks(Run(ranks / "same_data"))
    assert found.first is None
    assert not found.equal
    assert [(each.rank, each.step, each.steps) for each in found.repeated] == [(1, 0, 4)]
    assert "Rank 1 trains on the batches of rank 0." in as_text(found)


def test_shards_are_not_compared_across_ranks(ranks: Path) -> None:
    found = compare_ranks(Run(ranks / "sharded"))
    assert found.equal
    assert any("shards, as of FSDP" in note for note in found.notes)


def test_runs_of_several_ranks_are_compared_rank_by_rank(ranks: Path) -> None:
    found = compare(Run(ranks / "healthy"), Run(ranks / "written"))
    assert found.ranks == (0, 1)
    assert found.numbers is not None
    assert (found.numbers.kind, found.numbers.name, found.numbers.ranks) == ("parameter", "0.weight", (1,))


# -- records by hand ------------------------------------------------------------------------------------------


def tensor(step: int, kind: str, name: str, value: Tensor, **columns: Any) -> dict[str, Any]:
    """A record of a tensor, all of whose elements are kept."""
    data = bytes(value.contiguous().view(-1).view(torch.uint8).tolist())
    return {
        "step": step,
        "kind": kind,
        "name": name,
        "order": 0,
        "dtype": str(value.dtype).removeprefix("torch."),
        "shape": list(value.shape),
        "digest": hashlib.sha1(f"{value.dtype}{value.shape}".encode() + data).hexdigest(),
        "algorithm": "sha1",
        "norm": torch.linalg.vector_norm(value.to(torch.complex128)).item(),
        "values": data,
        "blocks": None,
        **columns,
    }


def setting(kind: str, name: str, text: str, step: int = -1) -> dict[str, Any]:
    return {"step": step, "kind": kind, "name": name, "order": 0, "text": text}


def run(folder: Path, rows: Sequence[dict[str, Any]], *, rank: int = 0, world_size: int = 1) -> Run:
    writer = RunWriter(folder, rank=rank, world_size=world_size)
    writer.begin()
    writer.records.add(rows)
    writer.flush()
    return Run(folder)


def steps(*numbers: int, kind: str = "parameter", name: str = "w") -> list[dict[str, Any]]:
    return [tensor(number, kind, name, torch.tensor([1.0 + number])) for number in numbers]


@pytest.mark.parametrize(
    ("dtype", "ulps"),
    [(torch.float64, 3), (torch.float32, 3), (torch.float16, 3), (torch.bfloat16, 3), (torch.float8_e4m3fn, 3),
     (torch.float8_e5m2, 3), (torch.complex64, 3)],
)  # fmt: skip
def test_ulps_are_those_of_the_dtype(dtype: torch.dtype, ulps: int) -> None:
    real = torch.float32 if dtype.is_complex else dtype
    word = {8: torch.int64, 4: torch.int32, 2: torch.int16, 1: torch.uint8}[real.itemsize]
    one = torch.ones(2, dtype=real)
    other = (one.view(word) + torch.tensor([0, ulps], dtype=word)).view(real)
    if dtype.is_complex:
        one, other = one.view(dtype), other.view(dtype)
    found = size(tensor(0, "parameter", "w", one), tensor(0, "parameter", "w", other))
    assert found is not None
    assert found.ulps == ulps


def test_a_size_is_given_of_every_dtype_of_torch() -> None:
    dtypes = {value for value in vars(torch).values() if isinstance(value, torch.dtype)}
    for dtype in dtypes:
        row = {"dtype": str(dtype).removeprefix("torch."), "shape": [4], "norm": 1.0, "blocks": None}
        one, other = bytes([1] * 4 * dtype.itemsize), bytes([0, *[1] * (4 * dtype.itemsize - 1)])
        found = size({**row, "values": one}, {**row, "values": other})
        assert found is not None
        assert found.kept in (0, 4)
        assert found.differing == (found.kept > 0)
    assert size({**row, "dtype": "float99", "values": b"12"}, {**row, "dtype": "float99", "values": b"13"})


def test_ulps_are_counted_across_zero() -> None:
    tiny = torch.tensor([2.0**-149])
    found = size(tensor(0, "parameter", "w", tiny), tensor(0, "parameter", "w", -tiny))
    assert found is not None
    assert found.ulps == 2
    zeros = size(tensor(0, "p", "w", torch.tensor([0.0])), tensor(0, "p", "w", torch.tensor([-0.0])))
    assert zeros is not None
    assert (zeros.ulps, zeros.differing) == (0, 1)


def test_a_number_that_is_not_finite_in_one_run_is_told(tmp_path: Path) -> None:
    a = run(tmp_path / "a", [tensor(0, "loss", "loss", torch.tensor([1.0, 2.0]))])
    b = run(tmp_path / "b", [tensor(0, "loss", "loss", torch.tensor([1.0, math.nan]))])
    found = compare(a, b)
    assert "1 values are finite in only one of the runs" in as_text(found)
    assert '"norm": "nan"' in json_of(found)


def json_of(found: Comparison) -> str:
    from ta_runtime.diff.document import as_json

    return as_json(found)


def test_what_is_outside_of_the_kept_elements_is_told_by_blocks_and_norms(tmp_path: Path) -> None:
    value = torch.ones(4)
    rows = [
        tensor(0, "parameter", "w", value, shape=[4000], norm=norm, digest=digest, blocks=blocks)
        for norm, digest, blocks in ((100.0, "x", [1, 2, 3, 4]), (110.0, "y", [1, 2, 3, 5]))
    ]
    found = compare(run(tmp_path / "a", rows[:1]), run(tmp_path / "b", rows[1:]))
    text = " ".join(as_text(found).split())
    assert "the 4 of 4000 elements that were recorded are equal" in text
    assert "the relative difference (L2) is at least 0.1;" in text
    assert "1 of 4 blocks differs" in text


def test_texts_that_differ_are_shown(tmp_path: Path) -> None:
    rows = [
        [setting(kind, "x", text, step=0)]
        for kind, text in (("gradient", "none"), ("gradient", "none: frozen"))
    ]
    found = compare(run(tmp_path / "a", rows[0]), run(tmp_path / "b", rows[1]))
    assert "none in A, none: frozen in B" in as_text(found)
    assert found.first is not None
    assert "in one run it is frozen" in found.first.cause


def test_a_setting_that_nothing_is_known_of_is_a_weak_suspicion(tmp_path: Path) -> None:
    texts = []
    for name in ("MY_FLAG", "OMP_NUM_THREADS"):
        runs = [
            run(
                tmp_path / name / value,
                [setting("environment", name, value), tensor(0, "loss", "loss", torch.tensor(number))],
            )
            for value, number in (("1", 1.0), ("2", 3.3))
        ]
        texts.append(as_text(compare(*runs)))
    assert "Perhaps the setting above" in texts[0]
    assert "Likely the setting above" in texts[1]


@pytest.mark.parametrize(
    ("other", "words"),
    [(torch.ones(2, 3).half(), "float32 2x3 in A, float16 2x3 in B"), (torch.ones(3, 2), "float32 2x3 in A, float32 3x2 in B")],
)  # fmt: skip
def test_another_dtype_or_shape_is_named(tmp_path: Path, other: Tensor, words: str) -> None:
    a = run(tmp_path / "a", [tensor(0, "parameter", "w", torch.ones(2, 3))])
    assert words in as_text(compare(a, run(tmp_path / "b", [tensor(0, "parameter", "w", other)])))


def test_a_batch_that_comes_at_another_step_is_the_same_data_in_another_order(tmp_path: Path) -> None:
    batches = [torch.full((4, 2), float(number)) for number in range(3)]
    rows = [
        [tensor(step, "batch", "0", batches[order[step]]) for step in range(3)]
        for order in ((0, 1, 2), (0, 2, 1))
    ]
    found = compare(run(tmp_path / "a", rows[0]), run(tmp_path / "b", rows[1])).first
    assert found is not None
    assert "The data comes in another order" in found.cause
    assert "B has this batch at step 2" in found.cause


def test_samples_in_another_order_within_a_batch_are_told(tmp_path: Path) -> None:
    rows = [
        [tensor(0, "batch", "0", torch.arange(6.0)[order])]
        for order in (torch.arange(6), torch.arange(5, -1, -1))
    ]
    found = compare(run(tmp_path / "a", rows[0]), run(tmp_path / "b", rows[1])).first
    assert found is not None
    assert "the same samples in another order" in found.cause


def test_the_first_gradient_is_the_last_layers_as_a_backward_pass_begins_there(tmp_path: Path) -> None:
    rows = [
        [
            tensor(0, "gradient", name, torch.tensor([value]), order=order)
            for order, name in enumerate(("first", "last"))
        ]
        for value in (1.0, 2.0)
    ]
    found = compare(run(tmp_path / "a", rows[0]), run(tmp_path / "b", rows[1])).first
    assert found is not None
    assert found.name == "last"


def test_a_layer_that_runs_twice_is_compared_call_by_call(tmp_path: Path) -> None:
    rows = [
        [
            tensor(0, "activation", "fc", torch.tensor([value]), order=order)
            for order, value in enumerate(values)
        ]
        for values in ((1.0, 2.0), (1.0, 3.0))
    ]
    found = compare(run(tmp_path / "a", rows[0]), run(tmp_path / "b", rows[1])).first
    assert found is not None
    assert found.occurrence == 1


def test_other_schedules_are_compared_at_the_steps_of_both(tmp_path: Path) -> None:
    found = compare(run(tmp_path / "a", steps(0, 10, 20, 30)), run(tmp_path / "b", steps(0, 5, 10)))
    assert found.equal
    assert found.steps == [0, 10]
    assert found.notes == (
        "B ends after step 10; steps 20, 30 of A are not compared",
        "step 5 is in B alone, by another schedule",
    )


def test_runs_without_a_step_in_common_are_not_equal(tmp_path: Path) -> None:
    rows = [setting("package", "torch", "2")]
    found = compare(run(tmp_path / "a", [*rows, *steps(0, 2)]), run(tmp_path / "b", [*rows, *steps(1, 3)]))
    assert not found.equal
    assert "recorded no step in common" in as_text(found)


def test_steps_that_were_not_recorded_are_told_and_how_to_look_there(tmp_path: Path) -> None:
    rows = steps(0, 100)
    other = [*steps(0), tensor(100, "parameter", "w", torch.tensor([7.0]))]
    text = " ".join(as_text(compare(run(tmp_path / "a", rows), run(tmp_path / "b", other))).split())
    assert "all numbers through step 0 (steps 1, 2, 3, 4, ... 99 (99 in all) not compared)" in text
    assert "'at 50'" in text


def test_kinds_that_one_run_did_not_record_are_told(tmp_path: Path) -> None:
    a = run(tmp_path / "a", [*steps(0, 1), *steps(0, 1, kind="buffer")])
    found = compare(a, run(tmp_path / "b", steps(0, 1)))
    assert found.equal
    assert found.notes == ("buffer records are in A alone at step 0 and 1 more",)


def test_a_run_that_was_stopped_within_a_step_does_not_miss_what_it_did_not_come_to(tmp_path: Path) -> None:
    whole = [*steps(0, 1, 2), *steps(0, 1, 2, kind="gradient"), *steps(0, 1, 2, name="late")]
    stopped = [row for row in whole if row["step"] == 0 or (row["step"] == 1 and row["kind"] == "parameter")]
    del stopped[-1]
    found = compare(run(tmp_path / "a", whole), run(tmp_path / "b", stopped))
    assert found.equal
    assert "gradient records are in A alone at step 1" in found.notes


def test_other_numbers_of_ranks_are_compared_on_the_ranks_of_both(tmp_path: Path) -> None:
    a = run(tmp_path / "a", steps(0))
    run(tmp_path / "b", steps(0), world_size=2)
    b = run(tmp_path / "b", steps(0), rank=1, world_size=2)
    found = compare(a, b)
    assert found.numbers is None
    assert [(each.name, each.a, each.b) for each in found.settings] == [("world_size", "1", "2")]
    assert "rank 1 is in B alone" in found.notes


def on_device(rows: list[dict[str, Any]], change: float) -> list[dict[str, Any]]:
    """The same records with the digests of a device, whose values differ by a factor."""
    values = [torch.frombuffer(bytearray(row["values"]), dtype=torch.float32) * (1 + change) for row in rows]
    return [
        {
            **row,
            **tensor(row["step"], row["kind"], row["name"], value),
            "digest": "z",
            "algorithm": "weighted sums",
        }
        for row, value in zip(rows, values, strict=True)
    ]


def test_digests_of_a_device_are_compared_by_values_up_to_rounding(tmp_path: Path) -> None:
    rows = steps(0, 1)
    a = run(tmp_path / "a", rows)
    near = compare(a, run(tmp_path / "near", on_device(rows, 1e-7)))
    assert near.equal
    assert "digests of 2 records cannot be compared" in near.notes[0]
    far = compare(a, run(tmp_path / "far", on_device(rows, 1e-3)))
    assert not far.equal
    lost = [{**row, "values": None, "norm": None} for row in on_device(rows, 0)]
    gone = compare(a, run(tmp_path / "gone", [*lost, *steps(0, name="v")]))
    assert "of 2 records nothing is recorded that could be compared" in gone.notes


def test_a_tolerance_passes_over_rounding(tmp_path: Path) -> None:
    rows = [tensor(step, "parameter", "w", torch.full((8,), 1.0 + step)) for step in range(3)]
    other = [
        tensor(step, "parameter", "w", torch.full((8,), 1.0 + step) * (1 + 1e-6 * 10**step))
        for step in range(3)
    ]
    a, b = run(tmp_path / "a", rows), run(tmp_path / "b", other)
    assert compare(a, b).numbers.step == 0  # type: ignore[union-attr]
    found = compare(a, b, tolerance=3e-6).numbers
    assert found is not None
    assert found.step == 1
    assert compare(a, b, tolerance=1e-3).equal


def test_secrets_that_were_masked_with_other_keys_are_not_compared(tmp_path: Path) -> None:
    def masked(word: str, key: str) -> list[dict[str, Any]]:
        return [setting("environment", "API_KEY", f"<masked {word}, key {key}>"), *steps(0)]

    a = run(tmp_path / "a", masked("aa", "k1"))
    assert compare(a, run(tmp_path / "b", masked("bb", "k2"))).equal
    assert not compare(a, run(tmp_path / "c", masked("bb", "k1"))).equal


# -- what a user meets ----------------------------------------------------------------------------------------


def told(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    status = main(["diff", *map(str, words)])
    out, err = capsys.readouterr()
    return status, out, err


def test_the_exit_status_says_whether_runs_differ(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, recorded / "base", recorded / "again/base")[0] == 0
    status, out, _ = told(capsys, recorded / "base", recorded / "one_ulp")
    assert status == 1
    assert "The runs first differ at step 0: parameter out.weight." in out
    assert "\033" not in out


def test_wrong_usage_is_told_with_its_remedy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(tmp_path / "a", steps(0))
    for words, message in (
        (
            [tmp_path / "a"],
            "1 runs given; write `ta-runtime diff RUN_A RUN_B`, or `--ranks RUN` for the ranks of one",
        ),
        ([tmp_path / "a", tmp_path / "none"], "none: no such folder"),
        (["--ranks", tmp_path / "a"], "has only one rank; --ranks is for distributed runs"),
        (["--output", tmp_path / "no/x.html", tmp_path / "a", tmp_path / "a"], "cannot write"),
    ):
        status, _, err = told(capsys, *words)
        assert status == 2
        assert message in err


def test_a_damaged_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(tmp_path / "a", steps(0))
    run(tmp_path / "b", steps(0))
    (part,) = (tmp_path / "b/records").glob("*.parquet")
    data = bytearray(part.read_bytes())
    data[8:200] = bytes(192)
    part.write_bytes(data)
    status, _, err = told(capsys, tmp_path / "a", tmp_path / "b")
    assert status == 2
    assert str(part) in err
    part.write_bytes(b"PAR1")
    assert told(capsys, tmp_path / "a", tmp_path / "b")[0] == 2


def test_runs_without_records_are_told_apart_from_equal_ones(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no records to compare"):
        compare(run(tmp_path / "a", []), run(tmp_path / "b", []))


def test_json_names_the_first_difference_for_programs(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, _ = told(capsys, recorded / "base", recorded / "dropout", "--format", "json")
    found = json.loads(out)
    assert status == 1
    assert found["equal"] is False
    assert found["first"]["kind"] == "configuration"
    assert (found["first_number"]["step"], found["first_number"]["name"]) == (0, "dropout")
    assert found["first_number"]["size"]["elements"] == 128
    assert {cell["kind"] for cell in found["compared"]} <= set(KINDS)
    told(capsys, recorded / "base", recorded / "dropout", "--output", tmp_path / "x.json")
    assert json.loads((tmp_path / "x.json").read_text()) == found


def test_colours_are_for_a_terminal_alone(recorded: Path) -> None:
    found = compared(recorded, "one_ulp")
    assert "\033[31m" in as_text(found, color=True)
    assert "\033" not in as_text(found)


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
def test_the_page_fits_a_phone_and_asks_no_other_host(recorded: Path, ranks: Path, tmp_path: Path) -> None:
    from playwright.sync_api import sync_playwright

    pages = {
        "dropout": compared(recorded, "dropout"),
        "one_sample": compared(recorded, "one_sample"),
        "equal": compared(recorded, "harmless_variable"),
        "ranks": compare_ranks(Run(ranks / "same_data")),
    }
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 360, "height": 740})
        requests: list[str] = []
        errors: list[str] = []
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: errors.append(message.text))
        page.on("pageerror", lambda error: errors.append(str(error)))
        for name, found in pages.items():
            file = tmp_path / f"{name}.html"
            file.write_text(as_html(found), encoding="utf-8")
            page.goto(file.as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") <= 360
            assert page.inner_text("h1") in (page.title(), page.title() + "\n")
        page.goto((tmp_path / "one_sample.html").as_uri())
        rows = page.locator(".map .row")
        assert rows.count() == 9
        assert rows.first.locator("i.same").count() == 5
        assert "1 of 8 samples differs" in page.inner_text("body")
        assert page.locator("h2").all_inner_texts() == [
            "The two runs",
            "Where the numbers first differ",
            "What is equal and what differs, step by step",
        ]
        browser.close()
    assert all(request.startswith(("file://", "data:")) for request in requests)
    assert not errors


def test_names_in_a_page_are_no_markup(tmp_path: Path) -> None:
    a = run(tmp_path / "a", [setting("environment", "X", "<script>alert(1)</script>"), *steps(0, name="<b>")])
    b = run(tmp_path / "b", [setting("environment", "X", "&"), *steps(0, name="w")])
    page = as_html(compare(a, b))
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "parameter &lt;b&gt;" in page


# -- the page of the documentation ----------------------------------------------------------------------------


def test_the_commands_of_the_page_do_what_it_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[1] / "docs" / "diff.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"```python title=train.py\n(.*?)```", page, re.DOTALL)
    (tmp_path / "train.py").write_text(script)
    monkeypatch.chdir(tmp_path)
    shown = re.findall(r"^\$ ta-runtime (\w+) ?(.*)\n((?:(?!\$ |```).*\n)*)", page, re.MULTILINE)
    assert [command for command, _, _ in shown] == ["run", "run", "diff", "diff"]
    for command, words, output in shown:
        if command == "run":
            ran = ta_runtime(tmp_path, command, *shlex.split(words))
            assert ran.returncode == 0, ran.stderr
            continue
        _, printed, _ = told(capsys, *shlex.split(words))
        printed = re.sub(r"python\S* -m ta_runtime", "ta-runtime", printed)
        assert re.sub(r"\d{4}-\d\d-\d\dT[\d:]+", "2026-11-22T10:00:00", printed).rstrip() == output.rstrip()


# -- large runs -----------------------------------------------------------------------------------------------


def large(folder: Path, count: int, differs_at: int | None = None) -> Run:
    """A run of so many steps with 100 records each, of which all have changed from one step on."""
    run(folder, [])
    words = pa.array([f"layer{index}.weight" for index in range(100)])
    rows = count * 100
    step = pc.divide(pc.subtract(pc.cumulative_sum(pa.repeat(1, rows)), 1), 100)
    index = pc.subtract(pc.cumulative_sum(pa.repeat(1, rows)), pc.add(pc.multiply(step, 100), 1)).cast(
        pa.int32()
    )
    digest = pc.binary_join_element_wise(step.cast(pa.string()), index.cast(pa.string()), "0" * 24, "-")
    if differs_at is not None:
        changed = pc.binary_join_element_wise(digest, "x", "")
        digest = pc.if_else(pc.greater_equal(step, differs_at), changed, digest)
    columns = {name: pa.nulls(rows, RECORDS.field(name).type) for name in RECORDS.names}
    columns |= {
        "step": step,
        "rank": pa.repeat(pa.scalar(0, pa.int32()), rows),
        "kind": pa.repeat("gradient", rows).dictionary_encode(),
        "order": index,
        "name": pa.DictionaryArray.from_arrays(index, words),
        "dtype": pa.repeat("float32", rows).dictionary_encode(),
        "algorithm": pa.repeat("sha1", rows).dictionary_encode(),
        "digest": digest,
        "norm": step.cast(pa.float64()),
        "values": pa.repeat(pa.scalar(bytes(range(64)), pa.binary()), rows),
    }
    table = pa.table(columns, schema=RECORDS)
    (folder / "records").mkdir(exist_ok=True)
    for part, start in enumerate(range(0, rows, 1 << 16)):
        pq.write_table(table.slice(start, 1 << 16), folder / "records" / f"rank0-{part:05}.parquet")
    return Run(folder)


def calls(function: Callable[[], object]) -> int:
    """How many calls Python makes, of its own functions and of others."""
    count = 0

    def counted(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count


@pytest.fixture(scope="module")
def million(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Run]:
    """Two runs of a million records each."""
    folder = tmp_path_factory.mktemp("large")
    return large(folder / "a", 10_000), large(folder / "b", 10_000, differs_at=7_000)


def test_no_record_becomes_an_object_that_is_not_the_first_to_differ(
    million: tuple[Run, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a million, and no values are read but at the step of the first difference."""
    heavy, read = 0, Run.read

    def counting(run: Run, table: str, columns: Any = None, where: Any = None) -> pa.Table:
        nonlocal heavy
        found = read(run, table, columns, where)
        heavy += len(found) if "values" in found.column_names else 0
        return found

    monkeypatch.setattr(Run, "read", counting)
    found: list[Comparison] = []
    assert calls(lambda: found.append(compare(*million))) < 50_000
    first = found[0].first
    assert first is not None
    assert (first.step, first.name) == (7_000, "layer99.weight")
    assert [(count.compared, count.differing) for count in found[0].counts] == [(1_000_000, 300_000)]
    assert heavy == 200


def test_a_tolerance_makes_no_record_an_object(million: tuple[Run, Run]) -> None:
    found: list[Comparison] = []
    assert calls(lambda: found.append(compare(*million, tolerance=1e-6))) < 100_000
    assert found[0].equal
