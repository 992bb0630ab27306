"""What reading a ``.npz`` file raises that was cut short or has changed bits."""

import tokenize
import zipfile
import zlib

DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    KeyError,
    NotImplementedError,
    OSError,
    RuntimeError,
    ValueError,
    tokenize.TokenError,
)
