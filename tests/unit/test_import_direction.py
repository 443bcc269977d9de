"""Imports go one way: cli, api -> worker, audit -> delivery, log -> core."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "dispatcher"

# What each part of the package may import of it, besides itself and the leaves. A new part has to be placed.
LAYERS: dict[str, set[str]] = {
    "core": set(),
    "log": {"core"},
    "delivery": {"core"},
    # A transport for tests, of others too.
    "testing": {"core", "delivery"},
    "worker": {"core", "log", "delivery"},
    "audit": {"core", "log", "delivery"},
    "simulate": {"core", "log", "audit"},
    "live": {"core", "log", "delivery", "worker", "audit"},
    # The public names; `from dispatcher import run`.
    "__init__": {"core", "log", "audit", "delivery", "simulate", "live"},
    "api": {"core", "log", "delivery", "worker", "audit", "simulate", "live", "__init__"},
    "cli": {"core", "log", "delivery", "worker", "audit", "simulate", "live", "__init__", "api"},
    "__main__": {"cli"},
}
# Import nothing of the package; everything but core may import them.
LEAVES = {"arguments", "errors"}


class Import:
    """One imported module, and where."""

    def __init__(self, file: Path, node: ast.AST, module: str) -> None:
        self.file = file.relative_to(ROOT)
        self.module = module
        self.top = module.partition(".")[0]
        self._line = getattr(node, "lineno", 0)

    def __repr__(self) -> str:
        return f"{self.file}:{self._line} imports {self.module}"

    @property
    def importer(self) -> str:
        """The part of the package that imports: a subpackage or a module at its top."""
        return self.file.with_suffix("").parts[1]

    @property
    def imported(self) -> str | None:
        """The part of the package that is imported, if it is of the package."""
        part = (*self.module.split("."), "__init__")[1]
        return part if self.top == "dispatcher" else None


def _imports(folder: Path) -> Iterator[Import]:
    for file in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield Import(file, node, alias.name)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{file}:{node.lineno} imports relatively"
                assert node.module is not None
                if node.module == "dispatcher":
                    for alias in node.names:
                        is_module = any(PACKAGE.glob(f"{alias.name}.py")) or (PACKAGE / alias.name).is_dir()
                        yield Import(file, node, f"dispatcher.{alias.name if is_module else '__init__'}")
                else:
                    yield Import(file, node, node.module)


IMPORTS = [*_imports(PACKAGE)]


def test_every_part_of_the_package_has_its_place() -> None:
    parts = {file.stem for file in PACKAGE.glob("*.py")}
    parts |= {file.parent.relative_to(PACKAGE).parts[0] for file in PACKAGE.glob("*/**/*.py")}
    assert parts <= {*LAYERS, *LEAVES}


@pytest.mark.parametrize("part", sorted({*LAYERS, *LEAVES}))
def test_a_part_imports_only_what_lies_below_it(part: str) -> None:
    allowed = {part} if part in LEAVES | {"core"} else {part, *LAYERS[part], *LEAVES}
    imports = [found for found in IMPORTS if found.importer == part]
    assert [found for found in imports if found.imported not in {None, *allowed}] == []


def test_the_rules_need_the_standard_library_and_msgspec_only() -> None:
    outside = {found for found in IMPORTS if found.importer == "core" and found.imported is None}
    assert [found for found in outside if found.top not in {*sys.stdlib_module_names, "msgspec"}] == []


def test_only_the_log_speaks_to_a_database() -> None:
    found = [found for found in IMPORTS if found.top in ("sqlalchemy", "sqlite3")]
    assert [wrong for wrong in found if wrong.importer != "log"] == []


def test_only_the_seal_and_delivery_import_cryptography() -> None:
    """What is stored is encrypted in one place; signatures are delivery's."""
    found = [found for found in IMPORTS if found.top == "cryptography"]
    assert Path("dispatcher/log/seal.py") in {found.file for found in found}
    assert [wrong for wrong in found if wrong.importer != "delivery" and wrong.file.name != "seal.py"] == []


def test_what_sends_is_imported_by_delivery_only() -> None:
    found = [found for found in IMPORTS if found.top in ("aiohttp", "aiodns", "yarl", "idna")]
    assert [wrong for wrong in found if wrong.importer != "delivery"] == []


def test_only_migrate_imports_alembic() -> None:
    found = {found.file for found in IMPORTS if found.top == "alembic"}
    assert found == {Path("dispatcher/log/migrate.py")}


def test_nothing_imports_the_tests_or_the_migrations() -> None:
    assert [found for found in IMPORTS if found.top in ("tests", "migrations")] == []


def test_a_migration_is_frozen_it_imports_nothing_of_the_package() -> None:
    imports = [*_imports(ROOT / "migrations" / "versions")]
    assert imports
    assert {found.top for found in imports} <= {*sys.stdlib_module_names, "alembic", "sqlalchemy"}


def test_a_migration_never_makes_the_log_table_anew() -> None:
    for file in (ROOT / "migrations" / "versions").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("batch_alter_table"):
                assert "dispatcher_log" not in ast.unparse(node), f"{file.name}:{node.lineno}"
