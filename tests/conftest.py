"""What holds for every test, before torch is imported."""

import os

import pytest
from hypothesis import settings

os.environ["GOMP_SPINCOUNT"] = "2000"  # as in tasks.stages.pin

# The same cases in every run, and no case fails for being slow.
settings.register_profile("ratchet", deadline=None, derandomize=True)
settings.load_profile("ratchet")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whole rounds, which have a time limit of their own, come first, and workers even out with short tests."""
    items.sort(key=lambda item: item.get_closest_marker("timeout") is None)
