"""The file around a model: a zip of stored members, written whole or not at all, and read with care."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from typing import BinaryIO
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from residua.atomic import PathLike, write_atomically

TABLE, ARRAYS, ESTIMATORS = "model.json", "arrays.safetensors", "base.skops"  # the members


class ModelFileError(ValueError):
    """A model file that cannot be used; the message names the file and says what to do."""


def damaged(what: str) -> ModelFileError:
    return ModelFileError(f"is damaged or no residua model ({what}); restore a copy, or save the model again.")


def write_zip(path: PathLike, members: Mapping[str, bytes]) -> None:
    """Write the members to ``path``, whole or not at all."""
    write_atomically(path, lambda file: write_members(file, members))


def write_members(file: BinaryIO, members: Mapping[str, bytes]) -> None:
    """Write a zip of stored members."""
    with ZipFile(file, "w", ZIP_STORED) as archive:
        for name, data in members.items():
            info = ZipInfo(name)  # without the time of day: the same model gives the same bytes
            info.external_attr = (stat.S_IFREG | 0o644) << 16
            archive.writestr(info, data)


def read_zip(path: PathLike) -> dict[str, bytes]:
    """Return the members of a stored zip; zipfile compares them with their checksums."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ModelFileError("is not a regular file; give a file that model.save wrote.")
    with open(path, "rb") as file, ZipFile(file) as archive:
        size = os.fstat(file.fileno()).st_size
        return {info.filename: archive.read(info) for info in sound_members(archive, size)}


def sound_members(archive: ZipFile, size: int) -> list[ZipInfo]:
    """Return the members of a zip of ``size`` bytes: none hides behind another, none is larger than its bytes."""
    members = archive.infolist()
    if len({info.filename for info in members}) < len(members):
        raise damaged("two members have one name")
    for info in members:
        if info.compress_type != ZIP_STORED or info.compress_size != info.file_size or info.flag_bits & 1:
            raise damaged(f"member {info.filename!r} is compressed or encrypted")
    if sum(info.file_size for info in members) > size:
        raise damaged("its members are larger than the file")
    return members
