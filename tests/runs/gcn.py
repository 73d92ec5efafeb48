# as in tkipf/pygcn: one graph, sparse adjacency, the loss on a few nodes
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.parameter import Parameter


class GraphConvolution(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.weight = Parameter(torch.empty(in_features, out_features))
        self.bias = Parameter(torch.empty(out_features))
        stdv = 1.0 / out_features**0.5
        self.weight.data.uniform_(-stdv, stdv)
        self.bias.data.uniform_(-stdv, stdv)

    def forward(self, input, adj):
        return torch.spmm(adj, torch.mm(input, self.weight)) + self.bias


class GCN(nn.Module):
    def __init__(self, nfeat, nhid, nclass, dropout):
        super().__init__()
        self.gc1 = GraphConvolution(nfeat, nhid)
        self.gc2 = GraphConvolution(nhid, nclass)
        self.dropout = dropout

    def forward(self, x, adj):
        x = F.relu(self.gc1(x, adj))
        x = F.dropout(x, self.dropout, training=self.training)
        return F.log_softmax(self.gc2(x, adj), dim=1)


torch.manual_seed(0)
nodes, features = 300, 100
labels = torch.randint(0, 5, (nodes,))
x = (torch.rand(nodes, features) < 0.03).float()
x[torch.arange(nodes), labels * 3] = 1.0
x = x / x.sum(1, keepdim=True)
edges = torch.randint(0, nodes, (2, 1200))
edges = edges[:, (labels[edges[0]] == labels[edges[1]]) | (torch.rand(1200) < 0.1)]
adj = torch.zeros(nodes, nodes)
adj[edges[0], edges[1]] = adj[edges[1], edges[0]] = 1.0
adj = adj + torch.eye(nodes)
adj = (adj / adj.sum(1, keepdim=True)).to_sparse()
model = GCN(features, 16, 5, 0.5)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _epoch in range(100):
    model.train()
    optimizer.zero_grad()
    output = model(x, adj)
    loss = F.nll_loss(output[:140], labels[:140])
    loss.backward()
    optimizer.step()
