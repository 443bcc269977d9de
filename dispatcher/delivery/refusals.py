"""What is refused when an endpoint is registered, and what a receiver refuses.

No message repeats what was refused: a URL, a header or a secret may hold what nobody else may read.
"""

from __future__ import annotations

from dispatcher.errors import UsageError


class UrlRefused(UsageError):
    """This URL can never be called."""


class InvalidUrl(UrlRefused):
    code = "invalid_url"
    remedy = "Give an absolute URL such as https://shop.example/hooks, at most 2,048 characters long."


class UnsupportedScheme(UrlRefused):
    code = "unsupported_scheme"
    remedy = "Give a URL that begins with https://, http:// or mailto:."


class HostNotAllowed(UrlRefused):
    code = "host_not_allowed"
    remedy = "Give the name of a host on the public internet, or have the operator open the network."


class InvalidMailbox(UrlRefused):
    code = "invalid_url"
    remedy = "Give mailto: and one address, such as mailto:ops@shop.example, and nothing after it."


class InvalidSubject(UsageError):
    code = "invalid_subject"
    remedy = "Give at most 200 printable characters; of placeholders only {type} and {event_id}."


class NotOfThisKind(UsageError):
    """A setting that endpoints of mail, or those of HTTP, have not."""

    code = "not_of_this_kind"
    remedy = (
        "Endpoints of mail take a subject, and no method, headers, authentication, secret or"
        " disable_when_gone; the others take no subject. To change the kind, register another endpoint."
    )


class MailNotConfigured(UsageError):
    code = "mail_not_configured"
    remedy = "Set DISPATCHER_SMTP_URL and DISPATCHER_MAIL_FROM."


class InvalidMailSettings(UsageError):
    code = "mail_settings_invalid"
    remedy = (
        "Set DISPATCHER_SMTP_URL such as smtp://USER:PASSWORD@HOST:587 or smtps://HOST, and"
        " DISPATCHER_MAIL_FROM to the sender's address."
    )


class InvalidHeaders(UsageError):
    code = "invalid_headers"
    remedy = "Header names are tokens, values are printable ASCII; the transport's own names are reserved."


class InvalidSecret(UsageError):
    code = "invalid_secret"
    remedy = "Give whsec_ and the base64 of 24 to 64 random bytes, or whsk_ and that of an ed25519 key."


class InvalidSignature(UsageError):
    """Says nothing more: whoever forges a webhook learns not how near it came."""

    code = "invalid_signature"
    remedy = "Answer 401; if the sender is genuine, compare the secrets and the clocks."

    def __init__(self) -> None:
        super().__init__("the webhook is not signed by a known secret, or not recently")
