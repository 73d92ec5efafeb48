"""TA700: `torch.load` runs the pickle of a file."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Said, Suspicion


def check_progress(run: Run) -> Iterator[Said]:
    for loaded in run.checkpoints.loaded:
        if not loaded.unpickles:
            yield Refutation(
                loaded.place, "`weights_only` is True in this run", {"weights_only": "True in this run"}
            )
            continue
        if loaded.own:
            yield Refutation(loaded.place, "this process wrote the file", {"written by": "this process"})
            continue
        evidence: dict[str, int | str] = {}
        if loaded.unsafe is not None:
            evidence["names beyond weights_only"] = len(loaded.unsafe)
            if loaded.unsafe:
                evidence["first"] = loaded.unsafe[0]
            else:
                evidence["weights_only=True"] = "loads this file as well"
        yield Suspicion(
            loaded.place,
            "`torch.load` runs whatever code this pickle holds: load it with `weights_only=True`",
            evidence,
        )
