"""The sentences and numbers of a preflight, which the terminal and the page show alike."""

import math

from ta_runtime.facts import Flight
from ta_runtime.preflight.briefing import Aim, Entrance
from ta_runtime.preflight.figures import Figures
from ta_runtime.preflight.peeking import PeekedLoader
from ta_runtime.preflight.reading import Piece, Reading

BARS = "▁▂▃▄▅▆▇█"
_CLASSES = 8
"""Classes that are named; of more, how many there are."""


SIGNS = {
    "learned": ("^", "learned from"),
    "padding": ("-", "padding"),
    "leaking": ("!", "padding that is learned from"),
    "special": ("[ ]", "special token"),
    "joint": ("|", "another text begins"),
}
"""The kinds of pieces of a row: the sign below or around them, and what it means."""


def number(value: float) -> str:
    """A number in at most four digits that tell something."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "infinite"
    return f"{value:,.0f}" if value == int(value) and abs(value) < 1e9 else f"{value:.4g}"


def share(part: float) -> str:
    """A share, which is 0 % and 100 % only where it is none and all."""
    percent = 100 * part
    if 0 < percent < 1:
        return "under 1%"
    return f"{min(percent, 99) if percent < 100 else 100:.0f}%"


def counted(count: int, noun: str) -> str:
    return f"1 {noun}" if count == 1 else f"{count:,} {noun}s"


def bars(histogram: list[int]) -> str:
    """A histogram in one line; what is not empty shows."""
    most = max(histogram, default=0)
    return "".join(" " if not count else BARS[min(7, count * 8 // (most + 1))] for count in histogram)


def kind(figures: Figures) -> str:
    """What a tensor is: its dtype and shape."""
    return f"{figures.dtype} {figures.shape}"


def content(figures: Figures) -> str:
    """What is in a tensor."""
    if not figures.size:
        return "empty"
    if figures.minimum is None or figures.maximum is None:
        return "no finite value" if figures.missing else "not looked at"
    words = [f"{number(figures.minimum)} to {number(figures.maximum)}"]
    if figures.mean is not None and figures.std is not None:
        words.append(
            f"mean {number(round(figures.mean, 6))}, standard deviation {number(round(figures.std, 6))}"
        )
    if figures.missing:
        words.append(f"{share(figures.missing)} NaN or infinite")
    if figures.repeated:
        words.append(f"{counted(figures.repeated, 'sample')} of {figures.shape[0]:,} repeated")
    return "; ".join([", ".join(words), *figures.remarks])


def classes(counts: list[tuple[int, int]]) -> str:
    """How often each class comes, the most frequent first; of many, only these."""
    total = sum(count for _, count in counts)
    if not total:
        return ""
    if len(counts) == 1:
        return f"all are {counts[0][0]}"
    named = counts if len(counts) <= _CLASSES else counts[: _CLASSES // 2]
    told = ", ".join(
        f"{label}: {share(count / total)}"
        for label, count in sorted(named, key=lambda each: (-each[1], each[0]))
    )
    return told if named is counts else f"{counted(len(counts), 'class')[:-1]}es, most frequent {told}"


def loader(peeked: PeekedLoader) -> tuple[str, str]:
    """What a loader is called and where it stands; and what it hands out."""
    role = "trains" if peeked.trains else "held out" if peeked.evaluates else "beside it"
    size = "" if peeked.size is None else f", {counted(peeked.size, 'sample')}"
    batches = "" if peeked.batch_size is None else f" in batches of {peeked.batch_size:,}"
    return f"{peeked.name or 'a loader'}, {role}", f"{peeked.dataset}{size}{batches}, {peeked.sampler}"


def looked_into(peeked: PeekedLoader) -> list[str]:
    """What its first batches say."""
    if peeked.complaint:
        return [f"not looked into: {peeked.complaint}"]
    samples = counted(peeked.samples, "sample")
    batches = counted(peeked.batches, "batch").replace("batchs", "batches")
    told = [f"looked at all {samples}" if peeked.whole else f"looked at {samples}, the first {batches}"]
    if told_labels := classes(peeked.labels):
        told.append(f"labels: {told_labels}")
    if peeked.repeated:
        told.append(
            f"{counted(peeked.repeated, 'sample')} ({share(peeked.repeated / peeked.samples)}) repeated"
        )
    if peeked.shared:
        told.append(f"{counted(peeked.shared, 'sample')} ({share(peeked.shared / peeked.samples)}) are also in the loader that trains")  # fmt: skip
    return told


def entrance(call: Entrance) -> str:
    return f"{call.model} is given"


def read(read: Reading) -> str:
    """What was read, and by which tokenizer."""
    by = f", by {read.tokenizer}" if read.tokenizer else ""
    return f"{read.name} as text{by}"


def learned(read: Reading) -> str:
    """How much of it is learned from."""
    masked = read.tokens - read.learned - read.padding - read.learned_padding
    parts = [(read.learned, "learned from"), (masked, "masked")] if read.labelled else []
    parts += [(read.padding, "padding"), (read.learned_padding, "padding that is learned from")]
    told = [
        f"{share(count / read.tokens)} {what}" for count, what in parts if count or what == "learned from"
    ]
    sentences = [
        f"{counted(read.rows, 'row')} of {read.tokens // read.rows:,} tokens"
        + (f": {', '.join(told)}" if told else "")
    ]
    if read.special:
        sentences.append(counted(read.special, "special token"))
    if read.joints:
        sentences.append(
            f"inside rows another text begins {'once' if read.joints == 1 else f'{read.joints:,} times'}"
        )
    if read.idle:
        sentences.append(
            f"{counted(read.idle, 'row')} {'has' if read.idle == 1 else 'have'} nothing to learn"
        )
    return "; ".join(sentences)


def piece(piece: Piece) -> str:
    """A piece of a row."""
    if piece.left_out:
        return f" … {counted(piece.tokens, 'token')} … "
    text = f"[{piece.text}]" if piece.special else piece.text.replace("\n", "↵")
    if piece.tokens > 1 and (piece.special or piece.padding):
        text += f"×{piece.tokens:,}"
    return f"{text}→{piece.label}" if piece.label else text


def key(read: Reading) -> list[tuple[str, str, str]]:
    """The kinds of what is shown of it, each with its sign and its meaning."""
    pieces = [piece for row in read.shown.values() for piece in row]
    kinds = {
        kind
        for piece in pieces
        for kind in (piece.role, piece.special and "special", piece.begins and "joint")
    }
    return [(kind, sign, meaning) for kind, (sign, meaning) in SIGNS.items() if kind in kinds]


def aim(loss: Aim) -> str:
    """What a loss came to."""
    if loss.value is None:
        return f"{loss.function}"
    chance = "" if loss.chance is None else f"; random guessing gives {number(round(loss.chance, 3))}"
    return f"{loss.function}: first loss {number(loss.value)}{chance}"


def targets(loss: Aim) -> str:
    """What the targets of a loss are."""
    words = [f"targets: {kind(loss.target)}, {content(loss.target)}"]
    if loss.target.of_integers and (told := classes(loss.target.counts)):
        words.append(told)
    if loss.ignored:
        words.append(f"{share(loss.ignored)} ignored")
    return "; ".join(words)


def tried(flight: Flight) -> list[str]:
    """What each probe measured."""
    told = []
    if (mixing := flight.mixing) is not None:
        depends = mixing.change > mixing.rounding
        told.append(
            f"samples: the output of {mixing.model} for a sample {'depends' if depends else 'does not depend'} on the"
            f" other {mixing.samples - 1:,} of its batch"
        )
    if (fit := flight.overfitting) is not None:
        told.append(
            f"one batch: its loss goes from {number(fit.first)} to {number(fit.lowest)} in {counted(fit.steps, 'step')}"
        )
    if flight.unmoved:
        names = ", ".join(each.name for each in flight.unmoved[:4])
        more = f" and {len(flight.unmoved) - 4:,} more" if len(flight.unmoved) > 4 else ""
        told.append(f"gradients: always zero for {names}{more}")
    elif fit is not None:
        told.append("gradients: none is entirely zero")
    return told
