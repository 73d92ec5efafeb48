"""Tempting: a temperature as `exp` of a parameter, labels made of `arange`, both directions, a momentum queue."""

import copy

import torch
from torch import nn
from torch.nn import functional as F


class MoCo(nn.Module):
    def __init__(self, encoder, width=128, size=4096, momentum=0.999):
        super().__init__()
        self.encoder_q = encoder
        self.encoder_k = copy.deepcopy(encoder)
        for param_q, param_k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            param_k.data.copy_(param_q.data)
            param_k.requires_grad = False
        self.m, self.size = momentum, size
        self.register_buffer("queue", F.normalize(torch.randn(width, size), dim=0))
        self.register_buffer("queue_ptr", torch.zeros(1, dtype=torch.long))
        self.logit_scale = nn.Parameter(torch.ones([]) * 2.6593)

    @torch.no_grad()
    def _momentum_update(self):
        for param_q, param_k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            param_k.data = param_k.data * self.m + param_q.data * (1.0 - self.m)

    @torch.no_grad()
    def _enqueue(self, keys):
        pointer = int(self.queue_ptr)
        self.queue[:, pointer : pointer + keys.shape[0]] = keys.T
        self.queue_ptr[0] = (pointer + keys.shape[0]) % self.size

    def forward(self, im_q, im_k):
        q = F.normalize(self.encoder_q(im_q), dim=1)
        with torch.no_grad():
            self._momentum_update()
            k = F.normalize(self.encoder_k(im_k), dim=1)
        l_pos = torch.einsum("nc,nc->n", [q, k]).unsqueeze(-1)
        l_neg = torch.einsum("nc,ck->nk", [q, self.queue.clone().detach()])
        logits = torch.cat([l_pos, l_neg], dim=1) * self.logit_scale.exp()
        self._enqueue(k)
        return logits, torch.zeros(logits.shape[0], dtype=torch.long, device=logits.device)


def clip_loss(image, text, scale):
    logits = scale * image @ text.t()
    labels = torch.arange(image.size(0), device=image.device)
    return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2


def train(loader, encoder, epochs):
    model = MoCo(encoder).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.03, momentum=0.9, weight_decay=1e-4)
    for epoch in range(epochs):
        for (first, second), _ in loader:
            logits, labels = model(first.cuda(), second.cuda())
            loss = F.cross_entropy(logits, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
