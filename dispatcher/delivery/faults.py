"""Why no answer came, as an operator's code."""

from __future__ import annotations

import errno
import logging
import ssl

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError

from dispatcher.delivery.connection import Wire
from dispatcher.delivery.resolve import NameNotFound

_log = logging.getLogger(__name__)


def error_code(error: Exception, wire: Wire) -> str:
    """An operator's code. Never the error's text: that holds the URL."""
    if wire.blocked:
        return "address_blocked"
    match error:
        case NameNotFound() | aiohttp.ClientConnectorDNSError():
            return "dns_failed"
        case TimeoutError():
            return "deadline"
        case aiohttp.ClientSSLError() | ssl.SSLError():
            return "tls_failed"
        case aiohttp.ClientConnectorError(os_error=cause):
            return _connection_code(cause)
        case aiohttp.ServerDisconnectedError():
            return "connection_closed"
        case OSError():
            return _connection_code(error)
        case HttpProcessingError() | aiohttp.ClientPayloadError():
            return "invalid_response"
        case _:
            _log.warning("an attempt was aborted by an unexpected %s", type(error).__name__)
            return "aborted"


def _connection_code(error: OSError) -> str:
    # By number, not by class: aiohttp makes errors of its own classes out of the system's.
    match error:
        case ssl.SSLError():
            return "tls_failed"
        case ConnectionRefusedError() | OSError(errno=errno.ECONNREFUSED):
            return "connection_refused"
        case ConnectionError() | OSError(errno=errno.ECONNRESET | errno.EPIPE | errno.ECONNABORTED):
            return "connection_reset"
        case OSError(errno=errno.EMSGSIZE):
            return "invalid_response"
        case _:
            return "connection_failed"
