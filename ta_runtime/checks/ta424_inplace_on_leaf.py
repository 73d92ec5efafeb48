"""TA424: a leaf that requires a gradient is changed in place, which autograd refuses."""

from collections.abc import Iterator

from ta_runtime.facts import Run, Suspicion

# As torch says it (torch/csrc/autograd/VariableTypeUtils.h), of the leaf and of a view of one.
_REFUSALS = ("a leaf Variable that requires grad", "a view of a leaf Variable that requires grad")


def check_run(run: Run) -> Iterator[Suspicion]:
    failure = run.failure
    if failure is None or failure.kind != "RuntimeError":
        return
    if failure.message.startswith(_REFUSALS):
        evidence: dict[str, int | str] = {"raised": failure.kind, "after steps": run.steps}
        yield Suspicion(
            failure.place,
            "an in-place change of a leaf that requires a gradient ends the run: do it under `no_grad()`",
            evidence,
        )
