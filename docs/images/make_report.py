"""Write the report that ``report.png`` shows: ESOL, fitted to two thirds of its molecules.

    python docs/images/make_report.py "$TREELENS_DATA/smiles/ESOL.csv.gz" report.html
    chromium --headless --hide-scrollbars --window-size=1200,1000 \
        --screenshot=docs/images/report.png report.html
"""

from __future__ import annotations

import sys

import numpy as np

import treelens as tl

graphs, y = tl.read_table(sys.argv[1], target="value")
order = np.random.default_rng(0).permutation(len(graphs))
train, test = np.split(order, [2 * len(order) // 3])
model = tl.GraphRegressor().fit(graphs[train], y[train])
model.report(sys.argv[2], graphs[test], y[test])
