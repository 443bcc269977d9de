"""From a claim to the request that is sent for it: unsealed and signed, outside any transaction."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from dispatcher.delivery.attempt import signed_request
from dispatcher.delivery.mailbox import is_mail
from dispatcher.delivery.message import mail_request
from dispatcher.delivery.settings import Settings, decode_payload, decode_settings
from dispatcher.delivery.signing import Signer, parse_signer
from dispatcher.delivery.transport import Request
from dispatcher.log.vault import SealedRow, Vault
from dispatcher.worker.turn import Claimed

DEADLINE = 10.0
"""Seconds of one attempt."""
ENDPOINTS_KNOWN = 4096
"""Endpoints whose settings are not unsealed again for each attempt."""


class Ready(NamedTuple):
    """An endpoint's settings, and a signer for each of its secrets."""

    settings: Settings
    signers: tuple[Signer, ...]

    def __repr__(self) -> str:
        return "Ready(…)"


class Outgoing:
    """Makes requests from what the vault holds."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        # By what is stored: a change of the settings is another row.
        self._ready = lru_cache(maxsize=ENDPOINTS_KNOWN)(self._unsealed)

    def request(self, claimed: Claimed) -> tuple[Request, bytes]:
        """The request, and the payload's key. Raises VaultError, or UsageError for what cannot be sent."""
        claim = claimed.claim
        settings, signers = self._ready(claim.endpoint_id, claimed.settings)
        key = self._vault.payload_key(claimed.payload.wrapped)
        payload = decode_payload(self._vault.unseal_payload(claim.delivery_id, key, claimed.payload.sealed))
        event_id = claim.delivery_id.rpartition("/")[2]
        if is_mail(settings.url):
            mail = mail_request(
                url=settings.url,
                subject=settings.subject,
                endpoint_id=claim.endpoint_id,
                event_id=event_id,
                timestamp=claim.started_at // 1000,
                payload=payload,
                deadline=DEADLINE,
            )
            return mail, key
        request = signed_request(
            url=settings.url,
            method=settings.method,
            event_id=event_id,
            timestamp=claim.started_at // 1000,
            body=payload.body,
            signers=[
                signer
                for secret, signer in zip(settings.secrets, signers, strict=True)
                if secret.signs_at(claim.started_at)
            ],
            authentication=settings.authentication,
            headers=(*settings.headers, *payload.headers),
            deadline=DEADLINE,
        )
        return request, key

    def _unsealed(self, endpoint_id: str, row: SealedRow) -> Ready:
        settings = decode_settings(self._vault.unseal_endpoint(endpoint_id, row))
        return Ready(settings, tuple(parse_signer(secret.text) for secret in settings.secrets))
