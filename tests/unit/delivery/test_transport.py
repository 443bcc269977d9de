"""What a tenant may know of a failure."""

from __future__ import annotations

import ast
from pathlib import Path

import dispatcher.delivery as package
from dispatcher.delivery import refusals
from dispatcher.delivery.transport import TENANT_CODES, Answer, Request, tenant_code


def test_what_must_look_alike_looks_alike() -> None:
    assert tenant_code("dns_failed") == tenant_code("address_blocked") == "unreachable"
    assert tenant_code(None) is None
    assert tenant_code("connection_refused") == "connection_refused"


def test_an_unknown_code_says_nothing() -> None:
    assert tenant_code("postgres://u:p@inside") == "aborted"


def test_every_code_that_a_transport_gives_is_listed() -> None:
    given: set[str] = {
        refusals.HostNotAllowed.code,
        refusals.InvalidHeaders.code,
        refusals.InvalidUrl.code,
        refusals.MailNotConfigured.code,
        "smtp_4yz",
        "smtp_5yz",
        refusals.UnsupportedScheme.code,
    }
    for name in ("faults.py", "http.py", "mail.py"):
        tree = ast.parse((Path(package.__file__).parent / name).read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Return) and isinstance(node.value, ast.Constant):
                given |= {node.value.value} if isinstance(node.value.value, str) else set()
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("no_answer", "never_sent"):
                given |= {str(found.value) for found in node.args if isinstance(found, ast.Constant)}
    assert given == {*TENANT_CODES}


def test_neither_requests_nor_answers_show_what_they_hold() -> None:
    request = Request(method="POST", url="https://s3cr3t/", headers=(("s3cr3t", "s3cr3t"),), body=b"s3cr3t")
    shown = repr(request) + repr(Answer(status=200, body=b"s3cr3t"))
    assert shown == "Request(POST, 6 bytes)Answer(200, answered, 6 bytes)"
