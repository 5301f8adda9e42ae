"""Excel files for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openpyxl


def book(path: Path, *rows: list[Any], **more: list[list[Any]]) -> Path:
    made = openpyxl.Workbook()
    for row in rows:
        made.active.append(row)
    for name, others in more.items():
        sheet = made.create_sheet(name)
        for row in others:
            sheet.append(row)
    made.save(path)
    return path
