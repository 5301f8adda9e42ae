"""Where the tests find the paper's data and the reference results, which are not in the project."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# Examples are drawn from a fixed seed, and a busy machine is not a failure.
settings.register_profile("adacos", derandomize=True, deadline=None)
settings.load_profile("adacos")

_NEXT_TO_REPOSITORY = Path(__file__).resolve().parents[2] / "shared"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--shared-data",
        type=Path,
        default=Path(os.environ.get("ADACOS_SHARED", _NEXT_TO_REPOSITORY)),
        help="folder holding data/ and reference/ (default: $ADACOS_SHARED, or ../shared)",
    )


@pytest.fixture(scope="session")
def shared_dir(pytestconfig: pytest.Config) -> Path:
    folder: Path = pytestconfig.getoption("--shared-data")
    if not (folder / "data").is_dir():
        pytest.skip(f"no data/ in {folder}: name the shared folder with --shared-data")
    return folder
