"""Something that is not as it should be."""

from __future__ import annotations

from typing import NamedTuple


class Finding(NamedTuple):
    position: int | None
    """The first position concerned, where there is one."""
    message: str

    def __str__(self) -> str:
        return self.message if self.position is None else f"position {self.position}: {self.message}"
