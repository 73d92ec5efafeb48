"""Facts about the ranks of a distributed run and wrapped models that no rule shows by itself."""

import libcst as cst
import pytest
from modules import call_in, module_of

from ta_lint.facts.torch.wrappers import ParallelWrapper

DISTRIBUTED = """\
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
"""


def code_of_guards(text: str) -> list[tuple[str, bool]]:
    module = module_of(DISTRIBUTED + text)
    return [(module.code(guard.test), guard.main) for guard in module.ranks.guards(call_in(module, "here()"))]


class TestRanks:
    def test_guards_come_from_the_inside_out(self) -> None:
        text = "def f(rank):\n    if rank == 0:\n        return\n    if is_main_process():\n        here()\n"
        assert code_of_guards(text) == [("is_main_process()", True), ("rank == 0", False)]

    @pytest.mark.parametrize(
        ("test", "main"),
        [
            ("rank == 0", True),
            ("not rank", True),
            ("rank < 1", True),
            ("rank <= 0", True),
            ("rank in (-1, 0)", True),
            ("rank % 8 == 0", True),
            ("int(os.environ.get('LOCAL_RANK', 0)) == 0", True),
            ("os.environ['RANK'] == '0'", True),
            ("os.getenv(key='SLURM_PROCID') == '0'", True),
            ("rank == 0 and verbose", True),
            ("not multi_gpu or rank == 0", True),
            ("not (rank != 0)", True),
            ("trainer.is_global_zero", True),
            ("rank", False),
            ("rank != 0", False),
            ("rank > 0", False),
            ("rank >= 1", False),
            ("rank >= 0", None),  # something is distributed
            ("rank == -1", None),
            ("rank == 0 or verbose", None),
            ("tp_rank == 0", None),
            ("dist.get_rank(group) == 0", None),
            ("lora_rank == 0", None),
            ("rank == world_size", None),
            ("os.environ['JOB'] == '0'", None),
        ],
    )
    def test_what_a_condition_says_of_those_who_pass_it(self, test: str, main: bool | None) -> None:
        expected = [] if main is None else [(test, main)]
        assert code_of_guards(f"if {test}:\n    here()\n") == expected
        opposite = [] if main is None else [(test, not main)]
        if " and " not in test and " or " not in test:
            assert code_of_guards(f"if {test}:\n    pass\nelse:\n    here()\n") == opposite

    @pytest.mark.parametrize("leaves", ["return", "sys.exit()", "exit(0)"])
    def test_who_has_left_passes_no_more(self, leaves: str) -> None:
        text = f"import sys\ndef f(rank):\n    if rank != 0:\n        {leaves}\n    here()\n"
        assert code_of_guards(text) == [("rank != 0", True)]

    def test_a_condition_around_a_function_that_is_defined_says_nothing(self) -> None:
        assert code_of_guards("if rank == 0:\n    def f():\n        here()\n") == []

    @pytest.mark.parametrize(
        ("calls", "expected"),
        [
            ("if rank == 0:\n    save()\n", True),
            ("if rank == 0:\n    save()\nsave()\n", False),
            ("", False),
        ],
    )
    def test_one_rank_alone_by_the_callers(self, calls: str, expected: bool) -> None:
        module = module_of(f"def save():\n    here()\n{calls}")
        assert module.ranks.only_main(call_in(module, "here()")) is expected


TRAINER = """\
class Trainer:
    def __init__(self, m):
        self.m = DDP(m)
    def f(self):
        here(self.m)
"""


def wrapped(text: str) -> str | None:
    """The call that wraps the model which the argument of `here` is."""
    module = module_of(DISTRIBUTED + text)
    [here] = [call for call in module.tree.all(cst.Call) if module.code(call.func) == "here"]
    found = module.wrappers.around(here.args[0].value)
    return module.code(found.call) if found is not None else None


class TestWrappers:
    @pytest.mark.parametrize(
        ("imported", "wrapper"),
        [
            ("torch.nn.parallel import DistributedDataParallel", ParallelWrapper.REPLICATED),
            ("torch.nn.parallel.distributed import DistributedDataParallel", ParallelWrapper.REPLICATED),
            ("torch.distributed.fsdp import FullyShardedDataParallel", ParallelWrapper.FLAT),
            ("torch.distributed.fsdp import fully_shard", ParallelWrapper.SHARDED),
            ("torch.distributed._composable.fsdp import fully_shard", ParallelWrapper.SHARDED),
            ("torch.nn import DataParallel", None),
            ("apex.parallel import DistributedDataParallel", None),
        ],
    )
    def test_which_wrapper_it_is(self, imported: str, wrapper: ParallelWrapper | None) -> None:
        name = imported.rpartition(" ")[2]
        module = module_of(f"from {imported}\nwrapped = {name}(model)\n")
        assert [found.wrapper for found in module.wrappers.all] == ([wrapper] if wrapper else [])

    def test_what_is_sharded_goes_by_its_name(self) -> None:
        module = module_of(
            "from torch.distributed.fsdp import fully_shard\n"
            "for layer in self.model.layers:\n    fully_shard(layer)\nfully_shard(self.model)\nfully_shard(make())\n"
        )
        assert module.wrappers.sharded == {"layer", "self.model"}

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("ddp = DDP(model)\nhere(ddp)\n", "DDP(model)"),
            ("here(DDP(model).cuda())\n", "DDP(model)"),
            ("model = DDP(model)\nmodel = model.to(device)\nhere(model)\n", "DDP(model)"),
            ("if many:\n    model = DDP(model)\nhere(model)\n", "DDP(model)"),
            ("def train(net):\n    here(net)\ntrain(DDP(model))\n", "DDP(model)"),
            ("def train(net):\n    here(net)\ntrain(DDP(model))\ntrain(model)\n", None),
            ("model = DDP(model)\nmodel = model.module\nhere(model)\n", None),
            ("model = make()\nif many:\n    model = DDP(model)\nelse:\n    here(model)\n", None),
            ("model = make()\nhere(model)\nmodel = DDP(model)\n", None),
            ("ddp = DDP(model)\nhere(model)\n", None),
            (TRAINER, "DDP(m)"),
            (f"{TRAINER}    def g(self):\n        self.m = self.m.module\n", None),
        ],
    )
    def test_whether_a_model_is_in_its_wrapper(self, text: str, expected: str | None) -> None:
        assert wrapped(text) == expected
