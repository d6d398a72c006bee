"""Writes a container image from scratch as an OCI layout in a tar archive.

Usage: image.py STAGE VERSION OUT.tar     STAGE has the static program and its licences; SOURCE_DATE_EPOCH is the time of all files in the image

The image has one layer: the program, its licences, and the empty folders /data (to be covered by a volume) and /tmp.
podman load, skopeo (oci-archive:) and newer versions of docker load read the archive.
"""

import datetime
import gzip
import hashlib
import io
import json
import os
import pathlib
import sys
import tarfile

EPOCH = int(os.environ["SOURCE_DATE_EPOCH"])
OCI = "application/vnd.oci.image"


def add(archive, name, mode, content=None):
    """Adds a file, or a folder if there is no content."""
    info = tarfile.TarInfo(name)
    info.mtime, info.mode = EPOCH, mode
    if content is None:
        info.type = tarfile.DIRTYPE
        archive.addfile(info)
    else:
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))


def layer(stage):
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for folder, mode in (("data", 0o777), ("tmp", 0o1777), ("usr", 0o755), ("usr/bin", 0o755)):
            add(archive, folder, mode)
        add(archive, "usr/bin/fathom", 0o755, (stage / "fathom").read_bytes())
        for folder in ("usr/share", "usr/share/doc", "usr/share/doc/fathom-io"):
            add(archive, folder, 0o755)
        for name in ("LICENCES-OF-DEPENDENCIES.txt", "LICENSE-APACHE", "LICENSE-MIT", "sbom.cdx.json"):
            add(archive, f"usr/share/doc/fathom-io/{name}", 0o644, (stage / name).read_bytes())
    return raw.getvalue()


def main():
    stage, version, out = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    created = datetime.datetime.fromtimestamp(EPOCH, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    blobs = {}

    def blob(kind, content, **more):
        digest = hashlib.sha256(content).hexdigest()
        blobs[digest] = content
        return {"mediaType": f"{OCI}.{kind}", "digest": f"sha256:{digest}", "size": len(content), **more}

    files = layer(stage)
    labels = {
        "org.opencontainers.image.title": "fathom",
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.licenses": "Apache-2.0 OR MIT",
    }
    config = {
        "created": created,
        "architecture": "amd64",
        "os": "linux",
        "config": {
            "Entrypoint": ["/usr/bin/fathom"],
            "Cmd": ["bench"],
            "Env": ["PATH=/usr/bin"],
            "WorkingDir": "/data",
            "Volumes": {"/data": {}},
            "Labels": labels,
        },
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(files).hexdigest()]},
        "history": [{"created": created, "created_by": "packaging/image.py"}],
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{OCI}.manifest.v1+json",
        "config": blob("config.v1+json", json.dumps(config).encode()),
        "layers": [blob("layer.v1.tar+gzip", gzip.compress(files, 9, mtime=0))],
        "annotations": labels,
    }
    entry = blob(
        "manifest.v1+json",
        json.dumps(manifest).encode(),
        platform={"architecture": "amd64", "os": "linux"},
        annotations={"org.opencontainers.image.ref.name": f"fathom-io:{version}"},
    )
    index = {"schemaVersion": 2, "mediaType": f"{OCI}.index.v1+json", "manifests": [entry]}
    with tarfile.open(out, "w", format=tarfile.GNU_FORMAT) as archive:
        add(archive, "oci-layout", 0o644, b'{"imageLayoutVersion": "1.0.0"}')
        add(archive, "index.json", 0o644, json.dumps(index).encode())
        for folder in ("blobs", "blobs/sha256"):
            add(archive, folder, 0o755)
        for digest, content in sorted(blobs.items()):
            add(archive, f"blobs/sha256/{digest}", 0o644, content)


main()
