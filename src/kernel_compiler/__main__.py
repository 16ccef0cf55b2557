"""`python -m kernel_compiler`: compile the kernels of a checkout, where they are out of date."""

from __future__ import annotations

from kernel_compiler.build import build

if __name__ == "__main__":
    build()
