"""Runtime checks for PyTorch training: `import ta_runtime; ta_runtime.enable()`."""

from ta_runtime.api import disable, enable, findings
from ta_runtime.session import AuditFailed

__all__ = ["AuditFailed", "disable", "enable", "findings"]
