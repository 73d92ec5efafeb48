"""What must hold of the dry run of every input: it and the facts that it makes raise nothing, and end after a bounded number of calls."""

import tempfile
import time
import traceback
from pathlib import Path

from fuzzing import work
from fuzzing.properties import Input, Judgement
from ta_lint.dryrun.collect.run import run_of
from ta_lint.dryrun.dryrun import dry_run
from ta_lint.dryrun.explain import explanation, text


def judged(given: Input) -> Judgement:
    """Dry-run an input, alone in a folder, collect its facts and explain it."""
    judgement = Judgement()
    began = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, given.name)
        path.write_bytes(given.data)
        try:
            with work.watched():
                _run(path)
            if time.process_time() - began > work.SUSPICIOUS:
                with work.limited():
                    _run(path)
        except work.Exhausted:
            judgement.add("too much work", "dry run")
        except Exception as error:  # noqa: BLE001 - whatever it raises is the problem
            place = traceback.extract_tb(error.__traceback__)[-1]
            judgement.add(
                "dry run raises",
                f"{type(error).__name__} in {Path(place.filename).stem}.{place.name}",
                traceback.format_exc(),
            )
    judgement.seconds = time.process_time() - began
    return judgement


def _run(path: Path) -> None:
    machine = dry_run(str(path))
    run_of(machine.events)
    for _ in text(explanation(machine, str(path))):
        pass
