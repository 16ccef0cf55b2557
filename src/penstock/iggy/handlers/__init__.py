"""Commands, one file each, named by the command's code on the wire."""

from __future__ import annotations

import pkgutil
from importlib import import_module

from penstock.iggy.handlers.registry import HANDLERS

for _module in pkgutil.iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = ["HANDLERS"]
