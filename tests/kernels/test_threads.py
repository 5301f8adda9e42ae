"""One BLAS thread inside our sections, the user's own number outside, whatever the threads do."""

from __future__ import annotations

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from adacos import AdaCOSClassifier, load_pima
from adacos.kernels.threads import one_blas_thread
from adacos.policies import orders


def blas_threads() -> set[int]:
    return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two_threads():
    with threadpool_limits(2, user_api="blas"):
        yield


def test_a_section_has_one_thread_and_restores_the_setting():
    assert one_blas_thread(blas_threads)() == {1}
    assert blas_threads() == {2}


def test_an_error_restores_the_setting_too():
    with pytest.raises(ZeroDivisionError):
        one_blas_thread(lambda: 1 / 0)()
    assert blas_threads() == {2}


def test_fitting_has_one_thread_and_leaves_the_setting_alone(monkeypatch):
    seen = []
    built = orders.build_sequence_model

    def watched(*arguments):
        seen.append(blas_threads())
        return built(*arguments)

    monkeypatch.setattr(orders, "build_sequence_model", watched)
    X, y, *_ = load_pima(as_frame=False)
    policy = AdaCOSClassifier(cv=2, strengths="common").fit(X[:200], y[:200])
    policy.acquire(X[:5])
    assert seen == [{1}]
    assert blas_threads() == {2}
