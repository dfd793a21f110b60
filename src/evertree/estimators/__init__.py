"""The same tree in other dialects: scikit-learn's and river's. Each needs its extra installed."""
