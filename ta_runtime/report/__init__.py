"""A run as one page of HTML that needs nothing else: what it computed, step by step, and what is wrong with it."""

from ta_runtime.report.page import html

__all__ = ["html"]
