"""Runtime checks for PyTorch training: `import ta_runtime; ta_runtime.enable()`."""

from ta_runtime.api import disable, enable, findings
from ta_runtime.auditor import Auditor, Result, audit_dynamic, audit_step, autopatch
from ta_runtime.reporters import ConsoleReporter, JSONReporter, SARIFReporter
from ta_runtime.session import AuditFailed

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
]
