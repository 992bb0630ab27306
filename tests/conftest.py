"""Settings of all tests, and what those of several rooms share."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes depends on what else the machine does: no test fails by the clock.
# The same examples in every run of `make test`; `make test-search` looks for new ones.
settings.register_profile("gape", deadline=None, max_examples=50, derandomize=True)
settings.register_profile("search", deadline=None, max_examples=200)
settings.load_profile("gape")


@pytest.fixture
def real_data() -> Path:
    """The folder with real data; tests that need it are skipped without it."""
    folder = os.environ.get("GAPE_DATA")
    if not folder:
        pytest.skip("GAPE_DATA is not set: no real data to read")
    return Path(folder)


# A script that needs packages of the extra "proof"; doctests would import it.
collect_ignore = ["mutation.py"]
