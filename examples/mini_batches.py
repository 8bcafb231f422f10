"""Mini-batches of neighbours in a loop of one's own: the loss of a batch stands for that of all labels. Needs gnn."""

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv
from torch_geometric.utils import k_hop_subgraph

import residua
from residua.nn import CorrelatedResidual

data = residua.datasets.load_elect80()
known = np.random.default_rng(0).random(len(data.y)) < 0.6
mean, spread = data.y[known].mean(), data.y[known].std()
A = data.graph.adjacency().tocoo()
pyg = Data(
    x=torch.tensor(((data.X - data.X.mean()) / data.X.std()).to_numpy(), dtype=torch.float32),
    edge_index=torch.tensor(np.stack([A.row, A.col]), dtype=torch.int64),
    y=torch.tensor((data.y - mean) / spread, dtype=torch.float32),
    train_mask=torch.tensor(known),
)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = SAGEConv(3, 16), SAGEConv(16, 1)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)[:, 0]


torch.manual_seed(0)
net = Net()
residual = CorrelatedResidual(residua.Graph.from_pyg(pyg), pyg.train_mask)
optimiser = torch.optim.Adam([*net.parameters(), *residual.parameters()], lr=0.01)
train = torch.nonzero(pyg.train_mask)[:, 0]
for epoch in range(40):
    for seeds in train[torch.randperm(len(train))].split(256):
        # All neighbours up to two steps away; a NeighborLoader draws some of them (it needs pyg-lib).
        near, edges, where, _ = k_hop_subgraph(seeds, 2, pyg.edge_index, relabel_nodes=True, num_nodes=pyg.num_nodes)
        optimiser.zero_grad()
        loss = residual.loss(net(pyg.x[near], edges)[where], pyg.y[seeds], nodes=seeds)  # instead of mse_loss
        loss.backward()
        optimiser.step()
    if epoch % 10 == 9:
        print(f"epoch {epoch + 1:2d}  loss {float(loss.detach()):.2f}  alpha {float(residual.alpha.detach()):+.2f}")

base = net(pyg.x, pyg.edge_index).detach()
prediction = residual.correct(base, pyg.y)
r2 = residua.metrics.r2(pyg.y[~known].numpy(), prediction[~known].numpy())
print(f"R2 {r2:.2f} at counties whose turnout the model has not seen")
