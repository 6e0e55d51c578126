"""Which import statements a script runs before it does anything else, and which command runs a script."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

import pytest

from tb_dlprof_plugin.trial.prepared import Script, first_imports, script_of


def imports(folder: Path, text: str, **modules: str) -> list[str]:
    """The statements of a script with these modules next to it."""
    for name, content in modules.items():
        file = folder / f"{name.replace('__', '/', 1)}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(textwrap.dedent(content))
    (folder / "train.py").write_text(textwrap.dedent(text))
    return [ast.unparse(one) for one in first_imports(Script(folder / "train.py", folder))]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of the script, as Python sees it."""
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('"""What it does."""\nfrom __future__ import annotations\nimport os, sys\nfrom numpy import random as r\n',
         ["from __future__ import annotations", "import os, sys", "from numpy import random as r"]),
        # What a library reads when it is imported.
        ("import os\nos.environ['OMP_NUM_THREADS'] = '1'\nimport numpy", ["import os"]),
        ("import random\nrandom.seed(0)\nimport numpy", ["import random"]),
        ("import sys\nsys.path.insert(0, 'lib')\nimport numpy", ["import sys"]),
        ("import sys\ntry:\n    import numpy\nexcept ImportError:\n    sys.exit('no numpy')\nimport msgspec",
         ["import sys", "import numpy", "import msgspec"]),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import rich\nimport numpy",
         ["from typing import TYPE_CHECKING", "import numpy"]),
        ("if True:\n    import rich\nimport numpy", []),
        ("import no_such_package\nimport numpy", []),
        ("print('hello')", []),
    ],
)  # fmt: skip
def test_statements_before_anything_else(folder: Path, text: str, found: list[str]) -> None:
    assert imports(folder, text) == found


def test_modules_of_the_script_are_followed_to_what_they_do_themselves(folder: Path) -> None:
    found = imports(
        folder,
        "import math\nfrom package.model import Net\nimport numpy",
        package____init__="from . import layers\n",
        package__layers="import json\nimport package.model\n",
        package__model="import csv\nfrom .layers import json\n\nclass Net:\n    pass\n",
    )
    assert found == ["import math", "import json", "import csv"]
    # Only of imports.
    assert imports(folder, "import more\nimport numpy", more="import json\n") == ["import json", "import numpy"]


def test_a_module_of_the_script_comes_before_a_package_of_its_name(folder: Path) -> None:
    assert imports(folder, "import numpy\nimport csv", numpy="VALUE = 1\n") == []


def test_the_script_of_a_command(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    for name in ("train.py", "package/__init__.py", "package/__main__.py", "package/train.py"):
        (tmp_path / name).write_text("")
    installed = tmp_path / "lib" / "site-packages"
    installed.mkdir(parents=True)
    (installed / "launch.py").write_text("")

    def script(*words: str) -> tuple[str, str] | None:
        found = script_of(words, str(tmp_path))
        return None if found is None else (str(found.file.relative_to(tmp_path)), found.root.name)

    root = tmp_path.name
    assert script("/usr/bin/python3.11", "train.py", "-m", "x") == ("train.py", root)
    assert script("python", "-u", "-B", str(tmp_path / "package" / "train.py")) == ("package/train.py", "package")
    assert script("python", "-m", "package.train", "--lr", "1") == ("package/train.py", root)
    assert script("python", "-m", "package") == ("package/__main__.py", root)
    for other in (
        ("torchrun", "train.py"), ("accelerate", "launch", "train.py"),
        ("python", "-m", "torch.distributed.run", "train.py"),
        ("python", str(installed / "launch.py"), "train.py"), ("python", "-c", "1"), ("python",), ("python", "-m"),
        ("python", "-X", "dev", "train.py"), ("python", "none.py"), ("./train.py",),
    ):  # fmt: skip
        assert script(*other) is None, other
