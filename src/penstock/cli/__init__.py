"""The command `penstock`.

Exit codes: 0 done; 1 the command failed, and the last line says why; 2 the command line or the
configuration is wrong; 130 interrupted.
"""

from __future__ import annotations

import gc


def main() -> None:
    """Run the command line of this process."""
    # What modules make stays: to look for garbage among it takes a tenth of the time to load them.
    gc.disable()
    from penstock.cli.app import run
    from penstock.cli.streams import prepare_streams

    gc.freeze()
    gc.enable()
    prepare_streams()
    run()
