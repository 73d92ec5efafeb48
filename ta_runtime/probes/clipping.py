"""The clipping of gradients by norm, by a norm that is known, and by value."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from torch.nn.utils import clip_grad

from ta_runtime.probes.patching import Call, End, PutOn, Watch, code

_running: Call | None = None
"""The clipping that runs, for all who watch it: that by norm calls that by a known norm, which is no clipping of its own."""


def _clipping(function: Callable[..., Any]) -> PutOn:
    put_on = code(inspect.unwrap(function))

    def watched(watch: Watch) -> Callable[[], None]:
        def begin(call: Call) -> End | None:
            global _running
            if _running is not None and _running is not call:
                return None
            parameters = call.given(0, "parameters")
            if isinstance(parameters, Iterator):  # which could be read but once
                parameters = list(parameters)
            call.args = (parameters, *call.args[1:])
            call.kwargs.pop("parameters", None)
            end = watch(call)
            _running = call

            def over(call: Call) -> None:
                global _running
                _running = None
                if end is not None:
                    end(call)

            return over

        return put_on(begin)

    return watched


_WITH_NORM = getattr(clip_grad, "_clip_grads_with_norm_", None)  # torch 2.6; public by another name
_FUNCTIONS = (clip_grad.clip_grad_norm_, clip_grad.clip_grad_value_, _WITH_NORM)
PLACES = {"clip": tuple(_clipping(function) for function in _FUNCTIONS if function is not None)}
