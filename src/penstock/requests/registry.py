"""Who answers what: each handler registers itself, so a registry tells what is really there."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import TypeVar

KeyT = TypeVar("KeyT")
HandlerT = TypeVar("HandlerT")
HandleT = TypeVar("HandleT", bound=Callable[..., object])


class Registry(dict[KeyT, HandlerT]):
    """The handlers of one protocol, by what a request names: an API, a command.

    A handler is a function of a request and a `penstock.requests.call.Call` that returns a
    `penstock.session.Answer`, and what its session has to know about it.
    """

    def register(
        self, key: KeyT, describe: Callable[[HandleT], HandlerT]
    ) -> Callable[[HandleT], HandleT]:
        """Return a decorator that makes a function the one that answers `key`."""

        def decorate(handle: HandleT) -> HandleT:
            assert key not in self, f"{key!r} has two handlers"
            self[key] = describe(handle)
            return handle

        return decorate


def register_all(package: str, path: Iterable[str]) -> None:
    """Import every module of a package, of which the handlers register themselves."""
    for module in pkgutil.iter_modules(path):
        import_module(f"{package}.{module.name}")
