"""TA704: training goes on from a file without all the state that it had, or loads state that no checkpoint has."""

from collections.abc import Iterator

from ta_lint.events.resumption import Forgotten, Misread, Resumption
from ta_lint.events.run import Run
from ta_lint.events.suspicion import Said, Suspicion

KEYWORDS = ((".save(", ".load(", "load_state_dict"),)
AROUND = (("load_state_dict", "distributed.checkpoint"), ("*optim*", "opt", "*sched*", "*scaler*"))


def check_run(run: Run) -> Iterator[Said]:
    for resumption in run.resumptions:
        for lost in resumption.lost:
            yield _without(resumption, lost)
    yield from map(_elsewhere, run.misread)


def _without(resumption: Resumption, lost: Forgotten) -> Suspicion:
    if lost.key is not None:
        message = f"the state of the {lost.role} is saved as `{lost.key}`, but not loaded where training resumes: load it too"
        return Suspicion(resumption.loaded, message, subject=lost.key, related=((lost.place, "saved here"),))
    message = (
        f"training resumes without the state of the {lost.role} `{lost.kind}`: save it in this checkpoint too"
    )
    loaded, saved = (resumption.loaded, "loaded here"), (resumption.saved, "saved here")
    (place, _), other = (saved, loaded) if saved[0].path == loaded[0].path else (loaded, saved)
    related = (other, (lost.place, "made here"))
    return Suspicion(place, message, related=related, is_note=lost.keeps_rate, needs=(other[0],))


def _elsewhere(misread: Misread) -> Suspicion:
    message = (
        f"`{misread.key}` is loaded, but this file never saves it: add it to the checkpoint"
        if misread.own is None
        else f"the model is loaded from `{misread.key}`, but saved as `{misread.own}`: use one key"
    )
    return Suspicion(misread.place, message, related=((misread.saved, "saved here"),))
