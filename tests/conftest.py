"""What holds for every test, before torch is imported."""

import os

from hypothesis import settings

os.environ["OMP_WAIT_POLICY"] = "PASSIVE"  # threads that spin stand still where cores are shared

# The same cases in every run, and no case fails for being slow.
settings.register_profile("ratchet", deadline=None, derandomize=True)
settings.load_profile("ratchet")
