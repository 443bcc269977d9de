"""How a request says who sends it, beside its signature."""

from __future__ import annotations

import base64

from msgspec import Struct

from dispatcher.delivery.headers import check_headers
from dispatcher.delivery.refusals import InvalidHeaders


class _Hidden(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"


class BearerToken(_Hidden, frozen=True, tag="bearer"):
    """`Authorization: Bearer …`."""

    token: str


class BasicLogin(_Hidden, frozen=True, tag="basic"):
    """`Authorization: Basic …`, in UTF-8."""

    username: str
    password: str


class SecretHeader(_Hidden, frozen=True, tag="header"):
    """A header of the receiver's choice, such as `X-Api-Key`."""

    name: str
    value: str


Authentication = BearerToken | BasicLogin | SecretHeader


def authentication_header(authentication: Authentication) -> tuple[str, str]:
    """The header that authenticates. Raises InvalidHeaders for what no header can carry."""
    match authentication:
        case BearerToken(token=token):
            if not token or " " in token or "\t" in token:
                raise InvalidHeaders("the bearer token is empty or holds a space")
            header = ("Authorization", f"Bearer {token}")
        case BasicLogin(username=username, password=password):
            header = ("Authorization", basic_value(username, password))
        case SecretHeader(name=name, value=value):
            header = (name, value)
    return check_headers([header])[0]


def basic_value(username: str, password: str) -> str:
    """The value of `Authorization` for a name and a password. Raises InvalidHeaders."""
    if ":" in username:
        raise InvalidHeaders("the user's name holds a colon")
    try:
        return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()
    except UnicodeEncodeError:
        raise InvalidHeaders("the login is no text") from None
