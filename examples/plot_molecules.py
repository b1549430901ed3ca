"""
Molecules from SMILES
=====================

Carboxylic acids against esters and alcohols of the same carbon chains and rings: fit a list of
SMILES, print the fragments, and draw which atoms contribute to a prediction.
"""

import io

import matplotlib.pyplot as plt
import numpy as np

import treelens as tl

chains = ["C" * n for n in range(1, 9)] + [f"CC(C){'C' * n}" for n in range(1, 8)]
rings = ["c1ccccc1", "C1CCCCC1", "c1ccncc1", "c1ccsc1"]
acids = [f"{x}C(=O)O" for x in chains] + [f"OC(=O){x}" for x in rings]
others = [f"{x}C(=O)OC" for x in chains] + [f"OC{x}" for x in rings]
smiles, y = acids + others, np.repeat(["acid", "other"], [len(acids), len(others)])

# %%
# By default a model of molecules also has RDKit's descriptors where they predict better. Here they
# tell the classes apart by themselves: nothing is left for the atoms to explain, which the
# explanation says.
by_default = tl.GraphClassifier(depth=2).fit(smiles, y)
print(by_default.explain("OC(=O)CCc1ccccc1").structure_note)

# %%
# With ``descriptors=False`` structure has to carry the prediction. Atoms become nodes labelled with
# the element, bonds edges. The table has the fragments with the largest effects, positive ones
# favour the second class.
model = tl.GraphClassifier(depth=2, descriptors=False).fit(smiles, y)
print(model.fragments_[["name", "effect", "support"]].head(5))

# %%
# Leave-one-out accuracy, and what learning the weights changed.
print(f"Leave-one-out accuracy: {model.loo_.accuracy:.0%}")
print(model.learning_gain_)

# %%
# An acid and its methyl ester, which are not among the training molecules.
new = {"phenylpropionic acid": "OC(=O)CCc1ccccc1", "methyl ester": "COC(=O)CCc1ccccc1"}
print(dict(zip(new, model.predict(list(new.values())).tolist(), strict=True)))

figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
for (name, text), place in zip(new.items(), axes, strict=True):
    explanation = model.explain(text, class_label="acid")
    place.imshow(plt.imread(io.BytesIO(explanation.draw(format="png"))))
    place.set_title(f"{name}: {explanation.decision:+.2f} for acid")
    place.axis("off")
plt.show()
