"""A Django project whose views accept events: the README's example, as it is written."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dispatcher.live import Dispatcher
from tests.acceptance.cli import ROOT, environment
from tests.acceptance.lively import rows
from tests.acceptance.receiver import Receiver

SETTINGS = """
SECRET_KEY = "of the test"
DATABASES = {{"default": {{"ENGINE": "django.db.backends.sqlite3", "NAME": {name!r}}}}}
INSTALLED_APPS = ["orders"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
ROOT_URLCONF = "shop.urls"
ALLOWED_HOSTS = ["testserver"]
DEBUG = True
USE_TZ = True
"""
MODELS = """
from django.db import models

class Order(models.Model):
    total = models.IntegerField()
"""
WEBHOOKS = """
from django.conf import settings
from dispatcher import Dispatcher

dispatcher = Dispatcher(settings.DATABASES["default"]["NAME"])
"""
URLS = """
from django.urls import path
from orders.views import place

urlpatterns = [path("orders", place)]
"""
FIRST = """
import django
from django.core.management import call_command

django.setup()
from django.db import connection, transaction
from django.test import Client

from dispatcher.errors import Refused
from orders.models import Order
from orders.webhooks import dispatcher

def place(total):
    return Client().post("/orders", {"total": total}).json()
"""


@pytest.fixture
def project(live: Dispatcher, receiver: Receiver, database: Path, tmp_path: Path) -> Path:
    """A project with an app, which uses the dispatcher's database as its default one."""
    live.register("shop", receiver.url)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (views,) = re.findall(r"^```python\n# orders/views.py\n(.*?)^```$", readme, re.DOTALL | re.MULTILINE)
    files = {
        "shop/__init__.py": "",
        "shop/settings.py": SETTINGS.format(name=str(database)),
        "shop/urls.py": URLS,
        "orders/__init__.py": "",
        "orders/models.py": MODELS,
        "orders/webhooks.py": WEBHOOKS,
        "orders/views.py": views,
        "orders/migrations/__init__.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    python(tmp_path, "call_command('makemigrations', verbosity=0)\ncall_command('migrate', verbosity=0)")
    return tmp_path


def python(project: Path, script: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", FIRST + script],
        cwd=project,
        env=environment(DJANGO_SETTINGS_MODULE="shop.settings", PYTHONPATH=f"{ROOT}:{project}"),
        capture_output=True,
        text=True,
        check=check,
    )


def orders(database: Path) -> list[Any]:
    return [total for (total,) in rows(database, "SELECT total FROM orders_order ORDER BY id")]


def test_what_a_view_accepted_is_delivered_once_its_transaction_has_committed(
    project: Path, live: Dispatcher, receiver: Receiver, database: Path
) -> None:
    done = python(project, "print(place(4200)['event'])")
    event_id = done.stdout.strip()
    assert orders(database) == [4200]
    assert [event["event_id"] for event in live.inbox()] == [event_id]
    with live.worker():
        arrival = receiver.next()
    assert (arrival.event, arrival.body) == (event_id, b'{"order":1}')


def test_what_fails_afterwards_takes_the_event_along(project: Path, live: Dispatcher, database: Path) -> None:
    script = """
with transaction.atomic():
    place(1)
    try:
        with transaction.atomic():
            place(2)
            raise LookupError
    except LookupError:
        pass
try:
    with transaction.atomic():
        place(3)
        raise LookupError
except LookupError:
    pass
"""
    python(project, script)
    assert orders(database) == [1]
    assert len(live.inbox()) == 1


def test_outside_a_transaction_and_in_a_broken_one_it_is_refused(
    project: Path, live: Dispatcher, database: Path
) -> None:
    script = """
try:
    dispatcher.enqueue("shop", 1, connection=connection)
except Refused as refused:
    print(refused.code)
try:
    with transaction.atomic():
        transaction.set_rollback(True)
        dispatcher.enqueue("shop", 1, connection=connection)
except transaction.TransactionManagementError:
    print("broken")
"""
    assert python(project, script).stdout.split() == ["no_transaction", "broken"]
    assert live.inbox() == []


def test_no_key_is_in_its_log_of_queries(project: Path) -> None:
    script = """
with transaction.atomic():
    Order.objects.create(total=1)
    dispatcher.enqueue("shop", 1, connection=connection)
print(any("orders_order" in query["sql"] for query in connection.queries))
print(any("dispatcher" in query["sql"] for query in connection.queries))
"""
    assert python(project, script).stdout.split() == ["True", "False"]
