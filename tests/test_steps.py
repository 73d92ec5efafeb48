"""Where one step of a training ends and the next begins, when several optimizers make it up."""

import math

import pytest
import torch
from torch import nn

from ta_runtime.trace.event import Event
from ta_runtime.trace.signatures import Signatures
from ta_runtime.trace.tracer import Tracer


@pytest.mark.parametrize("overflowing", ["SGD", "Adam"])
def test_an_overflow_of_one_of_two_optimizers_leaves_the_steps_where_they_were(overflowing: str) -> None:
    events: list[Event] = []
    with Tracer(events.append, level="modules"):
        players = []
        for kind in (torch.optim.SGD, torch.optim.Adam):
            model = nn.Linear(2, 2)
            players.append((model, kind(model.parameters(), lr=0.1), torch.amp.GradScaler("cpu")))
        for number in range(6):
            for model, optimizer, scaler in players:
                optimizer.zero_grad()
                fails = number == 3 and type(optimizer).__name__ == overflowing
                scaler.scale(model(torch.ones(1, 2)).sum() * (math.inf if fails else 1.0)).backward()
                scaler.step(optimizer)
                scaler.update()
    made = [
        (event.step, event.name.split(".")[-2])
        for event in events
        if event.name.endswith(("SGD.step", "Adam.step"))
    ]
    assert made == [
        (number, name)
        for number in range(6)
        for name in ("SGD", "Adam")
        if (number, name) != (3, overflowing)
    ]


def test_arguments_that_never_come_again_are_not_remembered_for_ever() -> None:
    signatures = Signatures()
    for number in range(40_000):
        assert signatures.given(("epoch",), (number / 7,), {})[1].startswith('{"epoch":')
    assert len(signatures._arguments) <= 1 << 14
