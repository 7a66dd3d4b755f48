"""Ports for processes that have to be told where to listen."""

import random
import socket
from typing import Final

BELOW_CLIENTS: Final = range(15_000, 30_000)
"""No system gives these to a client's end of a connection, so nobody takes one before its process does."""


def free_port() -> int:
    """A port of this machine that nothing listens on."""
    while True:
        port = random.choice(BELOW_CLIENTS)
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError:
            continue
