"""One's own PyTorch Geometric loop: the likelihood as its loss, the correction at its end. Needs the extra gnn."""

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv

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
optimiser = torch.optim.Adam([*net.parameters(), *residual.parameters()], lr=0.02)
for epoch in range(100):
    optimiser.zero_grad()
    loss = residual.loss(net(pyg.x, pyg.edge_index), pyg.y)  # instead of mse_loss
    loss.backward()
    optimiser.step()
    if epoch % 25 == 0:
        print(f"epoch {epoch:2d}  loss {float(loss.detach()):.3f}  alpha {float(residual.alpha.detach()):+.2f}")

base = net(pyg.x, pyg.edge_index).detach()
prediction, std = residual.correct(base, pyg.y, return_std=True)
hidden = ~known
for name, values in (("network inside the model", base), ("corrected by its neighbours", prediction)):
    print(f"R2 {residua.metrics.r2(pyg.y[hidden].numpy(), values[hidden].numpy()):.2f}  {name}")
print(f"standard deviation of a hidden county: {float(std[hidden].mean()) * spread:.3f} on average")
