"""EverTreeClassifier works in CapyMOA, which takes scikit-learn's classifiers as they are.

CapyMOA needs Java and PyTorch and is no part of the development environment: the first test keeps
to the calls that its SKClassifier makes, the second one needs CapyMOA itself.
"""

import numpy as np
import pytest

from evertree import EverTreeClassifier


def drift(n=300):
    X = np.random.default_rng(0).random((n, 3))
    return X, ((X[:, 0] > 0.5) ^ (np.arange(n) > n // 2)).astype(int)


def test_the_calls_of_its_wrapper():
    model, right = EverTreeClassifier(window=50), 0
    X, y = drift()
    for i, (x, label) in enumerate(zip(X, y, strict=True)):
        if i:
            found = int(model.predict([x])[0])
            assert model.predict_proba([x])[0].argmax() == found
            assert model.predict_proba([x])[0].shape == (3,)
            right += found == label
        model.partial_fit([x], [label], classes=range(3))
    assert right > 220


def test_capymoa_itself():
    pytest.importorskip("capymoa", reason="CapyMOA is not installed")
    from capymoa.base import SKClassifier  # noqa: PLC0415
    from capymoa.evaluation import prequential_evaluation  # noqa: PLC0415
    from capymoa.stream import NumpyStream  # noqa: PLC0415

    stream = NumpyStream(*drift(), target_type="categorical")
    learner = SKClassifier(EverTreeClassifier(window=50), stream.get_schema())
    result = prequential_evaluation(stream, learner, window_size=100)
    assert result.cumulative.accuracy() > 75
    assert len(learner.sklearner.tree_) == 50
    assert learner.sklearner.certify().ok
