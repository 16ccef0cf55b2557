from __future__ import annotations

from penstock.pipeline.source.admission import Admission


def test_small_batches_wait_but_not_for_ever() -> None:
    now = 100.0
    admission = Admission(10, 60, lambda: now)
    assert admission.admits(1)
    assert not admission.admits(9)
    assert admission.admits(10)
    now = 159.9
    assert not admission.admits(9)
    now = 160.0
    assert admission.admits(0)
    assert not admission.admits(9)


def test_without_a_minimum_each_batch_begins() -> None:
    admission = Admission(None, 60, lambda: 0.0)
    assert all(admission.admits(0) for _ in range(3))
