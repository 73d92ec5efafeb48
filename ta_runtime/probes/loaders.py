"""Data sets that are split, passes over a `DataLoader`, and the batches that it hands out: loaders have no hooks."""

from torch.utils.data import DataLoader, random_split
from torch.utils.data._utils.fetch import _MapDatasetFetcher
from torch.utils.data.dataloader import _BaseDataLoaderIter

from ta_runtime.probes.patching import attribute, code

PLACES = {
    "split": (code(random_split),),
    "build_loader": (attribute(DataLoader, "__init__"),),
    "epoch": (attribute(DataLoader, "__iter__"),),
    "batch": (attribute(_BaseDataLoaderIter, "__next__"),),
    "fetch": (attribute(_MapDatasetFetcher, "fetch"),),
}
