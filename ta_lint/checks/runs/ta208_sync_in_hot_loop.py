"""TA208: the value of a tensor on an accelerator is read in every step."""

from collections.abc import Iterator

from ta_lint.events.run import Run
from ta_lint.events.suspicion import Refutation, Said, Suspicion, Unobserved

KEYWORDS = (("item", "tolist", "numpy", "cpu", "float", "int", "bool", "if", "print"),)
AROUND = ("*backward", "step", ("cuda", "device", "to", "Accelerator", "Fabric"))


def check_progress(run: Run) -> Iterator[Said]:
    for sync in run.syncs:
        evidence: dict[str, float | int | str] = {
            "syncs per step": round(sync.on_device / sync.steps, 2),
            "ms waiting per step": round(1e3 * sync.waited / sync.steps, 3),
        }
        if sync.again:
            yield Suspicion(
                sync.place,
                "every step stalls to read a value from the device: read it every few steps",
                evidence,
            )
        elif sync.skipped:
            because = f"{sync.skipped} of {sync.steps} steps right after a read have none"
            yield Refutation(sync.place, because, evidence | {"steps without one right after": sync.skipped})
        elif not sync.on_device:
            yield Unobserved(sync.place, f"all {sync.on_cpu} reads are of tensors on the CPU")
