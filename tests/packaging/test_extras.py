"""Where a library of an extra is missing, the error names the extra; and every extra exists.

A fresh interpreter hides the libraries, as if they had never been installed.
"""

import importlib.metadata
import re
import subprocess
import sys

import pytest

HIDE = """
import importlib.abc, sys

class Hide(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in {hidden!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hide())
from evertree import EverTree, EvertreeError
tree = EverTree(1)
tree.insert_many([[1.0], [2.0]], ["a", "b"])
try:
    {code}
except EvertreeError as error:
    print(error)
"""

PREQUENTIAL = (
    "from evertree import evaluate, streams; result = evaluate.prequential("
    "streams.incremental(5)(streams.sea(n=20, seed=1)), evaluate.NoChange()); "
)
RUN = (
    "import tempfile, pathlib; from evertree.cli import main; folder = tempfile.mkdtemp(); "
    "file = pathlib.Path(folder) / 'a.csv'; "
    "file.write_text('x,y\\n' + '1,a\\n2,b\\n' * 20); "
    "sys.stderr = sys.stdout; main(['run', str(file), '--label', 'y', '--window', '5', {}])"
)
FRAME = (
    "import pandas; from evertree import streams; "
    "streams.from_frame(pandas.DataFrame({'x': [1.0], 'y': [1]}), label='y')"
)
NEEDED = [
    ("sklearn", "sklearn", "from evertree import EverTreeClassifier"),
    ("sklearn", "narwhals", "import polars; tree.label_many(polars.DataFrame({'x': ['a']}))"),
    ("river", "river", "import evertree.river"),
    ("plot", "matplotlib", "from evertree import plot_tree; plot_tree(tree)"),
    ("plot", "matplotlib", "from evertree import plot_history; plot_history({'f1': [1.0]})"),
    ("plot", "matplotlib", PREQUENTIAL + "result.plot()"),
    ("plot", "pandas", PREQUENTIAL + "result.to_frame()"),
    ("export", "onnx", "from evertree import to_onnx; to_onnx(tree)"),
    ("export", "treelite", "from evertree import to_treelite; to_treelite(tree)"),
    ("export", "sklearn", "from evertree import to_sklearn; to_sklearn(tree)"),
    ("streams", "pyarrow", "from evertree import streams; streams.read_parquet('a', label='y')"),
    ("streams", "pyarrow", FRAME),
    ("cli", "matplotlib", RUN.format("'--report', folder + '/a.html'")),
    ("river", "river", RUN.format("'--compare', 'river'")),
    ("sklearn", "sklearn", RUN.format("'--compare', 'sklearn'")),
]


@pytest.mark.parametrize(
    ("extra", "library", "code"), NEEDED, ids=[f"{e}-{m}-{i}" for i, (e, m, _) in enumerate(NEEDED)]
)
def test_a_missing_library_is_missed_by_the_name_of_its_extra(extra, library, code):
    text = HIDE.format(hidden={library}, code=code)
    said = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=False, timeout=60
    )
    assert f"evertree[{extra}]" in said.stdout, said.stdout + said.stderr
    assert not said.stderr


def test_the_extra_brings_what_was_missed():
    needs = importlib.metadata.requires("evertree")
    of = {
        extra: set() for extra in importlib.metadata.metadata("evertree").get_all("Provides-Extra")
    }
    for need in needs:
        name, _, extra = need.partition("; extra == ")
        if extra:
            of[extra.strip("\"'")].add(re.match(r"[\w-]+(\[[\w,]+\])?", name)[0])
    of["cli"] |= of["plot"] | of["streams"]  # evertree[streams,plot]
    names = {"sklearn": "scikit-learn"}
    for extra, library, _ in NEEDED:
        assert names.get(library, library) in of[extra], f"{library} is not in [{extra}]"


def test_the_command_without_its_extra_still_runs():
    text = HIDE.format(hidden={"rich", "matplotlib", "pandas", "pyarrow"}, code=RUN.format(""))
    said = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=False, timeout=60
    )
    assert "accuracy" in said.stdout, said.stdout + said.stderr
