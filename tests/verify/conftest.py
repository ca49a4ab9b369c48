from __future__ import annotations

from pathlib import Path

import pytest

from tests.verify import places


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return places.shop(tmp_path_factory.mktemp("shop"))


@pytest.fixture(scope="session")
def harbour(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return places.harbour(tmp_path_factory.mktemp("harbour"))


@pytest.fixture(scope="session")
def freight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return places.freight(tmp_path_factory.mktemp("freight"))


@pytest.fixture(scope="session")
def made_up_company(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("company")
    script = places.company_script()
    script.write_company(folder, script.made_up_servers(folder / "servers"))
    return places.approved(folder)


@pytest.fixture(scope="session")
def real_company(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not places.LISTS.is_dir():
        pytest.skip(f"NOT TESTED: the published lists are not there ({places.LISTS}); everything else was")
    folder = tmp_path_factory.mktemp("real-company")
    script = places.company_script()
    script.write_company(folder, script.real_servers(places.LISTS))
    return places.approved(folder)
