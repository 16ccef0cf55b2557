"""An error is mapped by what it is, not by the order in which a table was written."""

from __future__ import annotations

import itertools

from penstock.requests.error_codes import ErrorCodes


class BaseError(Exception):
    pass


class SpecialError(BaseError):
    pass


class VerySpecialError(SpecialError):
    pass


def test_the_nearest_kind_wins_in_any_order() -> None:
    codes = [(BaseError, 1), (SpecialError, 2), (ValueError, 0)]
    for order in itertools.permutations(codes):
        table = ErrorCodes(dict(order))
        assert table.code_of(BaseError()) == 1
        assert table.code_of(SpecialError()) == 2
        assert table.code_of(VerySpecialError()) == 2
        assert table.code_of(UnicodeError()) == 0
        assert table.code_of(KeyError()) is None
