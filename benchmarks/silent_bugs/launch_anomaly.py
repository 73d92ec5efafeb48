"""Runs a script with autograd's anomaly detection on; `found.RANK.json` has the exception that ended it, if one did."""

import json
import os
import runpy
import sys
import traceback
from pathlib import Path

import torch


def main(script: str) -> None:
    torch.autograd.set_detect_anomaly(True)
    found = []
    try:
        runpy.run_path(script, run_name="__main__")
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
        lines = [
            frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == script
        ]
        found.append(
            {
                "rule": type(error).__name__,
                "line": (lines[-1] if lines else 0) or 0,
                "severity": "error",
                "message": str(error).partition("\n")[0],
            }
        )
    name = f"found.{os.environ.get('RANK', '0')}.json"
    Path(name).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
