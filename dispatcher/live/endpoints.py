"""Endpoints: registered, changed, switched off and on, tried out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, TypeVar

from dispatcher.audit.names import stored
from dispatcher.audit.tenant_view import status_for_tenant
from dispatcher.core.entries import MAIL_URL, Erasing, Ordering
from dispatcher.core.operations import Disable, Enable, Register, Revive, Update
from dispatcher.core.policy import PROMISED, RetryPolicy
from dispatcher.delivery.accepting import check_fields, check_name, check_patterns, check_whole, kept_for
from dispatcher.delivery.authentication import Authentication
from dispatcher.delivery.guard import Guard
from dispatcher.delivery.refusals import MailNotConfigured, NotOfThisKind
from dispatcher.delivery.settings import Secret, Settings, decode_settings
from dispatcher.delivery.signing import new_secret, parse_signer
from dispatcher.delivery.smtp_settings import MailSettings
from dispatcher.delivery.transport import Method, Transport
from dispatcher.errors import Refused
from dispatcher.live.probe import probe, probe_request
from dispatcher.live.revival import revive_described
from dispatcher.live.settings import UNITS_PER_SECOND, EndpointSettings
from dispatcher.live.views import Views
from dispatcher.log.clock import Clock
from dispatcher.log.commit import Commit, Committer
from dispatcher.log.vault import Vault

T = TypeVar("T")

Wrapping = Literal["given", "standard", "cloudevents"]
CHANGEABLE = frozenset(
    {"policy", "order", "concurrency", "disable_when_gone", "erase", "keep_payloads", "types", "body_format"}
)


class Endpoints(Views):
    """The part of a dispatcher that is about endpoints."""

    _clock: Clock
    _committer: Committer
    _guard: Guard
    _mail: MailSettings | None
    _settings: EndpointSettings
    _transport: Transport | None
    _vault: Vault

    def register(
        self,
        endpoint_id: str,
        url: str,
        *,
        tenant: str = "default",
        method: Method = "POST",
        secret: str | None = None,
        headers: Sequence[tuple[str, str]] = (),
        auth: Authentication | None = None,
        policy: RetryPolicy = PROMISED,
        order: Ordering = "strict",
        concurrency: int = 8,
        disable_when_gone: bool = False,
        erase: Erasing = "never",
        keep_payloads: float | Literal["forever"] | None = None,
        types: Sequence[str] | None = None,
        body_format: Wrapping = "given",
        subject: str | None = None,
        actor: str | None = None,
    ) -> str:
        """Register an endpoint; returns its signing secret, a new one unless given.

        One of mail, `mailto:` and one address, has no secret ("" is returned), method, headers or
        authentication, but a subject, in which `{type}` and `{event_id}` stand for those of the event.

        Its events' payloads are erased `on_delivery`, `on_final` (delivered or dead), or `never` by
        themselves. Workers erase those that are left `keep_payloads` days after they were delivered, died or
        were cancelled; None, or `forever`, keeps them.

        Of published events it wants those of `types`, such as `["invoice.*", "user.created"]`: all unless
        given, none if there are none. They are sent as they are `given`, as Standard Webhooks advises
        (`standard`: type, timestamp, data), or as CloudEvents 1.0 (`cloudevents`).
        """
        name = check_name(tenant, endpoint_id)
        origin, digest = self._settings.in_the_log(url)
        if secret is None:
            secret = "" if origin == MAIL_URL else new_secret()
        if disable_when_gone and origin == MAIL_URL:
            raise NotOfThisKind("no answer to a mail says that its endpoint is gone")
        settings = Settings(
            url=url,
            method=method,
            headers=tuple(headers),
            authentication=auth,
            secrets=(Secret(secret),) if secret or origin != MAIL_URL else (),
            subject=subject,
        )
        self._settings.check(settings)
        operation = Register(
            endpoint_id=name,
            url=origin,
            url_digest=digest,
            policy=policy.scaled(UNITS_PER_SECOND),
            order=order,
            concurrency=concurrency,
            disable_when_gone=disable_when_gone,
            erase=erase,
            keep_payloads=kept_for(keep_payloads),
            types=check_patterns(types),
            body_format=None if body_format == "given" else body_format,
            actor=actor,
        )
        check_fields(operation)
        self._do(partial(self._settings.register, operation=operation, settings=settings))
        return secret

    def update(
        self,
        endpoint_id: str,
        *,
        tenant: str = "default",
        url: str | None = None,
        method: Method | None = None,
        headers: Sequence[tuple[str, str]] | None = None,
        auth: Authentication | None = None,
        subject: str | None = None,
        actor: str | None = None,
        **settings: Any,
    ) -> None:
        """Change what is named: also policy, order, concurrency, disable_when_gone, erase,
        keep_payloads, types and body_format.

        What it wants, and in which format, is that of events published from now on.
        """
        if unknown := settings.keys() - CHANGEABLE:
            raise TypeError(f"update() takes no {', '.join(sorted(unknown))}")
        name = check_name(tenant, endpoint_id)
        changed: dict[str, Any] = {"url": url, "method": method, "authentication": auth}
        changed["subject"] = subject
        changed["headers"] = None if headers is None else tuple(headers)
        changed = {key: value for key, value in changed.items() if value is not None}
        if "policy" in settings:
            settings["policy"] = settings["policy"].scaled(UNITS_PER_SECOND)
        if "keep_payloads" in settings:
            settings["keep_payloads"] = kept_for(settings["keep_payloads"])
        if "types" in settings:
            settings["types"] = check_patterns(settings["types"])
        if settings.get("body_format") == "given":
            settings["body_format"] = None
        if url is not None:
            settings["url"], settings["url_digest"] = self._settings.in_the_log(url)
        operation = Update(endpoint_id=name, actor=actor, **settings)
        check_fields(operation)
        self._do(partial(self._settings.update, operation=operation, changed=changed))

    def rotate_secret(
        self,
        endpoint_id: str,
        *,
        tenant: str = "default",
        secret: str | None = None,
        keep_for: int = 24 * 3600,
        actor: str | None = None,
    ) -> str:
        """Sign with a new secret, for `keep_for` seconds with those before as well; returns the new one."""
        fresh = new_secret() if secret is None else secret
        parse_signer(fresh)
        check_whole(keep_for, "keep_for")
        operation = Update(endpoint_id=check_name(tenant, endpoint_id), actor=actor)
        check_fields(operation)
        self._do(partial(self._settings.rotate, operation=operation, fresh=fresh, keep_for=keep_for))
        return fresh

    def disable(
        self,
        endpoint_id: str,
        reason: str = "requested",
        *,
        tenant: str = "default",
        actor: str | None = None,
    ) -> None:
        self._apply(Disable(check_name(tenant, endpoint_id), reason, actor))

    def enable(
        self,
        endpoint_id: str,
        *,
        replay_dead: bool = False,
        tenant: str = "default",
        actor: str | None = None,
    ) -> int:
        """Resume deliveries; with `replay_dead` its dead events are revived before. How many were revived."""
        enable = Enable(check_name(tenant, endpoint_id), replay_dead, actor)
        check_fields(enable)
        revived = 0
        if replay_dead:

            def is_disabled(commit: Commit) -> None:
                endpoint = commit.state.endpoint(enable.endpoint_id)
                if endpoint is not None and endpoint.disabled is None:
                    raise Refused("not_disabled")

            revive = Revive(enable.endpoint_id, actor=actor)
            revived = revive_described(self._committer, revive, is_disabled)
        # Whatever died while those were revived comes back with this one.
        return revived + self._apply(enable) - 1

    def test(self, endpoint_id: str, *, tenant: str = "default", as_tenant: bool = False) -> dict[str, Any]:
        """Send one signed `{"type":"dispatcher.test"}` now, past queue and order, to a disabled endpoint too.

        Nothing is written. To an endpoint of mail it is sent as a mail: MailNotConfigured without a server.
        `ok`, `status`, `error`, `duration_ms`, and `body_bytes`: how much of the answer's body would be kept.
        """
        name = check_name(tenant, endpoint_id)
        with self._standing() as state:
            endpoint = state.endpoint(name)
            if endpoint is None:
                raise Refused("unknown_endpoint")
            sealed = self._vault.read_endpoint(stored(state).connection, name)
            request = probe_request(name, decode_settings(sealed), self._clock.now(state.ts))
        if endpoint.url == MAIL_URL and not self._sends_mail():
            raise MailNotConfigured("no mail server is configured")
        found = probe(self._new_transport(), request, endpoint.policy)
        return status_for_tenant(found) if as_tenant else found

    def _new_transport(self) -> Transport:
        if self._transport is not None:
            return self._transport
        from dispatcher.delivery.http import HttpTransport

        http, mail = HttpTransport(self._guard), self._mail_settings()
        if mail is None:
            return http
        from dispatcher.delivery.mail import MailTransport
        from dispatcher.delivery.schemes import BySchemes

        return BySchemes(MailTransport(mail), http)

    def _sends_mail(self) -> bool:
        return self._transport is not None or self._mail_settings() is not None

    def _mail_settings(self) -> MailSettings | None:
        # Not before mails are to be sent: whoever only enqueues does without.
        return MailSettings.from_environment() if self._mail is None else self._mail

    def _do(self, work: Callable[[Commit], T], about: Sequence[str] = ()) -> T:
        return self._committer.submit(work, about).result()

    def _apply(self, operation: Disable | Enable) -> int:
        check_fields(operation)
        return self._do(lambda commit: len(commit.apply(operation)))
