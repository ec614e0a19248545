"""Writes tests/kernels/triton/NAME: what Triton 3.9 leaves of a kernel in its cache, without paths.

`python tests/kernels/triton/build.py`, with triton==3.9.0 installed.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent.parent))

os.environ["TRITON_DISABLE_LINE_INFO"] = "1"

from tests.triton_cases import CASES, verified  # noqa: E402

for case in ("add", "softmax", "product of bfloat16"):
    name, said = CASES[case]
    with tempfile.TemporaryDirectory() as folder:
        verified(name, said, Path(folder))
        for file in Path(folder).glob(f"{name}.*"):
            data = file.read_bytes()
            if file.suffix == ".ttir":
                data = re.sub(rb'"[^"\n]*/', b'"', data)
            (HERE / name).mkdir(exist_ok=True)
            (HERE / name / file.name).write_bytes(data)
