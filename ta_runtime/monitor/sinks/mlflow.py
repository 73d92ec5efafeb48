"""Numbers as metrics of a run of MLflow."""

import contextlib
import hashlib
import re
import threading
import time
from collections.abc import Mapping
from pathlib import PurePosixPath
from queue import Full, Queue
from typing import TYPE_CHECKING, TypeAlias

from ta_lint.core.errors import UsageError
from ta_runtime import ranks
from ta_runtime.extras import needs

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Run, RunTag

    Batch: TypeAlias = tuple[list[Metric], list[RunTag]]

_BATCH = 1000  # metrics that a server takes in one request
_LENGTH = 250  # characters that it takes in a name
_TEXT = 5000  # characters that it takes in a tag
_PATIENCE = 5.0  # seconds that the end waits for a server that the training does not wait for
_WAITING = 16  # steps that may wait for a slow server before the training does


class MLflow:
    """Metrics of a run, sent by a thread, as a server that is gone is tried for minutes.

    What goes wrong there is raised with the next step. MLflow's own sending in the background loses what is on its way
    when the process ends.

    MLflow takes letters, digits, `_`, `-`, `.`, `:`, spaces and `/` in a name; others become `_`. A name that another
    key has, or that is a folder of one, gets a mark of its own.

    Args:
        run: or its id; by default the active one, on rank 0. It is not ended.
        waits: whether the training waits for a slow server. Without, what it is too slow for is lost, and the end waits for a
            few seconds.

    Raises:
        UsageError: there is no run; mlflow is missing.
    """

    def __init__(self, run: "Run | str | None" = None, *, waits: bool = True) -> None:
        with needs("mlflow", "mlflow"):
            import mlflow
        if run is None and not ranks.rank():
            run = mlflow.active_run()
            if run is None:
                raise UsageError("MLflow has no active run; call `mlflow.start_run()` before, or give `run`")
        self._names = MlflowKeys()
        self._waits = waits
        self._errors: list[Exception] = []
        self._queue: Queue[Batch | None] = Queue(_WAITING)
        self._thread: threading.Thread | None = None
        if run is not None:
            identity = run if isinstance(run, str) else run.info.run_id
            self._thread = threading.Thread(
                target=_send, args=(self._queue, self._errors, mlflow.MlflowClient(), identity), daemon=True
            )
            self._thread.start()

    def write(self, step: int, values: Mapping[str, float]) -> None:
        from mlflow.entities import Metric

        now = time.time_ns() // 1_000_000
        self._put([Metric(self._names[key], value, now, step) for key, value in values.items()], [])

    def tell(self, step: int, name: str, text: str) -> None:
        """Set a tag of the run, in the place of what was there."""
        from mlflow.entities import RunTag

        self._put([], [RunTag(name, text[:_TEXT])])

    def _put(self, metrics: "list[Metric]", tags: "list[RunTag]") -> None:
        if self._thread is None:
            return
        self._raise()
        with contextlib.suppress(Full):
            self._queue.put((metrics, tags), block=self._waits)

    def flush(self) -> None:
        """Wait for what is on its way."""
        self._queue.join()
        self._raise()

    def close(self) -> None:
        if self._thread is not None:
            patience = None if self._waits else _PATIENCE
            with contextlib.suppress(Full):
                self._queue.put(None, timeout=patience)
            self._thread.join(patience)
        self._raise()

    def __str__(self) -> str:
        return "MLflow"

    def _raise(self) -> None:
        if self._errors:
            raise self._errors[0]


def _send(queue: "Queue[Batch | None]", errors: list[Exception], client: "MlflowClient", run: str) -> None:
    while (batch := queue.get()) is not None:
        metrics, tags = batch
        try:
            for start in range(0, 0 if errors else len(metrics), _BATCH):
                client.log_batch(run, metrics[start : start + _BATCH])
            if tags and not errors:
                client.log_batch(run, tags=tags)
        except Exception as error:  # noqa: BLE001 - it is raised where the run can go on
            errors.append(error)
        finally:
            queue.task_done()
    queue.task_done()


class MlflowKeys(dict[str, str]):
    """Of each key the name that MLflow takes for it, and for no other."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._folders: set[str] = set()

    def __missing__(self, key: str) -> str:
        parts = [re.sub(r"[^\w.\- :]", "_", part) for part in key.split("/")]
        name = "/".join("_" if part in ("", ".", "..") else part for part in parts)
        folders = _folders(name)
        if len(name) > _LENGTH or name in self._taken | self._folders or folders & self._taken:
            mark = hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()[:8]
            name = f"{name.replace('/', '_')[: _LENGTH - 9]}_{mark}"
            folders = set()
        self._taken.add(name)
        self._folders |= folders
        self[key] = name
        return name


def _folders(name: str) -> set[str]:
    """The folders that a store of files makes for a name, none of which can be a name as well."""
    return {str(parent) for parent in PurePosixPath(name).parents} - {"."}
