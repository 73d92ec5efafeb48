"""A comparison in words, which the text and the page share."""

from collections.abc import Iterator, Sequence

from ta_runtime.diff.comparison import Comparison, Divergence, Record, Repeated
from ta_runtime.diff.coverage import listed
from ta_runtime.diff.sizes import Size
from ta_runtime.runs import Run
from ta_runtime.runs.command import typed
from ta_runtime.storage import shown

NOUNS = {
    "environment": ("variable", "variables"),
    "package": ("package", "packages"),
    "configuration": ("setting", "settings"),
    "rng": ("random generator", "random generators"),
    "batch": ("part of the batch", "parts of batches"),
    "parameter": ("parameter", "parameters"),
    "buffer": ("buffer", "buffers"),
    "activation": ("activation", "activations"),
    "loss": ("loss", "losses"),
    "gradient": ("gradient", "gradients"),
    "optimizer": ("part of the optimizer", "parts of the optimizer"),
}
"""What records of each kind are called, one of them and several."""

SETTINGS = "Settings that differ"
NUMBERS = "Where the numbers first differ"
_SHOWN = 80
"""Characters of a setting's value."""


def headline(comparison: Comparison) -> str:
    """What there is to say, in a sentence."""
    across = comparison.across_ranks
    who = "the ranks" if across else "the runs"
    first, numbers = comparison.first, comparison.numbers
    if comparison.unmatched:
        return f"{who.capitalize()} recorded no step in common."
    if numbers is not None:
        when = f"at step {numbers.step}" if numbers.step >= 0 else "before the first step"
        what = f"{who.capitalize()} first differ {when}: {thing(numbers)}"
        if first is not numbers and first is not None:
            count = len(comparison.settings)
            what += f"; before that, {'a setting differs' if count == 1 else f'{count} settings differ'}"
        return f"{what}."
    if comparison.repeated:
        return f"{_ranks([each.rank for each in comparison.repeated])} on the batches of rank {comparison.ranks[0]}."
    same = "all numbers that were recorded are equal"
    if first is not None:
        return f"{who.capitalize()} differ in {plural(len(comparison.settings), 'setting')}; {same}."
    return f"{who.capitalize()} are equal{_at(comparison)}."


def about(run: Run, between: str = "  ") -> str:
    """A run in a line: its folder, what was run, and when."""
    one = next(iter(run.about.values()))
    ranks = f"{one['world_size']} ranks" if one["world_size"] > 1 else ""
    parts = (shown(run.folder), ranks, " ".join(typed(one["command"] or ())), one["started"])
    return between.join(part for part in parts if part)


def thing(found: Divergence) -> str:
    """What differs, such as `activation encoder.0 (second call)`."""
    again = f", call {found.occurrence + 1}" if found.occurrence else ""
    kind = "random generator" if found.kind == "rng" else found.kind
    return f"{kind} {found.name}{again}"


def kept(record: Record | None) -> str:
    """What a run has of it, without numbers: dtype and shape, or the value of a setting."""
    if record is None:
        return "nothing"
    if record.dtype is None:
        return value(record.text)
    return f"{record.dtype} {'x'.join(map(str, record.shape or ())) or 'scalar'}"


def value(text: str | None) -> str:
    if text is None:
        return "(not set)"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 4]} ..."


def sizes(size: Size) -> Iterator[str]:
    """How large a difference is, in a few phrases."""
    if size.scalars is not None:
        yield f"{size.scalars[0]:.9g} in A, {size.scalars[1]:.9g} in B"
    elif size.differing:
        of = (
            f"of {size.elements} elements"
            if size.complete
            else f"of the {size.kept} recorded elements (of {size.elements} in all)"
        )
        yield f"{size.differing} {of} differ{'s' if size.differing == 1 else ''}"
    if size.largest:
        if size.ulps is not None:
            ulps = f"{size.ulps:,}" if size.ulps < 10_000 else f"{size.ulps:.2g}"
            yield f"by up to {ulps} ulp ({size.largest:.3g})"
        else:
            yield f"by up to {size.largest:.6g}"
        if size.relative is not None:
            yield f"relative difference (L2) {size.relative:.3g}"
    elif size.kept and not size.complete:
        yield f"the {size.kept} of {size.elements} elements that were recorded are equal"
    if size.non_finite:
        yield f"{size.non_finite} values are finite in only one of the runs"
    if not size.complete and (bound := size.at_least):
        yield f"judging by the norms of the whole tensors, the relative difference (L2) is at least {bound:.3g}"
    if size.blocks is not None and size.blocks[1] > 1:
        yield f"{size.blocks[0]} of {size.blocks[1]} blocks differ{'s' if size.blocks[0] == 1 else ''}"
    if size.places and size.differing < size.elements:
        shown = ", ".join(f"[{', '.join(map(str, place))}]" for place in size.places)
        yield f"at {shown}{', ...' if size.differing > len(size.places) else ''}"


