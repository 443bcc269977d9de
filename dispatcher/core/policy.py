"""When a failed attempt is tried again, and when it is not."""

from __future__ import annotations

import hashlib
from typing import Literal

from msgspec import Struct

OutcomeClass = Literal["success", "retryable", "permanent"]

LONGEST = 2**53
"""Of any wait: added to a time within the same bounds it still fits 64 bits."""

# The answers on which a receiver's Retry-After is heard.
HINTED_STATUSES = frozenset({429, 503})


class RetryPolicy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every number of retrying, for one endpoint.

    A policy made by hand counts in seconds; the one inside an operation or an entry counts in the
    log's unit (`scaled`). Raises ValueError for numbers that could never work.
    """

    max_attempts: int
    """Attempts in total, the first included."""
    waits: tuple[int, ...]
    """The wait after failed attempt n is waits[n - 1]; the last one repeats."""
    retryable: tuple[tuple[int, int], ...]
    """Inclusive ranges of statuses worth another try; 0 stands for "no answer"."""
    jitter_percent: int = 0
    """A wait is lengthened by up to this share of itself."""
    retry_after_cap: int = 3600
    """The longest Retry-After that is followed; 0 ignores the header."""

    def __post_init__(self) -> None:
        if self.max_attempts < 1:
            raise ValueError(f"max_attempts must be at least 1, not {self.max_attempts}")
        if self.max_attempts > 1 and not self.waits:
            raise ValueError("waits must name at least one wait when there is more than one attempt")
        if any(wait < 1 for wait in self.waits):
            raise ValueError("every wait must be at least 1, so that a retry is due in the future")
        if max(self.waits, default=0) > LONGEST or self.retry_after_cap > LONGEST:
            raise ValueError("no wait may be longer than 2**53")
        if not 0 <= self.jitter_percent <= 100:
            raise ValueError(f"jitter_percent must be 0 to 100, not {self.jitter_percent}")
        if self.retry_after_cap < 0:
            raise ValueError("retry_after_cap must not be negative")
        if any(low > high or (low <= 299 and high >= 200) for low, high in self.retryable):
            raise ValueError("retryable must hold ranges (low, high) that leave out 200 to 299")

    @classmethod
    def exponential(
        cls,
        *,
        attempts: int,
        base: int,
        cap: int,
        retryable: tuple[tuple[int, int], ...] | None = None,
        jitter_percent: int = 0,
    ) -> RetryPolicy:
        """Waits of base, doubled each time, never above cap."""
        waits = tuple(min(base << min(n, 62), cap) for n in range(attempts - 1))
        return cls(
            max_attempts=attempts,
            waits=waits,
            retryable=PROMISED_RETRYABLE if retryable is None else retryable,
            jitter_percent=jitter_percent,
        )

    def scaled(self, units_per_second: int) -> RetryPolicy:
        """The same policy, counted in a log's unit: 1 for seconds, 1000 for milliseconds."""
        return RetryPolicy(
            max_attempts=self.max_attempts,
            waits=tuple(wait * units_per_second for wait in self.waits),
            retryable=self.retryable,
            jitter_percent=self.jitter_percent,
            retry_after_cap=self.retry_after_cap * units_per_second,
        )

    def classify(self, status: int) -> OutcomeClass:
        """What an HTTP status (0: no answer) means under this policy."""
        if 200 <= status <= 299:
            return "success"
        for low, high in self.retryable:
            if low <= status <= high:
                return "retryable"
        return "permanent"

    def wait_after(self, attempt: int, seed: int | None) -> int:
        """How long to wait after failed attempt n; jitter is drawn from the seed, never from chance."""
        wait = self.waits[min(attempt, len(self.waits)) - 1]
        if seed is None or not self.jitter_percent:
            return wait
        draw = hashlib.sha256(b"%d:%d" % (seed, attempt)).digest()
        return wait + wait * self.jitter_percent * int.from_bytes(draw[:4], "big") // (100 << 32)


PROMISED_RETRYABLE = ((0, 0), (408, 408), (429, 429), (500, 599))
HOUR = 3600

PROMISED = RetryPolicy.exponential(attempts=6, base=30, cap=300)
"""What customers were promised: 30 s, doubled each time, never above 300 s, 6 attempts."""

STANDARD = RetryPolicy(
    max_attempts=10,
    waits=(5, 300, 1800, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR),
    retryable=((0, 199), (300, 409), (411, 599)),
    jitter_percent=10,
)
"""What Standard Webhooks advises: ten attempts over three days; only 410 Gone is permanent."""

NAMED_POLICIES = {"promised": PROMISED, "standard": STANDARD}
