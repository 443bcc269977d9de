"""The command line. What a command needs beyond its options is imported when it runs."""

from dispatcher.cli.root import main

__all__ = ["main"]
