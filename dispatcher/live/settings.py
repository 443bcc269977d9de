"""How endpoints are called: settings checked as a whole, and written beside the log's entry about them."""

from __future__ import annotations

from typing import Any

import msgspec

from dispatcher.core.entries import MAIL_URL
from dispatcher.core.operations import Register, Update
from dispatcher.delivery.accepting import check_fields
from dispatcher.delivery.authentication import authentication_header
from dispatcher.delivery.guard import Guard, check_url
from dispatcher.delivery.headers import check_headers
from dispatcher.delivery.mailbox import check_mail_url, is_mail
from dispatcher.delivery.message import check_subject
from dispatcher.delivery.refusals import NotOfThisKind
from dispatcher.delivery.settings import Secret, Settings, decode_settings, encode
from dispatcher.delivery.signing import parse_signer
from dispatcher.errors import Refused
from dispatcher.log.commit import Commit
from dispatcher.log.vault import Vault

UNITS_PER_SECOND = 1000


class EndpointSettings:
    """Registers and changes endpoints of one database, within a committer's work."""

    def __init__(self, vault: Vault, guard: Guard) -> None:
        self._vault = vault
        self._guard = guard

    def check(self, settings: Settings) -> None:
        """Whether they can be sent with, their url apart. Raises what says why not."""
        check_fields(settings)
        if is_mail(settings.url):
            if settings.method != "POST" or settings.headers or settings.authentication or settings.secrets:
                raise NotOfThisKind("an endpoint of mail has not such a setting")
            if settings.subject is not None:
                check_subject(settings.subject)
            return
        if settings.subject is not None:
            raise NotOfThisKind("only an endpoint of mail has a subject")
        check_headers(settings.headers)
        if settings.authentication is not None:
            authentication_header(settings.authentication)
        for secret in settings.secrets:
            parse_signer(secret.text)

    def in_the_log(self, url: str) -> tuple[str, str]:
        """What the log holds of a url: its origin, and a digest of it. Raises UrlRefused."""
        if not isinstance(url, str):
            raise Refused("invalid_argument", "url is none of the values that it can have")
        if is_mail(url):
            check_mail_url(url)
            origin = MAIL_URL
        else:
            origin = check_url(url, self._guard).origin
        return origin, self._vault.digest("url", url)

    def register(self, commit: Commit, operation: Register, settings: Settings) -> None:
        commit.apply(operation)
        self._write(commit, operation.endpoint_id, settings)

    def update(self, commit: Commit, operation: Update, changed: dict[str, Any]) -> None:
        """Change the fields of its Settings that are named.

        A url that stays is not judged again: the network that it leads to may be open to workers only.
        """
        if commit.state.endpoint(operation.endpoint_id) is None:
            raise Refused("unknown_endpoint")
        before = self._read(commit, operation.endpoint_id)
        after = msgspec.structs.replace(before, **changed)
        if is_mail(before.url) != is_mail(after.url) or (
            operation.disable_when_gone is True and is_mail(after.url)
        ):
            raise NotOfThisKind(
                "an endpoint stays what it is, of mail or of HTTP, with the settings of its kind"
            )
        self.check(after)
        commit.apply(operation)
        self._write(commit, operation.endpoint_id, after)

    def rotate(self, commit: Commit, operation: Update, fresh: str, keep_for: int) -> None:
        """Sign with a fresh secret, for `keep_for` seconds with those before as well."""
        if commit.state.endpoint(operation.endpoint_id) is None:
            raise Refused("unknown_endpoint")
        settings = self._read(commit, operation.endpoint_id)
        if is_mail(settings.url):
            raise NotOfThisKind("mails are not signed: an endpoint of mail has no secret")
        commit.apply(operation)
        until = commit.now + keep_for * UNITS_PER_SECOND
        kept = (Secret(old.text, until if old.until is None else old.until) for old in settings.secrets)
        old = (secret for secret in kept if secret.signs_at(commit.now))
        self._write(
            commit,
            operation.endpoint_id,
            msgspec.structs.replace(settings, secrets=(Secret(fresh), *old)),
        )

    def _read(self, commit: Commit, endpoint_id: str) -> Settings:
        return decode_settings(self._vault.read_endpoint(commit.connection, endpoint_id))

    def _write(self, commit: Commit, endpoint_id: str, settings: Settings) -> None:
        self._vault.write_endpoint(commit.connection, endpoint_id, encode(settings))
