"""Fetch all of them."""

from __future__ import annotations

from iggy_suites import RELEASES, prepare, prepare_java

for release in RELEASES:
    prepare(release)
prepare_java()
