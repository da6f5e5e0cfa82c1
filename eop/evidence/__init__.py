"""What a result rests on: files by digest, facts of the machine, and the DVC store."""

from eop.evidence.dvc import Dvc, NoRemote, Pushed, StoredFile
from eop.evidence.environment import code_digest, environment_facts, repository_facts
from eop.evidence.manifest import FileRef, problems
from eop.evidence.store import StoreReport, check_store

__all__ = [
    "Dvc",
    "FileRef",
    "NoRemote",
    "Pushed",
    "StoreReport",
    "StoredFile",
    "check_store",
    "code_digest",
    "environment_facts",
    "problems",
    "repository_facts",
]
