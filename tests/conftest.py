"""What tests of several folders start: a Dask cluster of two processes, and a Spark of two threads."""

from __future__ import annotations

import logging
import os
import shutil
import sys
import warnings

import pytest
from hypothesis import HealthCheck, settings

# A busy machine is no defect, and the same code passes or fails each time; `make fuzz` looks at new cases.
settings.register_profile(
    "grbb_ext", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("grbb_ext")


@pytest.fixture(scope="module")
def client():
    import dask
    from distributed import Client, LocalCluster

    settings = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": logging.CRITICAL}
    # Partitions as small as in tests would be moved to whichever worker is idle, and one might do all the work.
    with (
        dask.config.set({"distributed.scheduler.work-stealing": False}),
        LocalCluster(n_workers=2, **settings) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def spark():
    sessions = pytest.importorskip("pyspark.sql", reason="pyspark is not installed: pip install 'grbb_ext[spark]'")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java 17 or later, and there is none on this machine")
    # The workers have to run the interpreter of the tests.
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
        settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", "spark.driver.memory": "1g"}
        session = sessions.SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        yield session
        session.stop()
