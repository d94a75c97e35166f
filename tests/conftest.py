"""What holds for every test, before torch is imported."""

import os

os.environ["OMP_WAIT_POLICY"] = "PASSIVE"  # threads that spin stand still where cores are shared
