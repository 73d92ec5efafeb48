"""D2, D9: the work of the linter grows with its input, and not much faster, whatever the source looks like."""

from functools import partial
from pathlib import Path

import pytest
from counted_work import exponents, lint, on_deep_stack, work
from shapes import SHAPES, Shape, mixed

STEEPEST = 1.2
STEEPER = {
    "files that import the last": 1.9,
    "files whose stars meet": 1.5,
    "calls of two before": 1.3,
    "one file that imports all": 1.25,
}
"""The dry run of a script runs what it imports, up to 64 files: until there are so many, the work of a chain of files grows with its
square, most where each trains when it is imported. That of functions which each call two others grows fast until the steps of an entry run out: the largest one takes no more than its
share. A script may take steps for all that it imports."""
CALLS_OF_A_BYTE = 350
CALLS_OF_A_CHAIN = 560
"""The most for one byte at the sizes tried here, and in such a chain; ta-lint makes two million calls in a second."""


DOUBLED = "import torch\nmodel = torch.nn.Linear(2, 2)\nd = {'a': model(torch.zeros(1, 2)), 'b': model}\n"
TRAINED = "\nmodel(torch.zeros(1, 2)).sum().backward()\ntorch.optim.SGD(model.parameters()).step()\n"


@pytest.fixture(scope="module", autouse=True)
def _what_is_made_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Checks are imported and tables read before anything is counted."""
    folder = tmp_path_factory.mktemp("first")
    for number, shape in enumerate(SHAPES):
        on_deep_stack(partial(lint, shape.files(3), folder / str(number)))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_twice_the_source_takes_little_more_than_twice_the_work(shape: Shape, tmp_path: Path) -> None:
    works = [work(shape.files(size * shape.start), tmp_path / str(size)) for size in (1, 2, 4)]
    assert not [found for found in works[-1].findings if found.rule == "TA000"]
    assert max(exponents(works)) <= STEEPER.get(shape.name, STEEPEST), [each.calls for each in works]
    most = CALLS_OF_A_CHAIN if shape.name == "files that import the last" else CALLS_OF_A_BYTE
    assert works[-1].calls <= most * works[-1].size


LARGE = [
    "backward calls",  # each place of a step asked all patterns that end with one
    "classes in a chain",  # the order of the base classes of each class was merged anew
    "classes in diamonds",
    "wrapped models",  # each move to a device went over all wrappers
]


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape.name in LARGE], ids=str)
def test_what_grew_faster_at_20_kilobytes_no_longer_does(shape: Shape, tmp_path: Path) -> None:
    """Work that grows with the square of the size hides behind the rest of it in small sources."""
    count = shape.start
    while sum(map(len, shape.files(count).values())) < 20_000:
        count *= 2
    works = [work(shape.files(count // size), tmp_path / str(size)) for size in (2, 1)]
    assert max(exponents(works)) <= STEEPEST, [each.calls for each in works]


@pytest.mark.parametrize("seed", range(3))
def test_a_mix_of_shapes_grows_no_faster_than_they_do(seed: int, tmp_path: Path) -> None:
    works = [work(mixed(seed, 20 * size), tmp_path / str(size)) for size in (1, 2)]
    assert max(exponents(works)) <= STEEPEST, [each.calls for each in works]


def test_classes_that_derive_from_each_other_are_linted(tmp_path: Path) -> None:
    """D2: a diamond above each class made the work double with each of forty classes."""
    shape = next(shape for shape in SHAPES if shape.name == "classes in diamonds")
    fewer, more = (work(shape.files(size), tmp_path / str(size)) for size in (20, 40))
    assert more.calls < 3 * fewer.calls


@pytest.mark.parametrize(
    "use", ["unknown(d)", "print(d)", "torch.save(d, 'd.pt')", "torch.cat([d]).sum().backward()"]
)
def test_a_container_that_is_held_twice_is_walked_once(use: str, tmp_path: Path) -> None:
    """D2: of sixty dictionaries in one another, each held under two keys, each way in was walked, and the linter hung."""
    fewer, more = (
        work(
            {"train.py": (DOUBLED + "d = {'a': d, 'b': (d, d)}\n" * size + use + TRAINED).encode()},
            tmp_path / str(size),
        )
        for size in (5, 10)
    )
    assert more.calls < 3 * fewer.calls
