"""Runtime checks for PyTorch training: `import ta_runtime; ta_runtime.enable()`.

The names are loaded when they are first asked for, and torch with them: `ta-runtime --help` needs neither.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ta_runtime.api import disable, enable, findings, log
    from ta_runtime.audit.auditor import Auditor, audit_dynamic, audit_step, autopatch
    from ta_runtime.audit.reporters import ConsoleReporter, JSONReporter, SARIFReporter
    from ta_runtime.audit.result import Result
    from ta_runtime.audit.session import AuditFailed

__all__ = [
    "AuditFailed",
    "Auditor",
    "ConsoleReporter",
    "JSONReporter",
    "Result",
    "SARIFReporter",
    "audit_dynamic",
    "audit_step",
    "autopatch",
    "disable",
    "enable",
    "findings",
    "log",
]

_MODULES = {
    "AuditFailed": "audit.session",
    "ConsoleReporter": "audit.reporters",
    "JSONReporter": "audit.reporters",
    "Result": "audit.result",
    "SARIFReporter": "audit.reporters",
    "disable": "api",
    "enable": "api",
    "findings": "api",
    "log": "api",
}
"""Where each name is; in `audit.auditor` if it is not here."""


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_MODULES.get(name, 'audit.auditor')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
