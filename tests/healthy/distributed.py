"""Tempting: wrapping a model that the optimizer gets afterwards, `set_epoch`, `no_sync`, a sampler or shuffling."""

import contextlib
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler
from torchvision import datasets, models, transforms


def main(args):
    dist.init_process_group("nccl")
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    torch.manual_seed(args.seed + rank)
    dataset = datasets.ImageFolder(args.data, transforms.ToTensor())
    sampler = DistributedSampler(dataset) if args.distributed else None
    loader = DataLoader(
        dataset, args.batch_size, shuffle=(sampler is None), sampler=sampler, num_workers=8, pin_memory=True
    )
    model = models.resnet50(weights=None)
    model = nn.SyncBatchNorm.convert_sync_batchnorm(model).to(rank)
    model = DDP(model, device_ids=[rank])
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1).to(rank)
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=30, gamma=0.1)
    if args.resume:
        checkpoint = torch.load(args.resume, map_location=f"cuda:{rank}", weights_only=True)
        model.module.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        scheduler.load_state_dict(checkpoint["scheduler"])
    for epoch in range(args.epochs):
        if sampler is not None:
            sampler.set_epoch(epoch)
        model.train()
        for i, (images, target) in enumerate(loader):
            images = images.to(rank, non_blocking=True)
            target = target.to(rank, non_blocking=True)
            last = (i + 1) % args.accumulate == 0 or i + 1 == len(loader)
            with contextlib.nullcontext() if last else model.no_sync():
                loss = criterion(model(images), target) / args.accumulate
                loss.backward()
            if last:
                optimizer.step()
                optimizer.zero_grad()
        scheduler.step()
        if rank == 0:
            torch.save(
                {
                    "model": model.module.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "scheduler": scheduler.state_dict(),
                },
                args.output,
            )
    dist.destroy_process_group()
