"""
From a table to a decision
==========================

A table of measured molecules, a model with error bars, the reasons for a prediction, and which
molecules to measure next. The table comes with RDKit; the download below is a notebook.
"""

import matplotlib.pyplot as plt
import numpy as np

import treelens as tl

table = tl.read_table(tl.example_table(), target="pIC50")
table

# %%
# Every third molecule has been measured, and all others wait. How well are molecules predicted that
# the model has not seen? Each measured one is predicted from all the others.
measured = np.arange(len(table.graphs)) % 3 == 0
model = tl.GraphRegressor().fit(table.graphs[measured], table.targets[measured])
print(model.loo_)

# %%
# What the model rests on: the fragments with the largest effects on pIC50.
model.fragments_.head(3)

# %%
# One of the molecules that wait: which atoms raise its prediction, and which lower it?
waiting = table.graphs[~measured]
explanation = model.explain(waiting[40])
print(explanation.sentence)
explanation

# %%
# Which 24 to measure next, so that the best ones are found soon? ``suggest`` weighs what a molecule
# is predicted to be against what is not known of it, and avoids near copies.
chosen = tl.suggest(model, waiting, n=24)
print(chosen[["name", "prediction", "std", "similarity"]].head().round(2))

# %%
# Here the answer is known. The chosen ones are much better than molecules drawn by chance.
values = np.asarray(table.targets[~measured], dtype=float)
figure, axis = plt.subplots(figsize=(6, 3), layout="constrained")
bins = np.arange(4.0, 9.5, 0.5)
axis.hist(values, bins, density=True, color="0.8", label=f"all {len(values)} that wait")
axis.hist(
    values[chosen["index"]], bins, density=True, alpha=0.6, color="#d55e00", label="24 chosen"
)
axis.set(xlabel="measured pIC50", ylabel="density")
axis.legend(frameon=False)
plt.show()
