"""What reading a ``.npz`` file raises that was cut short or has changed bits."""

import tokenize
import zipfile
import zlib

DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    KeyError,
    NotImplementedError,  # zipfile's word for a method of compression that it does not know
    OSError,
    RuntimeError,
    ValueError,
    tokenize.TokenError,
)
