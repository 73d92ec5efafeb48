"""The templates about values: what each learns from a trace, and what breaks it in another; neither is noise."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from traces import TRAIN, Timeline, written

from ta_runtime.invariants.checking import Checker
from ta_runtime.invariants.file import says
from ta_runtime.invariants.inferring import infer
from ta_runtime.invariants.invariant import Invariant
from ta_runtime.invariants.replay import violations
from ta_runtime.runs import Run
from ta_runtime.trace.event import Event, Flag

STEPS = 20
VALUES = (
    "consistent",
    "constant_argument",
    "constant_output",
    "distinct_arguments",
    "equal_arguments",
    "input_output",
    "threshold",
)

Story = Callable[[Timeline, int], Iterator[Event]]


@pytest.fixture
def play(tmp_path: Path) -> Callable[..., Run]:
    """The trace of ranks that each tell a story of so many steps."""
    numbers = iter(range(100))

    def played(*stories: Story, steps: int = STEPS) -> Run:
        told = {}
        for rank, story in enumerate(stories):
            time = Timeline()
            told[rank] = [event for step in range(steps) for event in story(time, step)]
        return Run(written(tmp_path / str(next(numbers)), told))

    return played


def learned(*traces: Run) -> dict[str, Invariant]:
    return {says(each): each for each in infer(traces, templates=VALUES)}


def broken(trace: Run, invariants: Sequence[Invariant]) -> set[str]:
    return {violation.message for violation in violations(trace, Checker(invariants))}


def net(
    rows: Callable[[int], int] = lambda step: 8, dtype: str = "float32", dims: str = "4", flags: int = TRAIN
) -> Story:
    """A model of the user's that is called once in each step."""

    def story(time: Timeline, step: int) -> Iterator[Event]:
        size = rows(step)
        yield time(
            "module", "__main__.Net", step=step, inputs=f"float32[{size},3]", dtype=dtype,
            shape=",".join(filter(None, (str(size), dims))), flags=flags,
        )  # fmt: skip

    return story


# -- constant output ------------------------------------------------------------------------------------------


def test_a_dtype_that_is_always_the_same_is_learned_and_another_is_told(play: Callable[..., Run]) -> None:
    known = learned(play(net(dtype="bfloat16")))
    sentence = "the result of `Net` is always bfloat16"
    assert broken(play(net(dtype="float32")), [known[sentence]]) == {"the result of `Net` is float32"}


def test_what_holds_under_autocast_alone_is_learned_as_that(play: Callable[..., Run]) -> None:
    def story(time: Timeline, step: int) -> Iterator[Event]:
        yield from net(dtype="bfloat16", flags=TRAIN | Flag.AUTOCAST)(time, step)
        yield from net(dtype="float32", flags=TRAIN)(time, step)

    known = learned(play(story))
    assert "the result of `Net` is always bfloat16, under autocast" in known
    assert "the result of `Net` is always bfloat16" not in known


def test_sizes_are_never_learned(play: Callable[..., Run]) -> None:
    known = learned(play(net()))
    assert known
    assert not broken(play(net(rows=lambda step: 5 + step)), list(known.values()))


def test_a_result_without_its_gradient_is_told(play: Callable[..., Run]) -> None:
    known = learned(play(net()))
    cut = play(net(flags=int(Flag.GRAD | Flag.WHOLE)))
    assert broken(cut, list(known.values())) == {"the result of `Net` requires no gradient"}


def test_what_requires_no_gradient_as_autograd_is_off_says_nothing(play: Callable[..., Run]) -> None:
    known = learned(play(net()))
    assert not broken(play(net(flags=int(Flag.WHOLE))), list(known.values()))


def test_a_lost_dimension_of_the_users_own_model_is_told(play: Callable[..., Run]) -> None:
    known = learned(play(net()))
    assert broken(play(net(dims="")), list(known.values())) == {"the result of `Net` has 1 dimension"}


def test_ops_of_a_run_with_one_dtype_say_nothing(play: Callable[..., Run]) -> None:
    def story(*dtypes: str) -> Story:
        def told(time: Timeline, step: int) -> Iterator[Event]:
            for number, dtype in enumerate(dtypes):
                yield time("op", f"torch.op{number}", step=step, dtype=dtype, shape="3")

        return told

    assert not learned(play(story("float32", "float32")))
    assert "the result of `op0` is always float32" in learned(play(story("float32", "bfloat16")))


# -- constant argument ----------------------------------------------------------------------------------------

ATTENTION, DROPOUT = (f"torch.nn.functional.{name}" for name in ("scaled_dot_product_attention", "dropout"))


