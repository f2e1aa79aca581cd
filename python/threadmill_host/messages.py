"""Types of the protocol with the service (host.ts). Texts inside messages are JSON in the wire format of the API."""

from typing import Any, NamedTuple

Message = dict[str, Any]


class RunKey(NamedTuple):
    """One claim of a run."""

    run_id: str
    epoch: int

    def fields(self) -> Message:
        return {"run_id": self.run_id, "epoch": self.epoch}


PROTOCOL = 1

MAX_MESSAGE_BYTES = 64 * 1024 * 1024


def too_large(what: str, size: int) -> str:
    return f"The {what} has {round(size / 1_000_000)} MB; at most 64 MB can be stored."
