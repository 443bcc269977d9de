"""What a request holds, byte by byte."""

from __future__ import annotations

import base64
import time
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from dispatcher.delivery.authentication import Authentication, BasicLogin, BearerToken, SecretHeader
from dispatcher.delivery.transport import Method
from dispatcher.errors import UsageError
from dispatcher.live import Dispatcher
from tests.acceptance.conftest import Opened
from tests.acceptance.lively import QUICK, MovedClock, eventually_is
from tests.acceptance.receiver import Arrival, Receiver

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def send(live: Dispatcher, receiver: Receiver, payload: Any, **options: Any) -> Arrival:
    """An event, enqueued and arrived."""
    with live.worker():
        live.enqueue("shop", payload, **options)
        return receiver.next()


def is_signed(arrival: Arrival, secret: str) -> bool:
    try:
        Webhook(secret).verify(arrival.body.decode(), arrival.headers)
    except WebhookVerificationError:
        return False
    except ValueError:
        pass  # It goes on to read JSON, once the signature was found good.
    return True


@pytest.mark.parametrize(
    ("payload", "body"),
    [
        ({"n": "é 😱"}, '{"n":"é 😱"}'.encode()),
        ({"id": 616581622363398142, "f": 1.0}, b'{"id":616581622363398142,"f":1.0}'),
        (
            {"least": -(2**63), "most": 2**64 - 1},
            b'{"least":-9223372036854775808,"most":18446744073709551615}',
        ),
        ({"b": 1, "a": 2}, b'{"b":1,"a":2}'),
        ({"a": None}, b'{"a":null}'),
        (0, b"0"),
        (False, b"false"),
        (None, b"null"),
        ({}, b"{}"),
        ([], b"[]"),
        ("", b""),
        (b"", b""),
        ("é 😱\r\n", "é 😱\r\n".encode()),
        ('{"a": 1}', b'{"a": 1}'),
        (bytes(range(256)), bytes(range(256))),
        (b"x" * 256 * 1024, b"x" * 256 * 1024),
    ],
)
def test_the_body_is_sent_as_it_was_given(
    live: Dispatcher, receiver: Receiver, payload: Any, body: bytes
) -> None:
    live.register("shop", receiver.url)
    assert send(live, receiver, payload).body == body


