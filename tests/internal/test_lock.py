"""One process or thread at a time holds a lock."""

import subprocess
import sys
import threading

import pytest
from filelock import Timeout

from gape._internal.files import file_lock, folder_lock

SECONDS = 20  # until a thread that never gets there fails the test

HOLD = """
import sys, time
from pathlib import Path
from gape._internal.files import file_lock
with file_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_holder_waits_until_the_first_lets_go(tmp_path):
    path, holds, leave = tmp_path / "lock", threading.Event(), threading.Event()

    def second():
        with file_lock(path):
            holds.set()
            assert leave.wait(SECONDS)

    thread = threading.Thread(target=second)
    with file_lock(path):
        thread.start()
        assert not holds.wait(0.2)
    assert holds.wait(SECONDS)
    with pytest.raises(Timeout), file_lock(path, wait=False):
        pass
    leave.set()
    thread.join(SECONDS)
    with file_lock(path, wait=False):
        pass


def test_a_killed_process_frees_its_lock(tmp_path):
    path = tmp_path / "lock"
    with subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(Timeout), file_lock(path, wait=False):
            pass
        holder.kill()
        holder.wait()
        with file_lock(path, wait=False):
            pass


def test_many_at_once_take_turns(tmp_path):
    count = tmp_path / "count"
    count.write_text("0")

    def add():
        for _ in range(10):
            with file_lock(tmp_path / "lock"):
                count.write_text(str(int(count.read_text()) + 1))

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert count.read_text() == "40"


def test_a_folder_is_free_again_after_a_failure(tmp_path):
    with pytest.raises(KeyError), folder_lock(tmp_path):
        raise KeyError
    with (
        folder_lock(tmp_path),
        pytest.raises(ValueError, match="is in use by another process"),
        folder_lock(tmp_path),
    ):
        pass
    with folder_lock(tmp_path):
        pass


def test_waiting_for_another_process_is_said(tmp_path):
    held, go_on = threading.Event(), threading.Event()

    def hold():
        with file_lock(tmp_path / ".lock"):
            held.set()
            go_on.wait()

    other = threading.Thread(target=hold)
    other.start()
    held.wait()
    threading.Timer(0.2, go_on.set).start()
    with pytest.warns(UserWarning, match="waiting for another process that works on"), file_lock(tmp_path / ".lock"):
        pass
    other.join()
