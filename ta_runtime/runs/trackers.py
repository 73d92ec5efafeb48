"""Where else a run is told of: the runs of Weights & Biases and MLflow that the program has open, and TensorBoard's folders.

Nobody is asked over a network, and nothing is imported that the program has not.
"""

import contextlib
import gc
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from ta_runtime.runs import masking

Tracker = dict[str, str]
"""`tool`, and as far as there are `name`, `id`, `url` and `folder`."""


def opened() -> list[Tracker]:
    """Those that this process has open now."""
    found: list[Tracker] = []
    for look in (_wandb, _mlflow, _tensorboard):
        with contextlib.suppress(
            Exception
        ):  # other releases may have other attributes, and a link is not worth a training
            found += [{name: text for name, text in tracker.items() if text} for tracker in look()]
    return found


def _wandb() -> Iterator[Tracker]:
    run = getattr(sys.modules.get("wandb"), "run", None)
    if run is not None:
        url = "" if getattr(run, "offline", False) else str(run.url or "")  # offline it would warn
        folder = "" if url else str(run.dir or "")
        yield {"tool": "Weights & Biases", "name": str(run.name or ""), "id": str(run.id), "url": _open_to_all(url), "folder": folder}  # fmt: skip


def _mlflow() -> Iterator[Tracker]:
    if (run := active_run()) is not None:
        info, server = run.info, str(sys.modules["mlflow"].get_tracking_uri()).rstrip("/")
        url = f"{server}/#/experiments/{info.experiment_id}/runs/{info.run_id}" if is_web(server) else ""
        folder = "" if url else masking.text(server.removeprefix("file://"))
        yield {"tool": "MLflow", "name": str(info.run_name or ""), "id": str(info.run_id), "url": _open_to_all(url), "folder": folder}  # fmt: skip


def active_run() -> Any:
    """That of MLflow, None if there is none."""
    mlflow: Any = sys.modules.get("mlflow")
    return mlflow.active_run() if mlflow is not None and "mlflow.tracking.fluent" in sys.modules else None


def _tensorboard() -> Iterator[Tracker]:
    folders = map(_folder, writers())
    for folder in sorted({str(Path(folder).absolute()) for folder in folders if folder}):
        yield {"tool": "TensorBoard", "folder": folder}


def writers(modules: Iterable[str] = ("torch.utils.tensorboard", "tensorboardX")) -> list[Any]:
    """The writers of TensorBoard that live, in order of their folders.

    Nothing lists them: each refers to its class, which takes less than to look at all objects.
    """
    named = (getattr(sys.modules.get(name), "SummaryWriter", None) for name in modules)
    kinds = tuple(kind for kind in named if isinstance(kind, type))
    if not kinds:
        return []
    living = gc.get_referrers(*_with_subclasses(kinds))
    return sorted((each for each in living if issubclass(type(each), kinds)), key=_folder)


def _folder(writer: Any) -> str:
    return str(getattr(writer, "log_dir", None) or getattr(writer, "logdir", ""))


def _with_subclasses(kinds: Iterable[type]) -> Iterator[type]:
    for kind in kinds:
        yield kind
        yield from _with_subclasses(kind.__subclasses__())


def is_web(url: str) -> bool:
    """Whether it is an address that a page may link to."""
    try:
        return urlsplit(url).scheme in ("http", "https")
    except ValueError:  # brackets that are not closed
        return False


def _open_to_all(url: str) -> str:
    """An address without a user and a password in it."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def joined(known: list[Tracker], found: list[Tracker]) -> list[Tracker]:
    """Both, each once: what was open before may be closed by now."""
    return known + [each for each in found if each not in known]
