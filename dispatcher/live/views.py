"""What a dispatcher tells of its events: an operator's view, or what the tenant may know."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dispatcher.audit import history as audit_history
from dispatcher.audit import standing
from dispatcher.audit.names import event_name, without_tenant
from dispatcher.audit.tenant_view import entry_for_tenant, status_for_tenant
from dispatcher.core.state import State
from dispatcher.delivery.accepting import check_name
from dispatcher.errors import StorageError
from dispatcher.log.open import Database, Target


class Views:
    """Reads of one database, over connections that last until it is closed."""

    def __init__(self, database: Target) -> None:
        self._reading = Database(database, "read", lasting=True)
        self._closed = False

    def close(self) -> None:
        self._closed = True
        self._reading.close()

    @contextmanager
    def _standing(self) -> Iterator[State]:
        if self._closed:
            raise StorageError("this dispatcher is closed", "Open another one.")
        with standing.standing(self._reading) as state:
            yield state

    def status(
        self, endpoint_id: str, event_id: str, *, tenant: str = "default", as_tenant: bool = False
    ) -> dict[str, Any]:
        """How an event stands, and why. Raises NotFound.

        state, attempts of max_attempts, next_attempt_at, last_status and last_error; disabled (why the
        endpoint is), waits_behind (an event), blocks (how many later ones wait for it, 10,000 at most);
        in_flight_since and worker, while a request is under way; erased: whether its payload is, and
        then scrubbed: whether no byte of its key is left in the database and the files beside it. The state
        is `accepted` of one that is not in the log yet, and `refused`, with the reason, when it never came
        there; accepted_at tells when it was.
        """
        with self._standing() as state:
            found = standing.status_of(state, tenant, event_id, endpoint_id)
        del found["tenant"]
        return status_for_tenant(found) if as_tenant else found

    def endpoint_of(self, event_id: str, *, tenant: str = "default") -> str:
        """The one endpoint of a tenant that has an event of this id. NotFound; AmbiguousEvent."""
        with self._standing() as state:
            return event_name(state, tenant, event_id).split("/")[1]

    def history(
        self, endpoint_id: str, event_id: str, *, tenant: str = "default", as_tenant: bool = False
    ) -> list[dict[str, Any]]:
        """Every entry about an event, as JSON values. Raises NotFound."""
        name = check_name(tenant, endpoint_id, event_id)
        with self._standing() as state:
            rows = audit_history.history(state, name)
        found = [without_tenant(audit_history.as_json(row)) for row in rows]
        return [entry_for_tenant(entry) for entry in found] if as_tenant else found

    def dead_letters(
        self, endpoint_id: str, *, tenant: str = "default", as_tenant: bool = False
    ) -> list[dict[str, Any]]:
        """An endpoint's dead events, in the order of their latest death. Raises NotFound."""
        name = check_name(tenant, endpoint_id)
        with self._standing() as state:
            found = [without_tenant(letter) for letter in standing.dead_letters(state, name)]
        return [status_for_tenant(letter) for letter in found] if as_tenant else found
