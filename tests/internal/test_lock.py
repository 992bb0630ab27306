"""One at a time, also where the file that is held goes and comes."""

import fcntl
import os
import threading

import pytest

from gape._internal.files import locked, waiting

SECONDS = 20  # until a thread that never gets there fails the test


@pytest.fixture
def arrivals(monkeypatch):
    """A semaphore that counts the threads that have opened the file and are about to hold it."""
    arrived, flock = threading.Semaphore(0), fcntl.flock

    def told(file, how):
        arrived.release()
        flock(file, how)

    monkeypatch.setattr("gape._internal.files.fcntl.flock", told)
    return arrived


def test_who_waited_for_a_file_that_was_removed_holds_the_new_one(tmp_path, arrivals):
    path, holds, leave = tmp_path / "lock", threading.Event(), threading.Event()

    def second():
        with waiting(path):
            holds.set()
            assert leave.wait(SECONDS)

    thread = threading.Thread(target=second)
    with waiting(path):
        assert arrivals.acquire(timeout=SECONDS)
        thread.start()
        assert arrivals.acquire(timeout=SECONDS)  # the second one has opened the file that the first one removes
        assert not holds.is_set()
    assert holds.wait(SECONDS)
    with pytest.raises(BlockingIOError), waiting(path, patient=False):
        pass
    leave.set()
    thread.join(SECONDS)
    assert os.listdir(tmp_path) == []


def test_many_at_once_take_turns(tmp_path):
    count = tmp_path / "count"
    count.write_text("0")

    def add():
        for _ in range(50):
            with waiting(tmp_path / "lock"):
                count.write_text(str(int(count.read_text()) + 1))

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert count.read_text() == "200"


def test_a_folder_is_free_again_after_a_failure(tmp_path):
    with pytest.raises(KeyError), locked(tmp_path):
        raise KeyError
    with locked(tmp_path), pytest.raises(ValueError, match="is being run by another process"), locked(tmp_path):
        pass
    assert os.listdir(tmp_path) == []
