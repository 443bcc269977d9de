"""What the commands of live delivery share: whose events, on whose behalf, and an open dispatcher."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from dispatcher.live import Dispatcher

DEFAULT_TENANT = "default"


class Network(click.ParamType[str]):
    """A network in CIDR notation; several in an environment variable stand apart by commas."""

    name = "CIDR"
    envvar_list_splitter = ","

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from ipaddress import ip_network

        try:
            return str(ip_network(str(value).strip()))
        except ValueError:
            self.fail(f"{value!r} is no network such as 10.0.0.0/8.", param, ctx)


def tenant_option(command: Callable[..., None]) -> Callable[..., None]:
    """--tenant, `default` unless given."""
    return click.option(
        "--tenant", metavar="ID", default=DEFAULT_TENANT, show_default=True, help="The tenant whose it is."
    )(command)


def any_tenant_option(command: Callable[..., None]) -> Callable[..., None]:
    """--tenant, where without it everybody's are listed."""
    return click.option("--tenant", metavar="ID", help="Only this tenant's.")(command)


def as_tenant_option(command: Callable[..., None]) -> Callable[..., None]:
    return click.option("--as-tenant", is_flag=True, help="Tell no more than the tenant may know.")(command)


def actor_option(command: Callable[..., None]) -> Callable[..., None]:
    return click.option("--actor", metavar="TEXT", help="Who wants it: kept in the log.")(command)


def open_network_option(command: Callable[..., None]) -> Callable[..., None]:
    return click.option(
        "--open-network",
        "open_networks",
        multiple=True,
        type=Network(),
        metavar="CIDR",
        envvar="DISPATCHER_OPEN_NETWORKS",
        show_envvar=True,
        help="Call addresses of this network though they are private. Repeatable.",
    )(command)


def opened(database: str, open_networks: tuple[str, ...] = (), *, create: bool = False) -> Dispatcher:
    """A dispatcher on a live log, to be closed."""
    from dispatcher.live import Dispatcher

    return Dispatcher(database, open_networks=open_networks, create=create)