def first(comparison: Comparison, found: Divergence) -> Iterator[tuple[str, str]]:
    """All that is known of the first number that differs but its cause, each fact with a word before it."""
    when = f"step {found.step}" if found.step >= 0 else "before the first step"
    where = f", {listed('rank', found.ranks)}" if len(comparison.ranks) > 1 else ""
    yield "where", f"{when}{where}: {thing(found)}"
    a, b = kept(found.a), kept(found.b)
    if found.kind != "rng" or None in (found.a, found.b):
        yield "recorded as", a if a == b else f"{a} in A, {b} in B"
    if found.size is not None and (size := "; ".join(sizes(found.size))):
        yield "how much", size
    if equal := "; ".join(_before(comparison, found)):
        yield "equal before", equal
    later = [f"{of_kind(c.differing, c.kind)} of {c.compared:,} from step {c.step}" for c in comparison.later]
    yield (
        "differs later",
        f"{', '.join(later)} (these probably follow from the first difference)" if later else "nothing else",
    )
    if closer := _closer(comparison, found):
        yield "look closer", closer


def cause(comparison: Comparison, found: Divergence) -> str:
    """What the first number that differs follows from."""
    if comparison.first is found:
        return found.cause
    which = "the setting" if len(comparison.settings) == 1 else "one of the settings"
    likely = "Likely" if any(setting.effect for setting in comparison.settings) else "Perhaps"
    return f"{likely} {which} above. If it is not: {found.cause[0].lower()}{found.cause[1:]}"


def notes(comparison: Comparison) -> list[str]:
    """What was not compared, or otherwise, in sentences."""
    told = [f"{note[0].upper()}{note[1:]}." for note in comparison.notes]
    uncounted = (
        [f"{', '.join(comparison.ignored)}, which always differ{'s' * (len(comparison.ignored) == 1)}"]
        if comparison.ignored
        else []
    )
    if comparison.idle:
        generators = f"random generator{'s' * (len(comparison.idle) > 1)} {' and '.join(comparison.idle)}"
        uncounted.append(f"the {generators}, from which nothing draws while the runs train")
    if uncounted:
        told.append(f"Not counted: {'; '.join(uncounted)}. --strict counts them.")
    return told


def _at(comparison: Comparison) -> str:
    """At how many steps."""
    if not (steps := comparison.steps):
        return " before the first step, which is all that was recorded"
    return (
        f" at {len(steps):,} steps ({steps[0]} to {steps[-1]})" if len(steps) > 1 else f" at step {steps[0]}"
    )


def _before(comparison: Comparison, found: Divergence) -> Iterator[str]:
    """What was still equal when the numbers began to differ."""
    through = comparison.equal_through
    if through is not None:
        between = range(through + 1, found.step)
        yield f"all numbers through step {through}" + (
            f" ({listed('step', between)} not compared)" if between else ""
        )
    if here := [count for count in comparison.equal_before if not count.differing]:
        counts = ", ".join(of_kind(count.compared, count.kind) for count in here)
        yield f"of step {found.step}: {counts}" if found.step >= 0 else counts


def _closer(comparison: Comparison, found: Divergence) -> str | None:
    """How to narrow it down, where steps were not recorded."""
    through = comparison.equal_through
    if through is None or found.step <= through + 1:
        return None
    return (
        f"record a step between in both runs, such as by the schedule 'at {(through + found.step) // 2}', to see where after"
        f" step {through} they first differ"
    )


def repeated(found: Repeated, base: int) -> str:
    """Of ranks that share their batches."""
    return (
        f"From step {found.step} on, rank {found.rank} trains on the batches of rank {base}, at {found.steps} of"
        f" {plural(found.compared, 'step')}: the sampler does not split the data among the ranks"
        " (`DistributedSampler`, `split_dataset_by_node`), unless they share a batch on purpose, as under tensor parallelism."
    )


def of_kind(count: int, kind: str) -> str:
    """Such as `3 parameters`."""
    return f"{count:,} {NOUNS[kind][count != 1]}"


def plural(count: int, noun: str) -> str:
    return f"1 {noun}" if count == 1 else f"{count:,} {noun}s"


def _ranks(ranks: Sequence[int]) -> str:
    trains = "trains" if len(ranks) == 1 else "train"
    words = listed("rank", ranks)
    return f"{words[0].upper()}{words[1:]} {trains}"
