"""The clipping of gradients by norm and by value."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from torch.nn.utils import clip_grad

from ta_runtime.probes.patching import Call, End, PutOn, Watch, code


def _clipping(function: Callable[..., Any]) -> PutOn:
    put_on = code(inspect.unwrap(function))

    def watched(watch: Watch) -> Callable[[], None]:
        def begin(call: Call) -> End | None:
            parameters = call.given(0, "parameters")
            if isinstance(parameters, Iterator):  # which could be read but once
                parameters = list(parameters)
            call.args = (parameters, *call.args[1:])
            call.kwargs.pop("parameters", None)
            return watch(call)

        return put_on(begin)

    return watched


PLACES = {"clip": (_clipping(clip_grad.clip_grad_norm_), _clipping(clip_grad.clip_grad_value_))}