def switching(name: str, **arguments: str) -> Story:
    """A function that is called in each of these phases, with these arguments."""

    def story(time: Timeline, step: int) -> Iterator[Event]:
        for phase, given in arguments.items():
            yield time("op", name, step=step, phase=phase, arguments=given)

    return story


def test_attention_that_drops_while_it_evaluates_is_told(play: Callable[..., Run]) -> None:
    known = learned(play(switching(ATTENTION, train='{"dropout_p":0.1}', eval='{"dropout_p":0.0}')))
    assert set(known) == {
        "`scaled_dot_product_attention` always has dropout_p 0.1, while it trains",
        "`scaled_dot_product_attention` always has dropout_p 0.0, while it evaluates",
    }
    dropping = switching(ATTENTION, train='{"dropout_p":0.1}', eval='{"dropout_p":0.1}')
    assert broken(play(dropping), list(known.values())) == {
        "`scaled_dot_product_attention` has dropout_p 0.1"
    }
    assert not broken(play(switching(ATTENTION, eval="")), list(known.values())), (
        "nothing given drops nothing"
    )


def test_of_a_phase_that_never_came_no_switch_is_learned(play: Callable[..., Run]) -> None:
    known = learned(play(switching(DROPOUT, train='{"p":0.5,"training":true}')))
    assert set(known) == {
        "`dropout` always has p 0.5, while it trains",
        "`dropout` always has training True, while it trains",
    }
    evaluating = play(switching(DROPOUT, eval='{"p":0.5,"training":false}'))
    assert not broken(evaluating, list(known.values()))


def test_a_switch_that_is_the_same_in_all_phases_needs_no_condition(play: Callable[..., Run]) -> None:
    story = switching(DROPOUT, train='{"p":0.5,"training":true}', eval='{"p":0.5,"training":false}')
    assert set(learned(play(story))) == {
        "`dropout` always has p 0.5",
        "`dropout` always has training True, while it trains",
        "`dropout` always has training False, while it evaluates",
    }


def test_a_switch_that_has_several_values_and_other_arguments_teach_nothing(play: Callable[..., Run]) -> None:
    def by_layer(time: Timeline, step: int) -> Iterator[Event]:
        yield from switching(DROPOUT, train='{"p":0.5}', eval='{"p":0.5}')(time, step)
        yield from switching(DROPOUT, train='{"p":0.1}', eval='{"p":0.1}')(time, step)
        yield from switching(ATTENTION, train='{"is_causal":true,"scale":2}', eval="")(time, step)

    assert set(learned(play(by_layer))) == {"`scaled_dot_product_attention` always has dropout_p 0.0"}


# -- input and output -----------------------------------------------------------------------------------------


def test_rows_that_go_in_and_come_out_are_learned_of_two_sizes(play: Callable[..., Run]) -> None:
    sentence = "the result of `Net` always has as many rows as its input"
    assert sentence not in learned(play(net())), "one size may be chance"
    known = learned(play(net(rows=lambda step: 8 + step % 2)))

    def merging(time: Timeline, step: int) -> Iterator[Event]:
        yield time("module", "__main__.Net", step=step, inputs="float32[8,3]", dtype="float32", shape="1,4")

    message = "the result of `Net` has more or fewer rows than its input"
    assert broken(play(merging), [known[sentence]]) == {message}


def test_modules_of_torch_itself_are_left_out(play: Callable[..., Run]) -> None:
    def story(time: Timeline, step: int) -> Iterator[Event]:
        size = 8 + step % 2
        yield time(
            "module",
            "torch.nn.Linear",
            step=step,
            inputs=f"float32[{size},3]",
            dtype="float32",
            shape=f"{size},3",
        )

    assert not any("rows" in sentence for sentence in learned(play(story)))


# -- threshold ------------------------------------------------------------------------------------------------


def generating(lengths: Callable[[int], int], bound: int = 10, name: str = "max_length") -> Story:
    def story(time: Timeline, step: int) -> Iterator[Event]:
        yield time(
            "module", "__main__.Decoder", step=step, arguments=f'{{"{name}":{bound}}}', dtype="int64",
            shape=f"2,{lengths(step)}",
        )  # fmt: skip

    return story


def test_a_bound_that_is_kept_is_learned_and_going_beyond_is_told(play: Callable[..., Run]) -> None:
    known = learned(play(generating(lambda step: 5 + step % 6)))
    sentence = "the result of `Decoder` is always at most its `max_length`"
    message = "the result of `Decoder` is more than its `max_length`"
    assert broken(play(generating(lambda step: 12)), [known[sentence]]) == {message}
    assert not broken(play(generating(lambda step: 12, bound=20)), [known[sentence]])


