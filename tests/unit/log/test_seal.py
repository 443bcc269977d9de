"""Keys that are wrapped, things that are sealed, and what comes of damage to either."""

from __future__ import annotations

import base64
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from dispatcher.errors import MasterKeyInvalid, MasterKeyMissing, VaultDamaged, VaultError
from dispatcher.log.seal import KEY, NAME, WRAPPED, Keyring, new_key, seal, unseal

OLD, NEW = bytes(range(32)), bytes(range(100, 132))
SECRET = bytes(range(200, 232))


def _text(key: bytes) -> str:
    return base64.b64encode(key).decode()


@pytest.fixture(params=[(), (NEW,), (NEW, OLD)], ids=["no master key", "one", "two"])
def ring(request: pytest.FixtureRequest) -> Keyring:
    return Keyring(request.param)


def _changed(whole: bytes, at: int) -> bytes:
    return whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]


def test_a_wrapped_key_is_as_long_with_a_master_key_as_without(ring: Keyring) -> None:
    """So it can be overwritten in place, whatever the configuration was when it was written."""
    assert len(ring.wrap(SECRET)) == WRAPPED


def test_a_wrapped_key_is_unwrapped_again(ring: Keyring) -> None:
    assert ring.unwrap(ring.wrap(SECRET)) == SECRET


def test_only_without_a_master_key_a_key_is_stored_as_it_is() -> None:
    assert SECRET in Keyring().wrap(SECRET)
    assert SECRET not in Keyring([NEW]).wrap(SECRET)


def test_the_newest_master_key_wraps_and_older_ones_still_unwrap() -> None:
    before = Keyring([OLD]).wrap(SECRET)
    both = Keyring([NEW, OLD])
    assert both.unwrap(before) == SECRET
    assert Keyring([NEW]).unwrap(both.wrap(SECRET)) == SECRET
    assert not both.is_current(before)
    assert both.is_current(both.wrap(SECRET))


def test_keys_from_before_the_first_master_key_are_read_and_known_for_what_they_are() -> None:
    bare = Keyring().wrap(SECRET)
    assert Keyring([NEW]).unwrap(bare) == SECRET
    assert Keyring().is_current(bare)
    assert not Keyring([NEW]).is_current(bare)
    assert not Keyring().is_current(Keyring([NEW]).wrap(SECRET))


@pytest.mark.parametrize("ring", [Keyring(), Keyring([OLD])], ids=["none", "another"])
def test_without_the_master_key_it_says_which_thing_is_missing(ring: Keyring) -> None:
    with pytest.raises(MasterKeyMissing) as raised:
        ring.unwrap(Keyring([NEW]).wrap(SECRET))
    assert "DISPATCHER_MASTER_KEY" in raised.value.remedy


@pytest.mark.parametrize("at", range(WRAPPED))
def test_a_changed_byte_of_a_key_under_a_master_key_is_found(at: int) -> None:
    """In the master key's name it makes it that of another one."""
    ring = Keyring([NEW])
    expected = MasterKeyMissing if 1 <= at <= NAME else VaultDamaged
    with pytest.raises(expected):
        ring.unwrap(_changed(ring.wrap(SECRET), at))


@pytest.mark.parametrize("at", range(WRAPPED))
def test_a_changed_byte_of_a_bare_key_unseals_nothing(at: int) -> None:
    sealed = seal(SECRET, b"plain", "it")
    with pytest.raises(VaultError):
        unseal(Keyring().unwrap(_changed(Keyring().wrap(SECRET), at)), sealed, "it")


@pytest.mark.parametrize("length", [0, 1, 5, KEY, WRAPPED - 1])
def test_a_key_cut_short_is_damage(length: int, ring: Keyring) -> None:
    with pytest.raises(VaultDamaged):
        ring.unwrap(ring.wrap(SECRET)[:length])


def test_zeros_are_no_key(ring: Keyring) -> None:
    with pytest.raises(VaultDamaged):
        ring.unwrap(bytes(WRAPPED))


def test_what_is_sealed_is_unsealed_with_its_key_and_for_its_purpose_only() -> None:
    sealed = seal(SECRET, b"plain", "payload a")
    assert unseal(SECRET, sealed, "payload a") == b"plain"
    for key, context in ((OLD, "payload a"), (SECRET, "payload b"), (SECRET[:-1], "payload a")):
        with pytest.raises(VaultDamaged):
            unseal(key, sealed, context)


