"""Everything that can go wrong, in one tree.

DispatcherError
├── UsageError            the call itself is wrong
│   ├── NotFound          no such delivery, endpoint, position
│   ├── AmbiguousEvent    several endpoints have an event of this id
│   ├── ExtraMissing      live delivery needs packages that are not installed
│   ├── WrongKind         a simulated log where a live one is meant, or the other way round
│   ├── Refused           the rules do not allow it; `code` says why
│   └── (delivery.refusals) a url, header, secret or signature that is not accepted
├── StorageError          the database cannot serve
│   ├── DatabaseMissing   there is none at this place
│   ├── NotADatabase      the file is something else
│   ├── UnsupportedDatabase
│   ├── DatabaseBusy      another process held it past the wait
│   ├── DatabaseFull      no room left
│   ├── DatabaseReadOnly
│   ├── TextDamaged       it holds text that is no text
│   ├── SchemaTooOld      upgrade it
│   └── SchemaTooNew      upgrade the program
├── VaultError            what is stored encrypted cannot be read
│   ├── MasterKeyInvalid  the configured key is none
│   ├── MasterKeyMissing  it was encrypted under another one
│   ├── PayloadErased     its key was destroyed
│   └── VaultDamaged
└── LogCorrupt            the log does not say what it said when it was written

Each carries a stable `code`, the command line's `exit_code`, and a `remedy`: what to do about it.
Exit codes: 0 done, 1 a check found something, 2 wrong usage, 3 not found, 4 storage, 5 corrupt log.
"""

from __future__ import annotations


class DispatcherError(Exception):
    """What happened, in one sentence; `remedy` says what to do."""

    code: str = "error"
    exit_code: int = 1
    remedy: str = ""

    def __init__(self, message: str, remedy: str | None = None) -> None:
        super().__init__(message)
        if remedy is not None:
            self.remedy = remedy


class UsageError(DispatcherError):
    code = "usage"
    exit_code = 2


class NotFound(UsageError):
    code = "not_found"
    exit_code = 3


class AmbiguousEvent(UsageError):
    code = "ambiguous_event"
    remedy = "Say which with --endpoint."


class ExtraMissing(UsageError):
    code = "extra_missing"
    remedy = "Install them: pip install 'webhook-dispatcher[live]'."


class WrongKind(UsageError):
    code = "wrong_kind"
    remedy = "Use another database: simulated and live histories never share one."


class Refused(UsageError):
    """An operation that changed nothing; its `code` is the rule's, such as `unknown_endpoint`."""

    def __init__(self, code: str, message: str | None = None) -> None:
        super().__init__(message or code.replace("_", " "), _REMEDIES.get(code, "Nothing was changed."))
        self.code = code
        if code.startswith("unknown_"):
            self.exit_code = NotFound.exit_code


_REMEDIES = {
    "unknown_endpoint": "`dispatcher endpoint list` shows those there are.",
    "unknown_event": "Check its id, and the endpoint's.",
    "duplicate_endpoint": "`dispatcher endpoint set` changes one that is there.",
    "duplicate_event": "Give another event id, or none; the first one's content stays.",
    "not_disabled": "It delivers already; `dispatcher revive` brings its dead events back.",
    "already_disabled": "Nothing was changed; `dispatcher endpoint show` tells why it is.",
    "not_dead": "Only dead events are revived; `dispatcher dead-letters` lists them.",
    "not_pending": "Only what is pending or held can be cancelled.",
    "in_flight": "Try again when its request is over.",
    "unknown_tenant": "Check its id: no endpoint is registered under it.",
    "not_confirmed": "Answer y, or give --yes.",
    "payload_erased": "What was erased cannot be sent again: enqueue it as a new event.",
    "no_transaction": "Begin one: BEGIN, connection.begin(), or Django's transaction.atomic().",
    "other_database": "Give a connection to the very file that this dispatcher was opened with.",
    "async_connection": "Use aenqueue or apublish, which take one.",
    "unknown_refusal": "`dispatcher inbox` shows those there are.",
    "invalid_event_type": "Such as invoice.paid.",
    "invalid_types": "None stands for all types, an empty list for none.",
    "payload_not_json": "Publish JSON, or give the endpoint another format with `dispatcher endpoint set`.",
    "order_key_refused": "An endpoint that keeps no order takes no order key.",
}


class StorageError(DispatcherError):
    code = "storage"
    exit_code = 4
    remedy = "Nothing was changed; look at the database's disk and permissions, then try again."


class DatabaseMissing(StorageError):
    code = "database_missing"
    remedy = (
        "Name an existing one with --database or DISPATCHER_DATABASE, or make one with `dispatcher run FILE`."
    )


class NotADatabase(StorageError):
    code = "not_a_database"
    remedy = "Name a SQLite file, or a path where none exists yet."


class UnsupportedDatabase(StorageError):
    code = "unsupported_database"
    remedy = "Name a path to a SQLite file, or a URL such as sqlite:///dispatcher.db."


class DatabaseBusy(StorageError):
    code = "database_busy"
    remedy = "Nothing was changed; find the process that holds a write transaction open, then try again."


class DatabaseFull(StorageError):
    code = "database_full"
    remedy = "Nothing was changed; make room on the disk, then try again."


class DatabaseReadOnly(StorageError):
    code = "database_read_only"
    remedy = "Nothing was changed; give this user write access to the file and its folder."


class TextDamaged(StorageError):
    code = "text_damaged"
    remedy = "Run `dispatcher log verify`, which names the entry or row, and compare the file with a backup."


class SchemaTooOld(StorageError):
    code = "schema_too_old"
    remedy = "Back the database up, then run `dispatcher db upgrade`."


class SchemaTooNew(StorageError):
    code = "schema_too_new"
    remedy = "Nothing was changed; install a newer release of webhook-dispatcher."


class VaultError(DispatcherError):
    code = "vault"
    exit_code = 4
    remedy = "Nothing was changed."


class MasterKeyInvalid(VaultError):
    code = "master_key_invalid"
    remedy = "Set DISPATCHER_MASTER_KEY, or the file DISPATCHER_MASTER_KEY_FILE, to 32 bytes in base64."


class MasterKeyMissing(VaultError):
    code = "master_key_missing"
    remedy = (
        "Set DISPATCHER_MASTER_KEY or DISPATCHER_MASTER_KEY_FILE to the key that this database was used with."
    )


class PayloadErased(VaultError):
    code = "payload_erased"


class VaultDamaged(VaultError):
    code = "vault_damaged"
    remedy = "Run `dispatcher log verify`, and compare the file with a backup."


class LogCorrupt(DispatcherError):
    """Carries the first position that is wrong."""

    code = "log_corrupt"
    exit_code = 5
    remedy = "Keep the file as it is; compare it with a backup, and with a kept head (`log verify --head`)."

    def __init__(self, position: int, message: str) -> None:
        super().__init__(f"position {position}: {message}")
        self.position = position
        self.message = message
