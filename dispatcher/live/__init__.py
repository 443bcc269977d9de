"""Live delivery: events in, for real endpoints, in real time."""

from dispatcher.live.facade import Dispatcher

__all__ = ["Dispatcher"]
