"""
Numbers with error bars
=======================

A Gaussian process predicts a number for each molecule, with an error bar. Four fifths of the
molecules are for training, the others for testing both.

It uses molecules that come with RDKit. For a table of your own, pass the file, the column of the
target, and where to save the picture::

    python examples/plot_numbers.py molecules.csv value picture.png
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

import treelens as tl

path, target = sys.argv[1:3] if len(sys.argv) > 2 else (tl.example_table(), "pIC50")
table = tl.read_table(path, target=target)
source, graphs, y = Path(path).name.split(".")[0], table.graphs, np.asarray(table.targets)
if len(sys.argv) <= 2:  # a third is enough to show
    graphs, y = graphs[::3], y[::3]

order = np.random.default_rng(0).permutation(len(graphs))
train, test = np.split(order, [int(0.8 * len(order))])
model = tl.GraphRegressor().fit(graphs[train], y[train])
print(model.learning_gain_)

mean, std = model.predict(graphs[test], return_std=True)
error = y[test] - mean
rmse = np.sqrt(np.mean(error**2))
r2 = 1.0 - np.sum(error**2) / np.sum((y[test] - y[test].mean()) ** 2)
within = np.abs(error) <= norm.ppf(0.95) * std
print(f"{source}: trained on {len(train)}, tested on {len(test)} molecules")
print(f"RMSE {rmse:.3f} (leave-one-out {model.loo_.rmse:.3f}), R2 {r2:.3f}")
print(f"{within.mean():.1%} of the measurements lie within the 90 % intervals")

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 5.2), layout="constrained")
for inside, color, words in ((True, "#0072b2", "within"), (False, "#d55e00", "outside")):
    some = within == inside
    x, middle, reach = y[test][some], mean[some], norm.ppf(0.95) * std[some]
    left.vlines(x, middle - reach, middle + reach, color=color, linewidth=0.8, alpha=0.35)
    left.plot(x, middle, "o", color=color, markersize=3.5, alpha=0.8, label=words)
low, high = min(y[test].min(), mean.min()), max(y[test].max(), mean.max())
room = 0.08 * (high - low)
left.plot([low, high], [low, high], color="black", linewidth=0.8, linestyle="--")
left.set(
    xlabel="measured",
    ylabel="predicted, with 90 % interval",
    aspect="equal",
    xlim=(low - room, high + room),
    ylim=(low - room, high + room),
    title=f"{source}: RMSE {rmse:.2f}, R² {r2:.2f}",
)
left.legend(title="measurement and interval", loc="lower right")

# A 50 % interval should contain half of the measurements, and so on.
nominal = np.linspace(0.05, 0.95, 19)
observed = [np.mean(np.abs(error) <= norm.ppf(0.5 + p / 2) * std) for p in nominal]
right.plot([0, 1], [0, 1], color="black", linewidth=0.8, linestyle="--", label="perfect")
right.plot(nominal, observed, "o-", color="#0072b2", markersize=4, label=f"{len(test)} molecules")
right.set(
    xlabel="nominal coverage",
    ylabel="observed coverage",
    title=f"90 % intervals contain {within.mean():.0%}",
    aspect="equal",
)
right.legend(loc="upper left")
if len(sys.argv) > 3:
    figure.savefig(sys.argv[3], dpi=110)
plt.show()
