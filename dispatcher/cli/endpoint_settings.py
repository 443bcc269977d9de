"""`dispatcher endpoint add`, `set` and `rotate-secret`: how an endpoint is called, and by which rules."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from dispatcher.cli.live import actor_option, open_network_option, opened, tenant_option
from dispatcher.cli.options import an_id, common_options
from dispatcher.cli.output import Output
from dispatcher.cli.sensitive import HINT, Discreet, Sensitive, name_and_value
from dispatcher.errors import UsageError

if TYPE_CHECKING:
    from dispatcher.core.policy import RetryPolicy
    from dispatcher.delivery.authentication import Authentication

SECRET = Sensitive()
KEEP_IT = "Keep the secret: the receiver checks signatures with it, and it is not shown again."


def a_time_of_keeping(value: str) -> float | str:
    try:
        return value if value == "forever" else float(value)
    except ValueError:
        raise click.BadParameter("give a number of days, such as 30 or 0.5, or forever.") from None


def settings_options(command: Callable[..., None]) -> Callable[..., None]:
    """What `add` and `set` share: the command is called with them by name, None for what is not given."""
    options = (
        click.option("--method", type=click.Choice(["POST", "PUT", "PATCH"])),
        click.option(
            "--header",
            "headers",
            multiple=True,
            type=SECRET,
            metavar="'NAME: VALUE'|@FILE",
            help="Send this header. Repeatable; `set` replaces all of them.",
        ),
        click.option("--bearer", type=SECRET, metavar="TOKEN|@FILE", help="Authorization: Bearer TOKEN."),
        click.option("--basic", type=SECRET, metavar="USER:PASSWORD|@FILE", help="Authorization: Basic."),
        click.option(
            "--auth-header",
            type=SECRET,
            metavar="'NAME: VALUE'|@FILE",
            help="Authenticate with this header: it beats all others of its name.",
        ),
        click.option(
            "--policy",
            metavar="promised|standard|FILE",
            help="When to try again: a named policy, or a file with one as JSON, in seconds.",
        ),
        click.option(
            "--order",
            type=click.Choice(["strict", "none"]),
            help="Whether an event waits for those before it. [default: strict]",
        ),
        click.option("--concurrency", type=int, metavar="N", help="Requests at once. [default: 8]"),
        click.option(
            "--disable-when-gone/--no-disable-when-gone",
            default=None,
            help="Disable it when it answers 410.",
        ),
        click.option(
            "--erase",
            type=click.Choice(["never", "on_delivery", "on_final"]),
            help="Erase a payload once it is delivered, or delivered or dead. [default: never]",
        ),
        click.option(
            "--keep-payloads",
            type=a_time_of_keeping,
            metavar="DAYS|forever",
            help="Erase payloads so long after an event is delivered, dead or cancelled. [default: forever]",
        ),
        click.option(
            "--type",
            "types",
            multiple=True,
            metavar="PATTERN",
            help="Want published events of this type, or of all that begin so: invoice.*. Repeatable; `set`"
            " replaces all of them.",
        ),
        click.option("--all-types", is_flag=True, help="Want all published events. [default]"),
        click.option("--no-types", is_flag=True, help="Want none of them, only what is enqueued for it."),
        click.option(
            "--format",
            "body_format",
            type=click.Choice(["given", "standard", "cloudevents"]),
            help="How published events are sent: as they are given, or in an envelope. [default: given]",
        ),
        click.option(
            "--subject",
            metavar="TEXT",
            help="Of mails: {type} and {event_id} stand for the event's. [default: {type}: {event_id}]",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command(cls=Discreet, short_help="Register an endpoint.", epilog=HINT)
@click.argument("endpoint_id", metavar="ID", type=an_id)
@click.argument("url", metavar="URL|@FILE", type=SECRET)
@click.option("--secret", type=SECRET, metavar="WHSEC|@FILE", help="Sign with this one, not with a new one.")
@settings_options
@tenant_option
@actor_option
@open_network_option
@common_options
def add(
    endpoint_id: str,
    url: str,
    secret: str | None,
    tenant: str,
    actor: str | None,
    open_networks: tuple[str, ...],
    database: str,
    out: Output,
    **given: Any,
) -> None:
    """Register endpoint ID, to be called at URL, or to have mails at mailto:ADDRESS.

    The database is made if there is none. Prints the secret with which its requests are signed, unless it
    was given; it is not shown again.
    """
    settings = settings_of(**given)
    with opened(database, open_networks, create=True) as live:
        used = live.register(endpoint_id, url, tenant=tenant, secret=secret, actor=actor, **settings)
    told: dict[str, str | None] = {"endpoint_id": endpoint_id}
    tell(out, tenant, told, None if secret is not None else used or None)


@click.command(name="set", cls=Discreet, short_help="Change an endpoint.", epilog=HINT)
@click.argument("endpoint_id", metavar="ID", type=an_id)
@click.option("--url", type=SECRET, metavar="URL|@FILE", help="Call it there.")
@settings_options
@tenant_option
@actor_option
@open_network_option
@common_options
def set_endpoint(
    endpoint_id: str,
    url: str | None,
    tenant: str,
    actor: str | None,
    open_networks: tuple[str, ...],
    database: str,
    out: Output,
    **given: Any,
) -> None:
    """Change what is given of endpoint ID; everything else stays.

    A policy, and when to erase, apply from the next attempt; an order, types and a format to events accepted
    from now on.
    """
    settings = settings_of(**given)
    if url is not None:
        settings["url"] = url
    if not settings:
        raise click.UsageError("say what to change")
    with opened(database, open_networks) as live:
        live.update(endpoint_id, tenant=tenant, actor=actor, **settings)
    if out.json:
        out.document({"tenant": tenant, "endpoint_id": endpoint_id, "changed": sorted(settings)})
    else:
        out.line(f"{endpoint_id} changed: {', '.join(sorted(settings))}")


@click.command(cls=Discreet, short_help="Sign with a new secret.", epilog=HINT)
@click.argument("endpoint_id", metavar="ID", type=an_id)
@click.option("--secret", type=SECRET, metavar="WHSEC|@FILE", help="Sign with this one, not with a new one.")
@click.option(
    "--keep-for",
    type=click.IntRange(0, 10**9),
    default=24 * 3600,
    show_default=True,
    metavar="SECONDS",
    help="So long the old one signs, too.",
)
@tenant_option
@actor_option
@common_options
def rotate_secret(
    endpoint_id: str,
    secret: str | None,
    keep_for: int,
    tenant: str,
    actor: str | None,
    database: str,
    out: Output,
) -> None:
    """Sign the requests to endpoint ID with a new secret, and for a while with the old one as well.

    Prints the new one, unless it was given; it is not shown again.
    """
    with opened(database) as live:
        used = live.rotate_secret(endpoint_id, tenant=tenant, secret=secret, keep_for=keep_for, actor=actor)
    tell(out, tenant, {"endpoint_id": endpoint_id}, None if secret is not None else used)


def tell(out: Output, tenant: str, told: dict[str, str | None], secret: str | None) -> None:
    """Name an endpoint, with the secret that was made for it."""
    if out.json:
        out.document({"tenant": tenant, **told, "secret": secret})
        return
    out.record(told if secret is None else {**told, "secret": secret})
    if secret is not None:
        print(KEEP_IT, file=sys.stderr)


def settings_of(
    *,
    method: str | None,
    headers: tuple[str, ...],
    bearer: str | None,
    basic: str | None,
    auth_header: str | None,
    policy: str | None,
    order: str | None,
    concurrency: int | None,
    disable_when_gone: bool | None,
    erase: str | None,
    subject: str | None,
    keep_payloads: float | str | None,
    types: tuple[str, ...],
    all_types: bool,
    no_types: bool,
    body_format: str | None,
) -> dict[str, Any]:
    """The settings that were given, as the dispatcher takes them."""
    settings: dict[str, Any] = {
        "method": method,
        "headers": [name_and_value(header, "--header") for header in headers] or None,
        "auth": authentication(bearer, basic, auth_header),
        "policy": None if policy is None else named_policy(policy),
        "order": order,
        "concurrency": concurrency,
        "disable_when_gone": disable_when_gone,
        "erase": erase,
        "subject": subject,
        "keep_payloads": keep_payloads,
        "body_format": body_format,
    }
    settings = {name: value for name, value in settings.items() if value is not None}
    if bool(types) + all_types + no_types > 1:
        raise click.UsageError("give --type, --all-types or --no-types: one of them")
    if types or all_types or no_types:
        settings["types"] = None if all_types else types
    return settings


def authentication(bearer: str | None, basic: str | None, auth_header: str | None) -> Authentication | None:
    from dispatcher.delivery.authentication import BasicLogin, BearerToken, SecretHeader

    if sum(value is not None for value in (bearer, basic, auth_header)) > 1:
        raise click.UsageError("give one of --bearer, --basic and --auth-header")
    if bearer is not None:
        return BearerToken(token=bearer)
    if basic is not None:
        user, colon, password = basic.partition(":")
        if not colon:
            raise click.UsageError("--basic takes USER:PASSWORD")
        return BasicLogin(username=user, password=password)
    if auth_header is not None:
        name, value = name_and_value(auth_header, "--auth-header")
        return SecretHeader(name=name, value=value)
    return None


def named_policy(name: str) -> RetryPolicy:
    """A policy by its name, or from a file. Raises UsageError."""
    import msgspec

    from dispatcher.core.policy import NAMED_POLICIES, RetryPolicy

    if name in NAMED_POLICIES:
        return NAMED_POLICIES[name]
    remedy = 'Such as {"max_attempts": 3, "waits": [10, 60], "retryable": [[0, 0], [429, 429], [500, 599]]}.'
    try:
        with open(name, "rb") as file:
            return msgspec.json.decode(file.read(), type=RetryPolicy)
    except OSError as error:
        message = f"there is no policy {name}, and no file of that name can be read: {error.strerror}"
    except msgspec.MsgspecError as error:
        message = f"{name} holds no retry policy: {error}"
    raise UsageError(message, f"Name promised or standard, or a file. {remedy}")
