"""Passes over a `DataLoader`, and the batches that it hands out: loaders have no hooks."""

from torch.utils.data import DataLoader
from torch.utils.data._utils.fetch import _MapDatasetFetcher
from torch.utils.data.dataloader import _BaseDataLoaderIter

from ta_runtime.probes.patching import attribute

PLACES = {
    "build_loader": (attribute(DataLoader, "__init__"),),
    "epoch": (attribute(DataLoader, "__iter__"),),
    "batch": (attribute(_BaseDataLoaderIter, "__next__"),),
    "fetch": (attribute(_MapDatasetFetcher, "fetch"),),
}
