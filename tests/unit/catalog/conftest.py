import pytest


@pytest.fixture(autouse=True)
def own_folders(tmp_path, monkeypatch):
    """No test reads or writes the hardware records and caches of whoever runs it."""
    monkeypatch.setenv("TRAINWRIGHT_HARDWARE", str(tmp_path / "hardware"))
    monkeypatch.setattr(
        "platformdirs.user_cache_dir", lambda *_args, **_kwargs: str(tmp_path / "cache")
    )


@pytest.fixture
def overlay(tmp_path):
    """The folder for a person's own GPU files."""
    folder = tmp_path / "hardware" / "gpu"
    folder.mkdir(parents=True)
    return folder
