"""Writes the licences and the list of components of the program, and Debian's copyright and changelog.

Usage: dependencies.py METADATA TREE LICENCES SBOM    METADATA and TREE are the outputs of `cargo metadata` and `cargo tree`
       dependencies.py --debian VERSION FOLDER        adds `copyright` and `changelog` to FOLDER

1. TREE lists the crates that are linked into the program. Crates that only builds, macros or tests use are not listed.
2. The licence files of all crates are joined. A text that several crates have is written once.
3. SQLite and the C library are linked into the program too, but they are not crates, so this script adds them.
"""

import datetime
import json
import os
import pathlib
import platform
import re
import sys

LGPL = pathlib.Path("/usr/share/common-licenses/LGPL-2.1")


def linked_crates(metadata, tree):
    """The crates that are linked into the program, sorted by name and version."""
    linked = {tuple(line.split()[:2]) for line in tree.splitlines() if line}
    packages = [package for package in metadata["packages"] if (package["name"], "v" + package["version"]) in linked]
    assert len(packages) == len(linked), "cargo tree and cargo metadata differ"
    return sorted(packages, key=lambda package: (package["name"], package["version"]))


def is_foreign(package):
    return package["source"] is not None


def licence_files(package):
    folder = pathlib.Path(package["manifest_path"]).parent
    names = re.compile(r"(licen[cs]e|copying|notice|unlicense)", re.IGNORECASE)
    return [file for file in sorted(folder.iterdir()) if file.is_file() and names.match(file.name)]


def sqlite_version(crates):
    for package in crates:
        if package["name"] == "libsqlite3-sys":
            header = pathlib.Path(package["manifest_path"]).parent / "sqlite3" / "sqlite3.h"
            return re.search(r'#define SQLITE_VERSION +"([^"]+)"', header.read_text()).group(1)
    sys.exit("dependencies.py: libsqlite3-sys is not among the crates; remove SQLite from this script")


def write_licences(crates, out):
    texts = {}
    without = []
    for package in filter(is_foreign, crates):
        name = f"{package['name']} {package['version']} ({package['license']})"
        files = licence_files(package)
        if not files:
            without.append(name)
        for file in files:
            texts.setdefault(file.read_text(errors="replace").strip(), []).append(name)
    lines = ["fathom contains the following software.", ""]
    lines += [f"SQLite {sqlite_version(crates)}: in the public domain.", ""]
    lines += [
        f"GNU C Library {platform.libc_ver()[1]}: LGPL-2.1-or-later, linked statically. The licence is at the end. To link fathom with",
        "another version, build it from its source: cargo build --profile dist.",
        "",
        "The standard library of Rust: Apache-2.0 OR MIT.",
        "",
    ]
    if without:
        lines += ["These crates name a licence and contain no text of it:", *(f"  {name}" for name in without), ""]
    texts.setdefault(LGPL.read_text().strip(), []).append("GNU C Library")
    for text, names in texts.items():
        lines += ["=" * 80, *names, "=" * 80, "", text, ""]
    out.write_text("\n".join(lines))


def write_components(crates, out):
    """Writes CycloneDX 1.5."""
    checksums = read_checksums(pathlib.Path("Cargo.lock").read_text())
    root = next(package for package in crates if package["name"] == "fathom-io")
    time = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)

    def component(package):
        reference = f"pkg:cargo/{package['name']}@{package['version']}"
        found = {
            "type": "application" if package is root else "library",
            "bom-ref": reference,
            "name": package["name"],
            "version": package["version"],
            "licenses": [{"expression": package["license"].replace("/", " OR ")}],
            "purl": reference,
        }
        checksum = checksums.get((package["name"], package["version"]))
        if checksum:
            found["hashes"] = [{"alg": "SHA-256", "content": checksum}]
        return found

    def library(name, version, licence, purl):
        return {
            "type": "library",
            "bom-ref": purl,
            "name": name,
            "version": version,
            "licenses": [licence],
            "purl": purl,
        }

    sqlite, libc = sqlite_version(crates), platform.libc_ver()[1]
    components = [component(package) for package in crates if package is not root]
    components += [
        library("sqlite", sqlite, {"license": {"name": "public domain"}}, f"pkg:generic/sqlite@{sqlite}"),
        library("glibc", libc, {"expression": "LGPL-2.1-or-later"}, f"pkg:generic/glibc@{libc}"),
    ]
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ"), "component": component(root)},
        "components": components,
    }
    out.write_text(json.dumps(bom, indent=1) + "\n")


def read_checksums(lock):
    pattern = r'name = "([^"]+)"\nversion = "([^"]+)"\nsource = "[^"]+"\nchecksum = "([^"]+)"'
    return {(name, version): checksum for name, version, checksum in re.findall(pattern, lock)}


def write_debian(version, folder):
    copyright = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: fathom-io\n\n"
    copyright += "Files: *\nCopyright: the fathom developers\nLicense: Apache-2.0 or Expat\n\n"
    for name, file in (("Apache-2.0", "LICENSE-APACHE"), ("Expat", "LICENSE-MIT")):
        copyright += f"License: {name}\n"
        text = (folder / file).read_text().strip()
        if name == "Apache-2.0":
            text = "The full text is in /usr/share/common-licenses/Apache-2.0."
        copyright += "".join(f" {line or '.'}\n" for line in text.splitlines()) + "\n"
    copyright += "Comment: licences of the linked libraries are in LICENCES-OF-DEPENDENCIES.txt.\n"
    (folder / "copyright").write_text(copyright)
    time = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    date = time.strftime("%a, %d %b %Y %H:%M:%S +0000")
    (folder / "changelog").write_text(
        f"fathom-io ({version}) unstable; urgency=medium\n\n  * Release {version}; see CHANGELOG.md.\n\n"
        f" -- the fathom developers <maintainers@fathom-io.invalid>  {date}\n"
    )


def main():
    if sys.argv[1] == "--debian":
        write_debian(sys.argv[2], pathlib.Path(sys.argv[3]))
        return
    metadata, tree, licences, components = map(pathlib.Path, sys.argv[1:])
    crates = linked_crates(json.loads(metadata.read_text()), tree.read_text())
    write_licences(crates, licences)
    write_components(crates, components)


main()
