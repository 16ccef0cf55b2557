"""Records what Java's client sends in transactions, for tests without it.

Run it by hand after an upgrade of the client, with the class path of its libraries:
`python tests/pulsar/record_transactions.py 'libraries/*'`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from record_golden import serve_in_thread

from penstock.pulsar.session import PulsarSession
from penstock.pulsar.wire.frames import parse_frame

GOLDEN = Path(__file__).parent / "golden" / "java_transactions.hex"
PROGRAM = Path(__file__).parents[1] / "support" / "PulsarTransactions.java"
LEFT_OUT = {"PING", "PONG"}


def main(class_path: str) -> None:
    frames: list[bytes] = []
    receive = PulsarSession.receive

    def recording(session: PulsarSession, frame: memoryview) -> object:
        frames.append(bytes(frame))
        return receive(session, frame)

    PulsarSession.receive = recording  # type: ignore[method-assign, assignment]
    with tempfile.TemporaryDirectory() as folder:
        port = serve_in_thread(Path(folder))
        command = ["java", "-cp", class_path, str(PROGRAM), f"pulsar://127.0.0.1:{port}", "golden"]
        subprocess.run(command, check=True)
        lines = [_line(frame) for frame in frames]
    GOLDEN.write_text("".join(line for line in lines if line.split()[0] not in LEFT_OUT))


def _line(frame: bytes) -> str:
    command = parse_frame(memoryview(frame)).command
    return f"{command.Type.Name(command.type)} {frame.hex()}\n"


if __name__ == "__main__":
    main(sys.argv[1])
