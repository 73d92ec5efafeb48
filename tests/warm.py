"""A Python that has loaded torch, and becomes a command by a fork: to load torch takes seconds, to fork some milliseconds.

What runs is a process of its own, with an environment, a folder, a session and an end of its own, and none of our
modules in it, unless they are named. Only torch is there before the command asks for it.
"""

import contextlib
import gc
import json
import multiprocessing.process
import os
import random
import runpy
import selectors
import socket
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

NEEDS = ("torch", "torch._dynamo", "torch.distributed.tensor")  # what a training with an optimizer loads


def forked(listening: socket.socket) -> dict[str, Any]:
    """In each child the request for its command. The parent forks one for whoever connects, and tells how each ended."""
    waiting = selectors.DefaultSelector()
    waiting.register(listening, selectors.EVENT_READ)
    waiting.register(0, selectors.EVENT_READ)
    while True:
        for key, _ in waiting.select():
            if key.fileobj == 0:  # who started this is gone
                os._exit(0)
            elif key.fileobj is listening:
                end, _ = listening.accept()
                message, descriptors, _, _ = socket.recv_fds(end, 1 << 20, 3)
                request = json.loads(message)
                pid = os.fork()
                if pid == 0:
                    _close(waiting, end)
                    _become(request, descriptors)
                    return request
                for descriptor in descriptors:
                    os.close(descriptor)
                end.sendall(f"{pid}\n".encode())
                waiting.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, end))
            else:
                pid, end = key.data
                status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                with contextlib.suppress(OSError):  # it has given up waiting
                    end.sendall(f"{status}\n".encode())
                end.close()
                waiting.unregister(key.fileobj)
                os.close(key.fd)


def _close(waiting: selectors.BaseSelector, end: socket.socket) -> None:
    """Leave nothing open in a child that is its parent's."""
    end.close()
    for key in list(waiting.get_map().values()):
        if isinstance(key.fileobj, socket.socket):
            key.fileobj.close()
        elif key.fd != 0:
            os.close(key.fd)
            key.data[1].close()
    waiting.close()


def _become(request: dict[str, Any], descriptors: list[int]) -> None:
    os.setsid()
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.umask(request["umask"])
    os.chdir(request["folder"])
    multiprocessing.process.ORIGINAL_DIR = request["folder"]
    inherited, given = (_path(environment) for environment in (os.environ, request["environment"]))
    sys.path[1 : 1 + len(inherited)] = given
    os.environ.clear()
    os.environ.update(request["environment"])
    random.seed()  # each process begins with numbers of its own
    np.random.seed()


def _path(environment: Mapping[str, str]) -> list[str]:
    return [entry for entry in environment.get("PYTHONPATH", "").split(os.pathsep) if entry]


def run(words: list[str]) -> None:
    """What `python WORDS` does: `-m MODULE ARGUMENTS`, `-c CODE ARGUMENTS` or `SCRIPT ARGUMENTS`, after any `-W FILTER`."""
    sys.orig_argv[1:] = words
    while words[0] == "-W":
        warnings._processoptions([words[1]])
        words = words[2:]
    if words[0] == "-m":
        sys.path[0] = str(Path.cwd())
        sys.argv[:] = ["-m", *words[2:]]
        runpy._run_module_as_main(words[1])
        return
    if words[0] == "-c":
        sys.path[0] = ""
        sys.argv[:] = ["-c", *words[2:]]
        _execute(words[1].encode(), "<string>")
        return
    script = Path(words[0]).absolute()
    sys.path[0] = str(script.resolve().parent)
    sys.argv[:] = words
    _execute(script.read_bytes(), str(script), __file__=str(script), __cached__=None)


def _execute(source: bytes, path: str, **names: object) -> None:
    """Run a new `__main__`, and end as Python does where it raises."""
    main = ModuleType("__main__")
    vars(main).update(names, __builtins__=__builtins__)
    sys.modules["__main__"] = main
    try:
        exec(compile(source, path, "exec", dont_inherit=True), vars(main))  # noqa: S102 - as Python
    except Exception as error:  # noqa: BLE001 - it is the script's
        trace = error.__traceback__.tb_next if error.__traceback__ is not None else None  # from the script on
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        raise SystemExit(1) from None


if __name__ == "__main__":
    for name in (*NEEDS, *sys.argv[2:]):
        __import__(name)
    gc.collect()
    gc.freeze()
    server = socket.socket(socket.AF_UNIX)
    server.bind(sys.argv[1])
    server.listen()
    print("ready", flush=True)
    request = forked(server)
    exec(request["first"], {})  # noqa: S102 - what a `sitecustomize` would do
    run(request["words"])
