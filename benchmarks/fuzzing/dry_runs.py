"""What must hold of the dry run of every input: it raises nothing, and ends after a bounded number of calls."""

import tempfile
import time
import traceback
from pathlib import Path

from fuzzing import work
from fuzzing.properties import Input, Judgement
from ta_lint.dryrun.dryrun import dry_run
from ta_lint.dryrun.explain import explanation, text


def judged(given: Input) -> Judgement:
    """Dry-run an input, alone in a folder, and explain it."""
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
    for _ in text(explanation(dry_run(str(path)), str(path))):
        pass