def test_a_bound_that_nothing_comes_near_is_chance(play: Callable[..., Run]) -> None:
    assert not any("max_length" in said for said in learned(play(generating(lambda step: 2, bound=1000))))


# -- consistent -----------------------------------------------------------------------------------------------


def holding(digest: Callable[[int], int], other: Callable[[int], int]) -> Story:
    def story(time: Timeline, step: int) -> Iterator[Event]:
        for subject, of in (("embedding.weight", digest), ("head.weight", other)):
            yield time("parameter", "torch.nn.Linear", step=step, subject=subject, digest=of(step))

    return story


def test_tied_weights_are_learned_and_told_when_they_part(play: Callable[..., Run]) -> None:
    known = learned(play(holding(lambda step: step, lambda step: step)))
    pair = "the parameters `embedding.weight` and `head.weight`"
    assert set(known) == {f"{pair} are always equal"}
    parted = play(holding(lambda step: step, lambda step: step + (step > 4)))
    assert broken(parted, list(known.values())) == {f"{pair} are no longer equal"}
    [first, *_] = violations(parted, Checker(known.values()))
    assert first.event.step == 5


def test_states_that_never_change_are_equal_by_chance(play: Callable[..., Run]) -> None:
    assert not learned(play(holding(lambda step: 7, lambda step: 7)))


def test_what_all_ranks_have_alike_is_learned_and_told_of_the_rank_that_drifts(
    play: Callable[..., Run],
) -> None:
    same = holding(lambda step: step, lambda step: -step)
    known = learned(play(same, same))
    assert "after each step all ranks have the same parameters" in known
    drifted = play(same, holding(lambda step: step, lambda step: -step - (step > 2)))
    found = list(violations(drifted, Checker(known.values())))
    assert {violation.message for violation in found} == {
        "the parameter `head.weight` is not the same on all ranks"
    }
    assert (found[0].event.step, found[0].evidence["ranks"]) == (3, "0,1")


def test_weights_that_ranks_never_shared_teach_nothing(play: Callable[..., Run]) -> None:
    alone = holding(lambda step: step, lambda step: -step)
    other = holding(lambda step: step + 100, lambda step: -step - 100)
    assert not learned(play(alone, other))


# -- distinct arguments ---------------------------------------------------------------------------------------


def loading(content: Callable[[int, int], int]) -> Story:
    def story(time: Timeline, step: int) -> Iterator[Event]:
        yield time("epoch", "torch.utils.data.DataLoader", step=step, subject="loader")
        for number in range(3):
            yield time(
                "batch", "torch.utils.data.DataLoader", step=step, subject="loader", dtype="float32", shape="8,3",
                digest=content(step, number),
            )  # fmt: skip

    return story


def test_a_batch_that_comes_twice_in_a_step_is_told(play: Callable[..., Run]) -> None:
    known = learned(play(loading(lambda step, number: 10 * step + number)))
    message = "`DataLoader` gives the same batch twice in a step"
    assert broken(play(loading(lambda step, number: 10 * step)), list(known.values())) == {message}


def test_the_same_data_in_the_next_step_are_no_repetition(play: Callable[..., Run]) -> None:
    known = learned(play(loading(lambda step, number: 10 * step + number)))
    assert not broken(play(loading(lambda step, number: number)), list(known.values()))


def test_ranks_that_get_the_same_batches_are_told(play: Callable[..., Run]) -> None:
    def own(rank: int) -> Story:
        return loading(lambda step, number: 1000 * rank + 10 * step + number)

    known = learned(play(own(0), own(1)))
    message = "`DataLoader` gives two ranks the same batch"
    assert broken(play(own(0), own(0)), list(known.values())) == {message}


# -- equal arguments ------------------------------------------------------------------------------------------


def gathering(size: int) -> Story:
    def story(time: Timeline, step: int) -> Iterator[Event]:
        name = "torch.distributed.all_to_all_single"
        yield time("collective", name, step=step, subject="0", inputs=f"float32[{size + step}]")

    return story


def test_ranks_that_give_other_shapes_to_a_collective_are_told(play: Callable[..., Run]) -> None:
    known = learned(play(gathering(4), gathering(4)))
    message = "ranks do not give equal tensors to `all_to_all_single`"
    assert broken(play(gathering(4), gathering(6)), list(known.values())) == {message}
    assert not broken(play(gathering(9), gathering(9)), list(known.values()))


def test_shapes_that_ranks_rightly_have_for_themselves_teach_nothing(play: Callable[..., Run]) -> None:
    assert not any("tensors" in said for said in learned(play(gathering(4), gathering(6))))
