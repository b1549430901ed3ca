"""
Patterns that learning finds
============================

Made-up graphs in which one pattern decides the class, and much else looks as if it did. With
uniform weights the kernel listens to everything alike; learned weights find the pattern.
"""

import matplotlib.pyplot as plt

import treelens as tl

# %%
# Substructures 1 to 4 are for training. Those for testing combine the parts of 1 to 4 anew, so
# that what only seemed to matter now misleads.
train, y_train = tl.make_synthetic(substructures=[1, 2, 3, 4], random_state=0)
test, y_test = tl.make_synthetic(substructures=[5, 6, 7, 8], random_state=1)

settings = {"kernel": "wwl", "depth": 2, "gamma": 1.0, "C": 10.0, "random_state": 0}
uniform = tl.GraphSVC(weight_radius=0, **settings).fit(train, y_train)
learned = tl.GraphSVC(weight_radius=10, **settings).fit(train, y_train)
print(f"Accuracy with uniform weights: {uniform.score(test, y_test):.0%}")
print(f"Accuracy with learned weights: {learned.score(test, y_test):.0%}")

# %%
# 0(0,1,2) is a node labelled 0 whose neighbours are labelled 0, 1 and 2: the planted pattern.
table = learned.patterns_
print(table[["pattern", "depth", "weight", "support", "class"]].head())

# %%
# The same pattern carries the decision on a graph that the model has not seen.
print(learned.explain(test[0]))

top = table[table["depth"] == 1].head(12)[::-1]
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
axes.barh(top["pattern"], top["weight"])
axes.axvline(1.0, color="black", linewidth=0.8, linestyle="--", label="uniform")
axes.set(xlabel="weight", title="The largest weights of depth 1")
axes.legend()
plt.show()
