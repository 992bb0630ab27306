"""What the folder of a run was begun with: settings, data, versions. A run of others does not go on in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gape._internal.files import replacing
from gape.data import GraphDataset
from gape.experiments.graph_tasks.collect import parse_record
from gape.experiments.graph_tasks.protocol import changes
from gape.experiments.graph_tasks.versions import versions


def same_settings(settings: Mapping[str, Any], folder: Path) -> None:
    """Write down the settings of a run that begins; refuse to go on with other ones."""
    path = folder / "settings.json"
    if path.exists():
        refuse(changes(settings, parse_record(path.read_text(encoding="utf-8"), path)), folder)
    _write(settings, path)


def same_data(dataset: GraphDataset, folder: Path) -> None:
    """The same of the data: what it is and how many graphs it has."""
    path, now = folder / "data.json", {"data": dataset.provenance, "graphs": len(dataset)}
    if path.exists():
        then = parse_record(path.read_text(encoding="utf-8"), path)
        changed = [f"{key} {then.get(key)} and not {now[key]}" for key in now if then.get(key) != now[key]]
        refuse(", ".join(changed), folder)
    _write(now, path)


def versions_so_far(folder: Path) -> list[dict[str, str]]:
    """Write down today's versions; those of all sittings of the run, the last one last, each once."""
    path = folder / "versions.json"
    record = parse_record(path.read_text(encoding="utf-8"), path) if path.exists() else {}
    before = record.get("sittings", [record] if record else [])  # a file of one sitting had it plain
    sittings = [known for known in before if known != versions()] + [versions()]
    _write({"sittings": sittings}, path)
    return sittings


def refuse(changed: str, folder: Path) -> None:
    """Complain about what changed since the folder was begun, if anything did."""
    if changed:
        raise ValueError(
            f"{folder} was begun with other settings: {changed}; remove it, or keep runs elsewhere (runs=…)"
        )


def _write(record: Mapping[str, Any], path: Path) -> None:
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(record, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