def test_what_is_sent_unless_told_otherwise(live: Dispatcher, receiver: Receiver, clock: MovedClock) -> None:
    secret = live.register("shop", receiver.url + "?a=%20b&c=é")
    arrival = send(live, receiver, {"a": 1}, event_id="evt-1")
    assert arrival.method == "POST"
    assert arrival.path == "/hook?a=%20b&c=%C3%A9"
    assert is_signed(arrival, secret)
    assert arrival.headers.pop("webhook-signature").startswith("v1,")
    assert arrival.headers == {
        "host": receiver.address,
        "user-agent": "webhook-dispatcher",
        "accept-encoding": "identity",
        "content-length": "7",
        "content-type": "application/json",
        "idempotency-key": "evt-1",
        "webhook-id": "evt-1",
        "webhook-timestamp": str(clock.ms // 1000),
    }


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_the_method_is_the_endpoints(live: Dispatcher, receiver: Receiver, method: Method) -> None:
    live.register("shop", receiver.url, method=method)
    assert send(live, receiver, 1).method == method


@pytest.mark.parametrize(
    ("auth", "name", "value"),
    [
        (BearerToken(token="t0ken"), "authorization", "Bearer t0ken"),
        (
            BasicLogin(username="ü", password="p:w"),
            "authorization",
            "Basic " + base64.b64encode("ü:p:w".encode()).decode(),
        ),
        (SecretHeader(name="X-Api-Key", value="k"), "x-api-key", "k"),
    ],
)
def test_the_endpoints_authentication_beats_a_header(
    live: Dispatcher, receiver: Receiver, auth: Authentication, name: str, value: str
) -> None:
    live.register("shop", receiver.url, auth=auth, headers=[(name, "forged")])
    assert send(live, receiver, 1, headers=[(name.upper(), "forged")]).headers[name] == value


def test_a_login_in_the_url_is_sent_as_one(live: Dispatcher, receiver: Receiver) -> None:
    live.register("shop", receiver.url.replace("//", "//user:p%40ss@"))
    login = base64.b64encode(b"user:p@ss").decode()
    assert send(live, receiver, 1).headers["authorization"] == f"Basic {login}"


def test_an_events_headers_beat_its_endpoints_and_those_the_defaults(
    live: Dispatcher, receiver: Receiver
) -> None:
    cloud = ("content-type", "application/cloudevents+json")
    live.register("shop", receiver.url, headers=[cloud, ("X-A", "endpoint"), ("X-B", "endpoint")])
    plain = send(live, receiver, 1).headers
    assert (plain["content-type"], plain["x-a"]) == (cloud[1], "endpoint")
    own = [("x-a", "event"), ("Idempotency-Key", "mine")]
    headers = send(live, receiver, 1, content_type="text/plain", headers=own).headers
    assert (headers["content-type"], headers["x-a"], headers["x-b"]) == ("text/plain", "event", "endpoint")
    assert headers["idempotency-key"] == "mine"


def test_the_id_and_the_body_are_the_same_on_every_attempt_after_reopening_and_revival(
    live: Dispatcher, receiver: Receiver, opened: Opened, clock: MovedClock
) -> None:
    secret = live.register("shop", receiver.url, policy=QUICK)
    receiver.answer("evt-1", 503, 503, 503, 200)
    first = send(live, receiver, {"n": "é 😱", "id": 616581622363398142}, event_id="evt-1")
    eventually_is(live, "evt-1", "pending", attempts=1)
    live.close()
    again = opened()
    arrivals = [first]
    with again.worker():
        for seconds in (10, 20):
            clock.move(seconds)
            arrivals.append(receiver.next())
            eventually_is(again, "evt-1", "pending" if seconds == 10 else "dead", attempts=len(arrivals))
        again.revive("shop", ["evt-1"])
        arrivals.append(receiver.next())
        eventually_is(again, "evt-1", "delivered", attempts=1)
    assert len({arrival.body for arrival in arrivals}) == 1
    assert {arrival.event for arrival in arrivals} == {"evt-1"}
    assert {arrival.headers["idempotency-key"] for arrival in arrivals} == {"evt-1"}
    assert all(is_signed(arrival, secret) for arrival in arrivals)
    times = [int(arrival.headers["webhook-timestamp"]) for arrival in arrivals]
    assert [time - times[0] for time in times] == [0, 10, 30, 30]


def test_while_a_secret_is_rotated_the_old_one_signs_as_well_until_it_expires(
    live: Dispatcher, receiver: Receiver, clock: MovedClock
) -> None:
    assert live.register("shop", receiver.url, secret=SECRET) == SECRET
    fresh = live.rotate_secret("shop", keep_for=60)
    both = send(live, receiver, {"test": 2432232314})
    assert is_signed(both, SECRET)
    assert is_signed(both, fresh)
    clock.move(59)
    newest = live.rotate_secret("shop", keep_for=3600)
    all_three = send(live, receiver, 1)
    assert [is_signed(all_three, secret) for secret in (SECRET, fresh, newest)] == [True] * 3
    clock.move(1)
    later = send(live, receiver, 1)
    assert [is_signed(later, secret) for secret in (SECRET, fresh, newest)] == [False, True, True]
    assert len(later.headers["webhook-signature"].split(" ")) == 2


def test_an_updated_endpoint_sends_what_waits_to_its_new_url(live: Dispatcher, receiver: Receiver) -> None:
    secret = live.register("shop", "http://127.0.0.1:1/closed", headers=[("X-A", "kept")], policy=QUICK)
    live.update("shop", url=f"http://{receiver.address}/new", method="PUT", auth=BearerToken(token="t"))
    arrival = send(live, receiver, 1)
    assert (arrival.method, arrival.path) == ("PUT", "/new")
    assert arrival.headers["authorization"] == "Bearer t"
    assert arrival.headers["x-a"] == "kept"
    assert is_signed(arrival, secret)


def test_made_up_ids_sort_by_the_time_at_which_they_were_made(live: Dispatcher, receiver: Receiver) -> None:
    live.register("shop", receiver.url)
    before = f"evt_{time.time_ns() // 1_000_000:012x}"
    first = live.enqueue("shop", 1)
    last = live.enqueue_many([("shop", 2), ("shop", 3)])[-1]
    after = f"evt_{time.time_ns() // 1_000_000 + 1:012x}"
    assert before <= first < after
    assert before <= last < after
    assert first != last


def test_an_endpoint_of_an_opened_network_is_changed_where_the_network_is_not_open(
    database: Path, live: Dispatcher, receiver: Receiver
) -> None:
    live.register("shop", receiver.url)
    with Dispatcher(database) as other:
        other.update("shop", headers=[("X-A", "b")])
        with pytest.raises(UsageError):
            other.update("shop", url=receiver.url)
    live.enqueue("shop", 1)
    with live.worker():
        assert receiver.next().headers["x-a"] == "b"
