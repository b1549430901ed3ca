# The public names of treelens.chem; `__init__.py` imports them from here, on first use.
from .identity import same_molecules as same_molecules
from .molecules import molecules_to_collection as molecules_to_collection
from .molecules import smiles_to_collection as smiles_to_collection
from .smarts import pattern_smarts as pattern_smarts
from .views import Descriptors as Descriptors
from .views import Ecfp as Ecfp