def test_a_changed_or_missing_byte_of_what_is_sealed_is_found() -> None:
    sealed = seal(SECRET, b"plain", "it")
    for at in range(len(sealed)):
        for damaged in (_changed(sealed, at), sealed[:at]):
            with pytest.raises(VaultDamaged):
                unseal(SECRET, damaged, "it")


def test_nothing_is_sealed_or_wrapped_the_same_way_twice() -> None:
    assert seal(SECRET, b"plain", "it") != seal(SECRET, b"plain", "it")
    assert Keyring([NEW]).wrap(SECRET) != Keyring([NEW]).wrap(SECRET)
    assert new_key() != new_key()


@pytest.mark.parametrize("between", [" ", ",", ", ", "\n"])
def test_the_environment_names_master_keys_the_newest_first(between: str) -> None:
    ring = Keyring.from_environment({"DISPATCHER_MASTER_KEY": f"{_text(NEW)}{between}{_text(OLD)}\n"})
    assert Keyring([NEW]).unwrap(ring.wrap(SECRET)) == SECRET
    assert ring.unwrap(Keyring([OLD]).wrap(SECRET)) == SECRET


def test_a_file_of_master_keys_goes_before_the_variable(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(f"{_text(NEW)}\n{_text(OLD)}\n", encoding="ascii")
    named = {"DISPATCHER_MASTER_KEY": "not looked at", "DISPATCHER_MASTER_KEY_FILE": str(tmp_path / "keys")}
    assert Keyring([NEW]).unwrap(Keyring.from_environment(named).wrap(SECRET)) == SECRET


@pytest.mark.parametrize(
    "environment", [{}, {"DISPATCHER_MASTER_KEY": ""}, {"DISPATCHER_MASTER_KEY_FILE": ""}]
)
def test_an_environment_without_any_gives_none(environment: dict[str, str]) -> None:
    assert Keyring.from_environment(environment).is_current(Keyring().wrap(SECRET))


BAD = {
    "no base64": "***",
    "not ASCII": "ключ",
    "too short": _text(NEW[:16]),
    "too long": _text(NEW + OLD),
    "without padding": _text(NEW).rstrip("="),
    "one of two": f"{_text(NEW)} {_text(OLD)[:-4]}",
    "nothing but a comma": " , ",
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_a_bad_master_key_is_refused_and_not_repeated(text: str, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(text, encoding="utf-8")
    for environment in (
        {"DISPATCHER_MASTER_KEY": text},
        {"DISPATCHER_MASTER_KEY_FILE": str(tmp_path / "keys")},
    ):
        with pytest.raises(MasterKeyInvalid) as raised:
            Keyring.from_environment(environment)
        assert text not in "".join(traceback.format_exception(raised.value))


def test_a_file_that_is_empty_or_missing_leaves_nothing_unprotected(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    for name in ("empty", "missing"):
        with pytest.raises(MasterKeyInvalid):
            Keyring.from_environment({"DISPATCHER_MASTER_KEY_FILE": str(tmp_path / name)})


def test_a_master_key_given_by_hand_has_its_length_checked() -> None:
    with pytest.raises(MasterKeyInvalid):
        Keyring([NEW[:16]])


ERRING: list[Callable[[], object]] = [
    lambda: Keyring([OLD]).unwrap(Keyring([NEW]).wrap(SECRET)),
    lambda: Keyring([NEW]).unwrap(_changed(Keyring([NEW]).wrap(SECRET), WRAPPED - 1)),
    lambda: Keyring().unwrap(Keyring().wrap(SECRET)[:-1]),
    lambda: unseal(OLD, seal(SECRET, b"plain", "it"), "it"),
    lambda: Keyring([SECRET[:-1]]),
]


@pytest.mark.parametrize("erring", ERRING)
def test_no_error_shows_a_key(erring: Callable[[], object]) -> None:
    with pytest.raises(VaultError) as raised:
        erring()
    told = "".join(traceback.format_exception(raised.value)) + repr(raised.value) + raised.value.remedy
    for key in (OLD, NEW, SECRET, SECRET[:-1]):
        for form in (repr(key)[2:-1], key.hex(), _text(key)):
            assert form not in told


def test_a_keyring_shows_no_key() -> None:
    shown = repr(Keyring([NEW, OLD])) + str(Keyring([NEW, OLD]))
    assert not any(form in shown for key in (NEW, OLD) for form in (repr(key)[2:-1], key.hex(), _text(key)))
