"""What a run saves and loads."""

import sys

import torch
from torch import nn

from ta_runtime.probes.patching import Watch, attribute, code
from ta_runtime.probes.undo import Undo

# What keeps weights without `torch.save`, if it is loaded.
_OTHERS = {
    "safetensors.torch": ("save_file", "save_model"),
    "torch.distributed.checkpoint": ("save", "async_save"),
    "torch.jit": ("save",),
    "torch.onnx": ("export",),
    "joblib": ("dump",),
    "cloudpickle": ("dump",),
}


def _others(watch: Watch) -> Undo:
    undo = Undo()
    for name, functions in _OTHERS.items():
        module = sys.modules.get(name)
        for each in functions:
            if hasattr(module, each):
                undo.patch(module, each, watch)
    return undo


PLACES = {
    "save": (code(torch.serialization.save),),
    "save_elsewhere": (_others,),
    "load": (code(torch.serialization.load),),
    "module_state": (attribute(nn.Module, "state_dict"),),
    "load_module_state": (attribute(nn.Module, "load_state_dict"),),
    "optimizer_state": (attribute(torch.optim.Optimizer, "state_dict"),),
    "load_optimizer_state": (attribute(torch.optim.Optimizer, "load_state_dict"),),
}
