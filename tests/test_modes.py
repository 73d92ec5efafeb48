"""Facts about modes, passes and recording that no rule shows by itself."""

import libcst as cst
import pytest
from modules import call_in, module_of

from ta_lint.core.protocol import Action
from ta_lint.syntax.tree import Node


class TestPasses:
    def test_a_mode_that_a_helper_sets_is_that_of_the_variable_it_was_given(self) -> None:
        module = module_of(
            "def off(net):\n    net.eval()\n\nfor _ in range(3):\n    off(model)\n    model(1)\n"
        )
        loop: Node = module.tree.all(cst.For)[0]
        events = module.calls_in_loop.events(loop.body)  # type: ignore[attr-defined]
        assert [event.action for event in events] == [Action.EVAL, None]
        assert module.code(events[0].place) == "off(model)"

    @pytest.mark.parametrize(("call", "called"), [("model(1)", "model"), ("self.net.forward(1)", "self.net")])
    def test_forward_is_the_model_itself(self, call: str, called: str) -> None:
        module = module_of(call + "\n")
        assert module.code(module.calls_in_loop.called(call_in(module, call))) == called


class TestRecording:
    @pytest.mark.parametrize(
        ("code", "expected"),
        [
            ("for p in ps:\n    p.requires_grad = False\n", True),
            ("for p in ps:\n    p.requires_grad = flag\n", True),
            ("model.requires_grad_(False)\n", True),
            ("x.requires_grad_()\n", False),
            ("x.requires_grad = True\n", False),
            ("ps = [p for p in ps if p.requires_grad]\n", False),
            ("x = torch.zeros(1, requires_grad=False)\n", False),
        ],
    )
    def test_what_freezes(self, code: str, expected: bool) -> None:
        module = module_of(code)
        assert module.recording.freezes(module.tree.root) is expected


class TestApart:
    @pytest.mark.parametrize(
        ("code", "expected"),
        [
            ("if c:\n    a()\nelse:\n    b()\n", True),
            ("if c:\n    a()\nelif d:\n    b()\n", True),
            ("x = a() if c else b()\n", True),
            ("if c:\n    a()\n    b()\nelse:\n    d()\n", False),
            ("if c:\n    a()\nb()\n", False),
        ],
    )
    def test_branches_that_exclude_each_other(self, code: str, expected: bool) -> None:
        module = module_of(code)
        first, second = call_in(module, "a()"), call_in(module, "b()")
        assert module.tree.apart(first, second) is module.tree.apart(second, first) is expected
