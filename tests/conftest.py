"""For every tier: a test that leaks fails, Airflow's home is a folder of this run, property tests are the same each time."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

import hypothesis

from tests.support.leaks import charged_kinds, nothing_left_behind, pytest_configure
from tests.support.s3 import bucket

__all__ = ["bucket", "charged_kinds", "nothing_left_behind", "pytest_configure"]

# Airflow makes its home when it is imported: never the home of whoever runs the tests.
if "AIRFLOW_HOME" not in os.environ:
    os.environ["AIRFLOW_HOME"] = tempfile.mkdtemp(prefix="sparkddp-tests-airflow-")
    atexit.register(shutil.rmtree, os.environ["AIRFLOW_HOME"], ignore_errors=True)

# No deadline: a busy machine is not a fault. Derandomized: a run that fails, fails for everybody.
hypothesis.settings.register_profile("sparkddp", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("sparkddp")
