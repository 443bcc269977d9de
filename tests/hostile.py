"""Values that misbehave: every hook that a caller may override either lies or blows up."""

from __future__ import annotations

from typing import Any


class Hostility(Exception):
    """Raised by a hook that nothing should have called."""


def _explode(*_args: Any, **_kwargs: Any) -> Any:
    raise Hostility


def _named(self: object) -> str:
    return f"<{type(self).__name__}>"


_HOOKS = (
    "__eq__ __ne__ __lt__ __le__ __gt__ __ge__ __hash__ __iter__ __len__ __bool__ __contains__ "
    "__getitem__ __str__ __format__ __int__ __index__ __float__ __abs__ __neg__ __add__ __radd__ __sub__ "
    "__rsub__ __mul__ __reversed__ __length_hint__ __copy__ __deepcopy__ __reduce__ __reduce_ex__ encode "
    "isascii isdigit startswith bit_length index count copy keys items get"
)


def _hostile(base: type, **extra: Any) -> Any:
    """A subclass of `base` whose hooks blow up; only its repr works, so that a failing test can be read."""
    hooks = {hook: _explode for hook in _HOOKS.split() if hasattr(base, hook) or hook.startswith("__")}
    return type(f"Hostile{base.__name__.title()}", (base,), {**hooks, "__repr__": _named, **extra})


HostileStr = _hostile(str)
HostileInt = _hostile(int)
HostileFloat = _hostile(float)
HostileList = _hostile(list)
HostileTuple = _hostile(tuple)
HostileDict = _hostile(dict)
HostileObject = _hostile(object)

# Lies instead of raising: equal to everything, as long as it likes, of another class than it is.
_LIES = {
    "__eq__": lambda self, other: True,
    "__ne__": lambda self, other: False,
    "__lt__": lambda self, other: False,
    "__gt__": lambda self, other: False,
    "__le__": lambda self, other: True,
    "__ge__": lambda self, other: True,
    "__hash__": lambda self: hash("process"),
    "__len__": lambda self: 2,
    "__bool__": lambda self: True,
    "__iter__": lambda self: iter(["process", 0]),
    "__str__": lambda self: "process",
    "__format__": lambda self, spec: "process",
    "__index__": lambda self: 0,
    "__int__": lambda self: 0,
    "__repr__": _named,
}
LyingStr: Any = type("LyingStr", (str,), _LIES)
LyingInt: Any = type("LyingInt", (int,), _LIES)
LyingList: Any = type("LyingList", (list,), _LIES)


def impostor(claimed: type) -> Any:
    """An object whose `__class__`, and so `isinstance`, says that it is something else."""
    return type("Impostor", (), {**_LIES, "__class__": property(lambda self: claimed)})()


def classless() -> Any:
    """An object whose class can't even be asked for."""
    return type("Classless", (), {"__class__": property(_explode), "__repr__": _named})()


def endless() -> list[Any]:
    """A list that contains itself."""
    loop: list[Any] = ["process", 0]
    loop.append(loop)
    return loop


def nested(depth: int) -> list[Any]:
    """Lists in lists, deeper than any recursion gets."""
    core: list[Any] = []
    for _ in range(depth):
        core = [core]
    return core
