"""TA910 where Markdown cannot say it: columns, unreadable syntax, and what the check costs."""

import subprocess
import sys

from ta_lint.checks import TextFinding
from ta_lint.checks.ta910_undefined_name import check_text
from ta_lint.core.source import Source


def reports(text: str) -> list[TextFinding]:
    return list(check_text(Source("train.py", f"{text}epoch = 0\n")))


def test_the_whole_name_is_marked_in_characters_not_bytes() -> None:
    (report,) = reports('import math\nprint("Größe: ½", größe)\n')
    assert report[:4] == (2, 19, 2, 24)
    assert "`größe`" in report.message


def test_a_name_inside_an_f_string_has_its_own_place() -> None:
    (report,) = reports('import math\nprint(f"""loss\n  {loss:.3f}""")\n')
    assert report[:4] == (3, 4, 3, 8)


def test_a_name_is_reported_once_in_each_scope() -> None:
    program = "import math\nfirst = time.time()\nlast = time.time()\ndef f():\n    return time.time(), time.time()\n"
    assert [report.line for report in reports(program)] == [2, 5]


def test_syntax_that_this_python_does_not_know_is_silent() -> None:
    assert reports("def later(:\n    return missing\n") == []


def test_a_file_without_a_suspect_costs_neither_a_tree_nor_pyflakes() -> None:
    program = """
import sys
from ta_lint.checks.ta910_undefined_name import check_text
from ta_lint.core.source import Source
source = Source("train.py", "import torch\\nmodel = torch.nn.Linear(2, 1)\\nfor epoch in model:\\n    print(model)\\n")
assert list(check_text(source)) == []
assert "syntax" not in vars(source) and "pyflakes.checker" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_comment_about_training_makes_no_file_of_a_run() -> None:
    text = "import torch\n\n\ndef f():\n    # loss.backward()\n    return missing\n"
    assert list(check_text(Source("train.py", text))) == []
    assert list(check_text(Source("train.py", text.replace("# ", "")))) != []
