"""Build the wheel twice, compare byte by byte, list what it needs (CycloneDX) and audit it. Run by ``make release``."""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def run(*command: str | Path, check: bool = True, **env: str) -> str:
    """The output of a command that has to succeed."""
    done = subprocess.run(command, cwd=ROOT, env=os.environ | env, capture_output=True, text=True)
    if check and done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def build(folder: Path, epoch: str) -> Path:
    """Build the wheel into ``folder``; all time stamps are that of the last commit."""
    run(sys.executable, "-m", "build", "--wheel", "--outdir", folder, SOURCE_DATE_EPOCH=epoch)
    (wheel,) = folder.glob("*.whl")
    return wheel


def audit() -> str:
    """What pip-audit knows against the pinned versions; an advisory that SECURITY.md does not explain is an error."""
    options = "-r", "constraints.txt", "--no-deps", "--disable-pip", "--format", "json"
    report = run(sys.executable, "-m", "pip_audit", *options, check=False)
    if not report:
        sys.exit("pip-audit gave no report; it needs pypi.org")
    packages = json.loads(report)["dependencies"]
    audited = [package for package in packages if "skip_reason" not in package]
    explained = (ROOT / "SECURITY.md").read_text()
    found = {
        f"{package['name']} {package['version']}: {advisory['id']}"
        for package in audited
        for advisory in package["vulns"]
        if not any(name in explained for name in (advisory["id"], *advisory["aliases"]))
    }
    if found:
        sys.exit("advisories that SECURITY.md does not explain:\n" + "\n".join(sorted(found)))
    unknown = len(packages) - len(audited)
    others = f"; {unknown} UNKNOWN to the service that answered" if unknown else ""
    return f"pip-audit: no unexplained advisory in {len(audited)} of {len(packages)} packages{others}"


def main() -> None:
    epoch = run("git", "log", "-1", "--format=%ct").strip()
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        wheels = [build(Path(folder), epoch) for folder in (first, second)]
        digests = [hashlib.sha256(wheel.read_bytes()).hexdigest() for wheel in wheels]
        if digests[0] != digests[1]:
            sys.exit(f"two builds of {wheels[0].name} differ: {digests[0]} and {digests[1]}")
        out = ROOT / "dist"
        out.mkdir(exist_ok=True)
        wheels[0].rename(out / wheels[0].name)
    bill = out / "sbom.cdx.json"
    run(Path(sys.executable).with_name("cyclonedx-py"), "requirements", "constraints.txt", "--of", "JSON", "-o", bill)
    print(f"dist/{wheels[0].name}: two builds, same bytes, sha256 {digests[0]}")
    print(f"dist/{bill.name}: the exact versions that it was tested with")
    print(audit())


if __name__ == "__main__":
    main()
