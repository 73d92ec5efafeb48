"""TA215: a model loads a state whose keys have the prefix of a wrapper that it does not have."""

from collections.abc import Iterator

from ta_runtime.facts import Refutation, Run, Said, Suspicion


def check_progress(run: Run) -> Iterator[Said]:
    for load in run.loaded_keys:
        if load.wrapped and not load.fitting:
            prefix = load.prefix.rstrip(".")
            message = f"no loaded key fits the model, as each begins with `{prefix}.`: save the model without its wrapper"
            yield Suspicion(load.place, message, {"keys": load.wrapped})
        elif load.fitting:
            because = f"the model has {load.fitting} of the loaded keys"
            yield Refutation(load.place, because, {"keys that the model has": load.fitting})
