"""Files whole or not at all, and only where a file can be."""

import os

import pytest

from gape._internal.files import check_writable, replacing


def test_a_file_is_there_whole_or_as_it_was(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fail():
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert path.read_text() == "old"
    with replacing(path) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_what_was_written_is_on_the_disk_before_it_takes_the_name(tmp_path, monkeypatch):
    steps, fsync, replace = [], os.fsync, os.replace

    def synced(file):
        steps.append(os.fstat(file).st_ino)
        fsync(file)

    def renamed(source, target):
        steps.append("rename")
        replace(source, target)

    monkeypatch.setattr("gape._internal.files.os.fsync", synced)
    monkeypatch.setattr("gape._internal.files.os.replace", renamed)
    with replacing(tmp_path / "a.txt") as temporary:
        temporary.write_text("new")
    assert steps == [(tmp_path / "a.txt").stat().st_ino, "rename"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    with replacing(tmp_path / "link") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"


@pytest.mark.parametrize("there", ["folder", "pipe", "link to a pipe"])
def test_what_is_no_file_is_not_replaced(tmp_path, there):
    path = tmp_path / "x"
    if there == "folder":
        path.mkdir()
    else:
        os.mkfifo(tmp_path / "pipe")
        path = tmp_path / "pipe"
    if there == "link to a pipe":
        path = tmp_path / "link"
        path.symlink_to("pipe")
    for write in (check_writable, lambda path: replacing(path).__enter__()):
        with pytest.raises(ValueError, match="is a folder or device; name a regular file"):
            write(path)
    assert path.exists()


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*nowhere for x.csv; make it first"):
        check_writable(tmp_path / "nowhere" / "x.csv")
