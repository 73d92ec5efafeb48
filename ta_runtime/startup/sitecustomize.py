"""Python runs this first in a program that a watched script starts. It leaves the environment as the script meant it."""

import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - as little as can be is loaded
_given = os.environ.get("PYTHONPATH", "")
_path = os.environ.pop("TA_RUNTIME_BEGIN", "")

sys.path[:] = [_each for _each in sys.path if _each != _here]
sys.path_importer_cache.pop(_here, None)
if _given == _here:
    del os.environ["PYTHONPATH"]
elif _given.startswith(_here + os.pathsep):
    os.environ["PYTHONPATH"] = _given[len(_here + os.pathsep) :]


def _call() -> None:
    try:
        from ta_runtime import startup
    except ImportError:  # another Python, which lacks it
        return
    startup.call(_path)


if _path:
    _waiting = os.path.join(_here, "waiting.py")  # noqa: PTH118
    with open(_waiting, encoding="utf-8") as _file:  # noqa: PTH123
        _names = {"__name__": "ta_runtime.startup.waiting"}
        exec(compile(_file.read(), _waiting, "exec"), _names)  # noqa: S102 - imported, it would be a module of the program's
    _names["begin"](_call)  # type: ignore[operator]

del sys.modules["sitecustomize"]
# that of the environment; if there is none, Python takes this for absent too
import sitecustomize  # type: ignore[import-not-found]  # noqa: F401
