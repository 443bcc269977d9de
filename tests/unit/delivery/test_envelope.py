"""What is sent for a published event, in each format."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.delivery.envelope import Occurrence, check_source, enveloped
from dispatcher.delivery.settings import Headers, Payload
from dispatcher.errors import Refused

TOLD = Occurrence("evt_1", "invoice.paid", 1_700_000_000_007, "/dispatcher/default")
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=8,
)


def standard(body: bytes, headers: Headers = ()) -> Payload:
    return enveloped(Payload(body=body, headers=headers, type="invoice.paid"), "standard", TOLD)


def cloud(body: bytes, headers: Headers = ()) -> dict[str, Any]:
    sent = enveloped(Payload(body=body, headers=headers, type="invoice.paid"), "cloudevents", TOLD)
    assert sent.headers[0] == ("Content-Type", "application/cloudevents+json")
    event: dict[str, Any] = json.loads(sent.body)
    return event


def of_type(content_type: str) -> Headers:
    return (("Content-Type", content_type),)


def test_as_given_nothing_is_changed() -> None:
    payload = Payload(body=b"\xff\x00", headers=of_type("image/png"), type="invoice.paid")
    assert enveloped(payload, None, TOLD) is payload


def test_the_standard_envelope_has_type_timestamp_and_data() -> None:
    sent = standard(b'{"n":1}')
    assert sent.body == b'{"type":"invoice.paid","timestamp":"2023-11-14T22:13:20.007Z","data":{"n":1}}'
    assert sent.headers == of_type("application/json")
    assert sent.type == "invoice.paid"


def test_a_cloud_event_has_the_attributes_of_its_specification() -> None:
    assert cloud(b'{"n":1}') == {
        "specversion": "1.0",
        "id": "evt_1",
        "source": "/dispatcher/default",
        "type": "invoice.paid",
        "time": "2023-11-14T22:13:20.007Z",
        "datacontenttype": "application/json",
        "data": {"n": 1},
    }


@pytest.mark.parametrize(
    "body",
    [
        '{"id":616581622363398142,"f":1.0,"f":1.00e+400}',
        '{"b":1,  "a" :\n[2 ,"é 😱","\\u00e9"]}',
        "9" * 6000,
        "0",
        "false",
        "null",
        '""',
        "{}",
        "-0.0",
    ],
)
def test_json_stands_in_an_envelope_byte_for_byte(body: str) -> None:
    for sent in (standard(body.encode()).body, enveloped_body(body.encode())):
        assert sent.endswith(b'"data":' + body.encode() + b"}")


def enveloped_body(body: bytes) -> bytes:
    return enveloped(Payload(body=body, type="invoice.paid"), "cloudevents", TOLD).body


@given(JSON_VALUES, st.sampled_from([None, 1]))
def test_every_json_value_comes_out_as_it_went_in(value: Any, indent: int | None) -> None:
    body = json.dumps(value, indent=indent, ensure_ascii=False)
    try:
        raw = body.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return
    assert json.loads(standard(raw).body)["data"] == value
    assert cloud(raw)["data"] == value


NO_JSON = [
    b"NaN",
    b'{"x":NaN}',
    b"Infinity",
    b"-Infinity",
    b"",
    b" ",
    b"{",
    b"{} {}",
    b"01",
    b"1.",
    b"'a'",
    b"\xff",
    b'"\xff"',
    b'"\xed\xa0\x80"',
    b"\xef\xbb\xbf1",
    '"a"'.encode("utf-16"),
    b'"a\nb"',
    b'{"a":1,}',
    b"[" * 100_000,
    b'"},"type":"other"',
]


@pytest.mark.parametrize("body", NO_JSON, ids=lambda body: repr(body[:20]))
def test_what_is_no_json_is_refused_by_the_standard_envelope(body: bytes) -> None:
    with pytest.raises(Refused) as refused:
        standard(body)
    assert refused.value.code == "payload_not_json"


@pytest.mark.parametrize("body", NO_JSON, ids=lambda body: repr(body[:20]))
def test_what_is_no_json_is_base64_in_a_cloud_event(body: bytes) -> None:
    event = cloud(body)
    assert b64decode(event["data_base64"], validate=True) == body
    assert "data" not in event
    assert event["datacontenttype"] == "application/octet-stream"


@pytest.mark.parametrize("content_type", ["text/plain", "image/png", "application/jsonx", "text/json5", ""])
def test_what_is_said_to_be_something_else_is_no_json_even_if_it_looks_so(content_type: str) -> None:
    event = cloud(b"17", of_type(content_type))
    assert b64decode(event["data_base64"]) == b"17"
    assert event["datacontenttype"] == (content_type or "application/octet-stream")
    with pytest.raises(Refused):
        standard(b"17", of_type(content_type))


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "Application/JSON; charset=utf-8",
        "application/vnd.shop.v1+json",
        "application/json ;x",
    ],
)
def test_a_type_of_json_is_told_by_the_cloud_event(content_type: str) -> None:
    event = cloud(b"17", (("content-type", content_type),))
    assert (event["data"], event["datacontenttype"]) == (17, content_type)


def test_an_envelope_has_its_own_content_type_and_keeps_the_other_headers() -> None:
    sent = standard(b"1", (("X-A", "b"), ("CONTENT-TYPE", "application/x+json"), ("X-C", "d")))
    assert sent.headers == (("Content-Type", "application/json"), ("X-A", "b"), ("X-C", "d"))


def test_the_time_is_in_utc_to_the_millisecond_however_far_away() -> None:
    times = {
        0: "1970-01-01T00:00:00.000Z",
        999: "1970-01-01T00:00:00.999Z",
        4_102_444_799_001: "2099-12-31T23:59:59.001Z",
    }
    for at, text in times.items():
        sent = enveloped(Payload(body=b"1"), "standard", TOLD._replace(time=at))
        assert json.loads(sent.body)["timestamp"] == text


def test_a_source_is_that_given_or_of_the_environment_or_none() -> None:
    assert (
        check_source("https://shop.example/a?b#c", {"DISPATCHER_SOURCE": "/env"})
        == "https://shop.example/a?b#c"
    )
    assert check_source(None, {"DISPATCHER_SOURCE": "/env"}) == "/env"
    assert check_source(None, {"DISPATCHER_SOURCE": ""}) is None
    assert check_source(None, {}) is None


@pytest.mark.parametrize("source", ["", "a b", "é", 'a"b', "a\n", "%", "%zz", "x" * 2049])
def test_a_source_that_is_no_uri_is_refused(source: str) -> None:
    with pytest.raises(Refused) as refused:
        check_source(source, {})
    assert refused.value.code == "invalid_source"
