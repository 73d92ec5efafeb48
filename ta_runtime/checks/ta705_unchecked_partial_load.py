"""TA705: `load_state_dict(strict=False)` left keys out, and the code does not check which."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Said, Suspicion


def check_progress(run: Run) -> Iterator[Said]:
    for load in run.checkpoints.partial:
        evidence: dict[str, int | str] = {
            "keys loaded": load.loaded,
            "missing": load.missing,
            "unexpected": load.unexpected,
        }
        if not load.missing and not load.unexpected:
            because = f"all {load.loaded} keys match"
            yield Refutation(load.place, because, evidence)
        elif load.discarded:
            evidence["first"] = load.first
            yield Suspicion(
                load.place,
                "`load_state_dict(strict=False)` skips keys silently: check the keys that it returns",
                evidence,
            )
