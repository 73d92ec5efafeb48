"""What the rules about Ignite say of it, seen in the framework itself."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from ignite.engine import Engine, Events, create_supervised_evaluator
from ignite.handlers import EarlyStopping, ModelCheckpoint
from ignite.metrics import Loss
from torch import nn

logging.getLogger("ignite").setLevel(logging.ERROR)


class Run:
    """A training of 20 epochs whose loss falls, with an evaluation after each."""

    def __init__(self, sets_mode: bool = True) -> None:
        torch.manual_seed(0)
        inputs = torch.randn(32, 4)
        targets = inputs.sum(1, keepdim=True)
        self.data = [(inputs[at : at + 8], targets[at : at + 8]) for at in range(0, 32, 8)]
        self.model = nn.Linear(4, 1)
        self.sets_mode = sets_mode
        self.modes: list[bool] = []  # of each epoch
        self.losses: list[float] = []
        self.trainer = Engine(self.step)
        self.evaluator = create_supervised_evaluator(self.model, {"loss": Loss(nn.functional.mse_loss)})
        self.trainer.add_event_handler(Events.EPOCH_COMPLETED, self.evaluate)

    def step(self, engine: Engine, batch: Any) -> float:
        if self.sets_mode:
            self.model.train()
        loss = nn.functional.mse_loss(self.model(batch[0]), batch[1])
        self.model.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        with torch.no_grad():
            for parameter in self.model.parameters():
                assert parameter.grad is not None
                parameter.sub_(0.05 * parameter.grad)
        return loss.item()

    def evaluate(self) -> None:
        self.modes.append(self.model.training)
        self.evaluator.run(self.data)
        self.losses.append(self.evaluator.state.metrics["loss"])

    def start(self) -> "Run":
        self.trainer.run(self.data, max_epochs=20)
        return self


Score = Callable[[Engine], float]


def loss_of(engine: Engine) -> float:
    return float(engine.state.metrics["loss"])  # noqa: TA671 - what the tests are about


# -- TA671: score-in-wrong-direction --------------------------------------------------------------------------


@pytest.mark.parametrize(("score", "epochs"), [(loss_of, 3), (lambda engine: -loss_of(engine), 20)])
def test_a_loss_as_a_score_stops_a_training_that_gets_better(score: Score, epochs: int) -> None:
    run = Run()
    run.evaluator.add_event_handler(Events.COMPLETED, EarlyStopping(2, score, run.trainer))
    assert len(run.start().losses) == epochs


def test_a_loss_as_a_score_keeps_the_first_checkpoint(tmp_path: Path) -> None:
    run = Run()
    keeper = ModelCheckpoint(tmp_path, score_function=loss_of, score_name="loss")
    run.evaluator.add_event_handler(Events.COMPLETED, keeper, {"model": run.model})
    assert run.start().losses[0] > run.losses[-1]
    assert f"{run.losses[0]:.4f}" in str(keeper.last_checkpoint)


def test_a_mode_turns_the_score() -> None:
    run = Run()
    run.evaluator.add_event_handler(Events.COMPLETED, EarlyStopping(2, loss_of, run.trainer, mode="min"))
    assert len(run.start().losses) == 20


# -- TA673: step-without-train-mode ---------------------------------------------------------------------------


def test_an_evaluator_leaves_the_model_in_evaluation_mode() -> None:
    assert Run(sets_mode=False).start().modes == [True] + 19 * [False]
    assert Run(sets_mode=True).start().modes == 20 * [True]


# -- TA672: stopping-attached-to-trainer ----------------------------------------------------------------------


def test_a_score_of_the_trainer_is_that_of_its_last_batch() -> None:
    run = Run()
    outputs: list[Any] = []
    scored: list[float] = []
    run.trainer.add_event_handler(
        Events.ITERATION_COMPLETED, lambda engine: outputs.append(engine.state.output)
    )

    def score(engine: Engine) -> float:
        scored.append(float(engine.state.output or 0))
        return -scored[-1]

    run.trainer.add_event_handler(Events.EPOCH_COMPLETED, EarlyStopping(30, score, run.trainer))
    run.start()
    assert scored == outputs[3::4]


def test_an_evaluator_that_runs_on_two_sets_scores_both() -> None:
    run = Run()
    scored: list[float] = []

    def score(engine: Engine) -> float:
        scored.append(-loss_of(engine))
        return scored[-1]

    run.trainer.add_event_handler(Events.EPOCH_COMPLETED, lambda: run.evaluator.run(run.data[:1]))
    run.evaluator.add_event_handler(Events.COMPLETED, EarlyStopping(100, score, run.trainer))
    run.start()
    assert len(scored) == 40
