"""Attestations: a DSSE envelope (protocol v1.0.2) over an in-toto statement, signed with ed25519.

The signature covers PAE(type, payload) = "DSSEv1" SP len(type) SP type SP len(payload) SP payload.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tokitai_cli import evidence, report
from tokitai_cli.audit import keys
from tokitai_cli.audit.door import contradictions
from tokitai_cli.audit.opened import MOST_BYTES, opened
from tokitai_cli.core import storage
from tokitai_cli.core.model.audit_answer import Answer, Remark
from tokitai_cli.core.model.evidence import Evidence

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

PAYLOAD_TYPE = "application/vnd.in-toto+json"


class _Signature(msgspec.Struct):
    sig: str
    keyid: str = ""


class _Envelope(msgspec.Struct):
    payload: str
    payloadType: str  # noqa: N815 - the name in the format
    signatures: list[_Signature]


def beside(path: Path) -> Path:
    """Where the attestation of an evidence file lies."""
    return path.with_name(f"{path.stem}.dsse.json")


def attest(file: str, key: str, out: str | None) -> Answer:
    """Sign evidence that agrees with itself. Raises EvidenceError and UsageError."""
    path = Path(file)
    found = opened(path)
    faults = [one for one in contradictions(found) if one.fault]
    if faults:
        return Answer(f"{path.name}: inconsistent, and not signed", False, faults)
    statement = report.statement(found, path.name, storage.file_sha256(path))
    private = keys.private(Path(key))
    payload = msgspec.json.encode(msgspec.json.decode(statement))
    signature = private.sign(pae(PAYLOAD_TYPE, payload))
    envelope = {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": PAYLOAD_TYPE,
        "signatures": [
            {"keyid": _keyid(private.public_key()), "sig": base64.b64encode(signature).decode()}
        ],
    }
    target = Path(out) if out else beside(path)
    evidence.write_file(target, json.dumps(envelope, indent=1).encode() + b"\n")
    return Answer(f"{target}: {path.name} and its statement are signed", True)


def pae(kind: str, payload: bytes) -> bytes:
    """Pre-authentication encoding of DSSE."""
    name = kind.encode()
    return b"DSSEv1 %d %b %d %b" % (len(name), name, len(payload), payload)


def remarks(
    path: Path, evidence: Evidence, envelope: Path, key: Path, *, same: bool
) -> list[Remark]:
    """What speaks against the signature of an evidence file; nothing where it holds.

    same: this very tool has written it, so that every word of its statement can be made again.
    Raises UsageError for a key that cannot be used.
    """
    public = keys.public(key)
    try:
        data = storage.read_plain(envelope, MOST_BYTES)
        read = msgspec.json.decode(data, type=_Envelope)
        payload = base64.b64decode(read.payload, validate=True)
        signatures = [base64.b64decode(one.sig, validate=True) for one in read.signatures]
    except OSError as error:
        return [Remark(f"{envelope.name} cannot be read: {error.strerror or error}", fault=True)]
    except (ValueError, RecursionError):
        return [Remark(f"{envelope.name} is not a DSSE envelope", fault=True)]
    if read.payloadType != PAYLOAD_TYPE:
        return [Remark(f"{envelope.name} does not sign an in-toto statement", fault=True)]
    if not any(_verifies(public, one, pae(PAYLOAD_TYPE, payload)) for one in signatures):
        return [Remark(f"no signature in {envelope.name} was made with the key", fault=True)]
    return [Remark(text, fault=True) for text in _unlike(path, evidence, payload, same)]


def _unlike(path: Path, evidence: Evidence, payload: bytes, same: bool) -> list[str]:
    """Whether the signed statement is that of this file."""
    try:
        told: Any = msgspec.json.decode(payload)
        digests = [one["digest"] for one in told["subject"]]
        kinds = {name: told[name] for name in ("_type", "predicateType")}
        predicate = told["predicate"]
        result = predicate["result"]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return ["the signed content is not an in-toto statement"]
    digest = storage.file_sha256(path)
    if {"sha256": digest} not in digests:
        return [f"the signed content is another file: {path.name} has the sha256 {digest}"]
    mine: Mapping[str, Any] = msgspec.json.decode(report.statement(evidence, path.name, digest))
    if mine["predicate"]["result"] != result:
        return [f"the statement says {result}, and the evidence {mine['predicate']['result']}"]
    for name, kind in kinds.items():
        if mine[name] != kind:
            return [f"the signed content has the {name} {kind!r}, and not {mine[name]!r}"]
    subjects = [one["digest"] for one in mine["subject"]]
    if same and (mine["predicate"] != predicate or subjects != digests):
        return ["the statement contains facts about the run that the evidence does not"]
    return []


def _verifies(key: Ed25519PublicKey, signature: bytes, data: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(signature, data)
    except InvalidSignature:
        return False
    return True


def _keyid(key: Ed25519PublicKey) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return storage.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))
