"""What graphs import from Threadmill."""

from .tokens import get_token, get_token_sync

__all__ = ["get_token", "get_token_sync"]
