"""The command `penstock`.

Exit codes: 0 done; 1 the command failed, and the last line says why; 2 the command line or the
configuration is wrong; 130 interrupted.
"""

from __future__ import annotations


def main() -> None:
    """Run the command line of this process."""
    from penstock.cli.app import run

    run()
