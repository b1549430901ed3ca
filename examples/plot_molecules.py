"""
Molecules from SMILES
=====================

Carboxylic acids against esters and alcohols of the same carbon chains: a list of SMILES goes in,
and out comes which atoms made the difference.
"""

import io

import matplotlib.pyplot as plt
import numpy as np

import treelens as tl
from treelens.explain.draw import draw_graph

chains = ["C" * n for n in range(1, 9)] + [f"CC(C){'C' * n}" for n in range(1, 8)]
rings = ["c1ccccc1", "C1CCCCC1", "c1ccncc1", "c1ccsc1"]
acids = [f"{x}C(=O)O" for x in chains] + [f"OC(=O){x}" for x in rings]
others = [f"{x}C(=O)OC" for x in chains] + [f"OC{x}" for x in rings]
smiles, y = acids + others, np.repeat(["acid", "other"], [len(acids), len(others)])

# %%
# Atoms become nodes labelled with the element, bonds edges labelled - = # and : (aromatic).
model = tl.GraphSVC(kernel="wwl", depth=[1, 2], weight_radius=[0, 3], random_state=0)
model.fit(smiles, y)
print(model.patterns_[["pattern", "depth", "weight", "support", "class"]].head(8))

# %%
# Whether learning helped, on held-out parts of these molecules.
gain = model.learning_gain_
print(f"Learned minus uniform: {gain['difference']:+.3f} ± {gain['standard_error']:.3f}")

# %%
# Aspirin and its methyl ester, which the model has never seen.
new = {"aspirin": "CC(=O)Oc1ccccc1C(=O)O", "methyl ester": "CC(=O)Oc1ccccc1C(=O)OC"}
print(dict(zip(new, model.predict(list(new.values())).tolist(), strict=True)))

figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
for (name, text), place in zip(new.items(), axes, strict=True):
    explanation = model.explain(text, class_label="acid")
    png = draw_graph(explanation.graph, explanation.node_contributions, format="png")
    place.imshow(plt.imread(io.BytesIO(png)))
    place.set_title(f"{name}: {explanation.decision:+.2f} for acid")
    place.axis("off")
plt.show()
