"""Everything that chance decides in a world, by name: what is left out changes nothing of the rest."""

from __future__ import annotations

from collections.abc import Collection
from math import log
from random import Random


class Chances:
    """Of one seed. What may be left out of its world has a name, and happens unless it is left out."""

    def __init__(self, seed: int, only: Collection[str] | None = None) -> None:
        """With `only`, nothing else of what may be left out happens."""
        self.seed = seed
        self.happened: list[str] = []
        self._only = only

    def of(self, name: str) -> Random:
        """The choices about something, the same whatever else there is."""
        return Random(f"{self.seed}/{name}")

    def happens(self, name: str) -> bool:
        if self._only is not None and name not in self._only:
            return False
        self.happened.append(name)
        return True


class Faults:
    """Strike at some of many points, each of which is known by its number."""

    def __init__(self, chances: Chances, name: str, rate: float) -> None:
        self._chances = chances
        self._name = name
        self._rate = rate
        self._stream = chances.of(name)
        self._point = 0
        self._next = self._gap()

    def strike(self) -> Random | None:
        """Pass a point: the choices about the fault that strikes there, or None."""
        self._point += 1
        if self._point != self._next:
            return None
        self._next += self._gap()
        name = f"{self._name}/{self._point}"
        return self._chances.of(name) if self._chances.happens(name) else None

    def _gap(self) -> int:
        """Points until the next fault; as if each were decided for itself."""
        if self._rate <= 0:
            return 0
        return 1 + int(log(1 - self._stream.random()) / log(1 - self._rate))
