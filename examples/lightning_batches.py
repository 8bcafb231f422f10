"""The same mini-batches as a LightningModule: the loss of a batch in training_step. Needs gnn and lightning."""

import lightning.pytorch as lightning
import numpy as np
import torch
from torch.utils.data import DataLoader
from torch_geometric.nn import SAGEConv
from torch_geometric.utils import k_hop_subgraph

import residua
from residua.nn import CorrelatedResidual

data = residua.datasets.load_elect80()
known = np.random.default_rng(0).random(len(data.y)) < 0.6
A = data.graph.adjacency().tocoo()
x = torch.tensor(((data.X - data.X.mean()) / data.X.std()).to_numpy(), dtype=torch.float32)
y = torch.tensor((data.y - data.y[known].mean()) / data.y[known].std(), dtype=torch.float32)
edge_index = torch.tensor(np.stack([A.row, A.col]), dtype=torch.int64)


class Counties(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.first, self.second = SAGEConv(3, 16), SAGEConv(16, 1)
        self.residual = CorrelatedResidual(data.graph, known)  # alpha and beta are parameters like any other

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)[:, 0]

    def training_step(self, seeds, _):
        near, edges, where, _ = k_hop_subgraph(seeds, 2, edge_index, relabel_nodes=True, num_nodes=len(x))
        return self.residual.loss(self(x[near], edges)[where], y[seeds], nodes=seeds)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)


lightning.seed_everything(0, verbose=False)
model = Counties()
seeds = DataLoader(torch.as_tensor(np.flatnonzero(known)), batch_size=256, shuffle=True, drop_last=True)
quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
trainer = lightning.Trainer(max_epochs=20, accelerator="cpu", **quiet)
trainer.fit(model, seeds)

prediction, std = model.residual.correct(model(x, edge_index).detach(), y, return_std=True)
r2 = residua.metrics.r2(y[~known].numpy(), prediction[~known].numpy())
print(f"alpha {float(model.residual.alpha.detach()):.2f}")
print(f"R2 {r2:.2f} at counties whose turnout the model has not seen")
print(f"standard deviation {float(std[~known].mean()):.2f}, where labels have 1")
