"""Waiting for Dask workers that have ended or are frozen: it is said, and it can be limited."""

import os
import signal
import threading
import time
import warnings

import numpy as np
import pytest

from adacos import AdaCOSClassifier, InvalidInputError
from adacos.exceptions import WorkerWarning
from adacos.models import dask_wait
from tests.models.streamed import COSTS, frame

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("dask.distributed")
dd = pytest.importorskip("dask.dataframe")


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    monkeypatch.setattr(dask_wait, "SILENCE", 1.0)
    monkeypatch.setattr(dask_wait, "LOOK", 0.1)


def cluster(n_workers: int, processes: bool = True):
    local = {"n_workers": n_workers, "threads_per_worker": 1, "processes": processes}
    return distributed.LocalCluster(dashboard_address=None, **local)


def rows():
    return dd.from_pandas(frame(200), npartitions=2, sort=False)


def test_no_worker_is_said_and_limited():
    with cluster(0) as own, own.get_client(), dask.config.set({"adacos.timeout": "2s"}):
        began = time.monotonic()
        with (
            pytest.warns(WorkerWarning, match=r"Dask: no worker for \d+ s"),
            pytest.raises(InvalidInputError, match="must answer within the 2 s"),
        ):
            AdaCOSClassifier(COSTS, cv=3).fit(rows(), "ill")
        assert time.monotonic() - began < 20


def test_frozen_workers_are_said_and_work_continues_when_they_do():
    X, y = frame(200).drop(columns="ill"), frame(200)["ill"]
    with cluster(1) as own, own.get_client() as client:
        (pid,) = client.run(os.getpid).values()
        os.kill(pid, signal.SIGSTOP)
        # Twice the silence after which it is said.
        thaw = threading.Timer(3.0, os.kill, (pid, signal.SIGCONT))
        thaw.start()
        with pytest.warns(WorkerWarning, match=r"no report of any of the workers \(1\) for"):
            policy = AdaCOSClassifier(COSTS, cv=3).fit(rows(), "ill")
        thaw.join()
    held = AdaCOSClassifier(COSTS, cv=3).fit(X, y)
    np.testing.assert_array_equal(policy.predict(X), held.predict(X))


def test_frozen_workers_are_given_up():
    with cluster(1) as own, own.get_client() as client:
        (pid,) = client.run(os.getpid).values()
        os.kill(pid, signal.SIGSTOP)
        try:
            with (
                dask.config.set({"adacos.timeout": 0.5}),
                pytest.raises(InvalidInputError, match=r"workers: must answer within the 0\.5 s"),
            ):
                AdaCOSClassifier(COSTS, cv=3).fit(rows(), "ill")
        finally:
            os.kill(pid, signal.SIGCONT)


def test_a_worker_at_work_is_not_silent(monkeypatch):
    """However long a task takes: what counts is that its worker reports."""
    monkeypatch.setattr(dask_wait, "SILENCE", 3.0)
    with cluster(1) as own, own.get_client(), warnings.catch_warnings():
        warnings.simplefilter("error", WorkerWarning)
        with dask.config.set({"adacos.timeout": 3}):
            assert dask_wait.computed([dask.delayed(time.sleep)(5.0)]) == (None,)


@pytest.mark.parametrize("wrong", ["soon", 0, -1, "", [], True])
def test_what_is_no_time(wrong):
    with (
        cluster(1, processes=False) as own,
        own.get_client(),
        dask.config.set({"adacos.timeout": wrong}),
        pytest.raises(InvalidInputError, match=r"adacos\.timeout: must be a time above 0"),
    ):
        dask_wait.computed([dask.delayed(1)])


def test_what_a_task_raises_is_raised_here():
    with (
        cluster(1, processes=False) as own,
        own.get_client(),
        pytest.raises(TimeoutError, match="of its own"),
    ):
        dask_wait.computed([dask.delayed(_raises)()])


def _raises():
    raise TimeoutError("of its own")
