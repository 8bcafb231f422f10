"""Networks in model files: weights and settings come back to the last bit, forged ones do not."""

import copy
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load as from_safetensors
from safetensors.numpy import save as to_safetensors

import residua
from residua import GraphRegressor, ModelFileError, Network

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric.nn")


from networks import Own, fitted, small  # noqa: E402

SAVED = {
    "sage": lambda: ("sage", {}),
    "hops": lambda: ("hops", {}),
    "mlp": lambda: ("mlp", {"training": "post-hoc"}),
    "sage-pool": lambda: ("sage-pool", {"correlation": None}),
    "gcn": lambda: ("gcn", {"correlation": "propagate"}),
    "sage-gcn": lambda: ("sage-gcn", {"training": "post-hoc"}),
    "ensemble": lambda: ("sage", {"ensemble": 2}),
    "settings": lambda: (Network("sage", widths=[6, 4], epochs=10, validation=0.3), {}),
    "own": lambda: (Own(), {}),
    "own settings": lambda: (Network(Own().double(), epochs=10), {}),
}


def quick(name):
    """A model whose constructor parameter is as it was given."""
    base, parameters = SAVED[name]()
    graph, X, y = small()
    return GraphRegressor(base, **parameters).fit(X, y, graph=graph)


def module_of(name):
    """Another instance of the module that was fitted, if one was."""
    base = SAVED[name]()[0]
    base = getattr(base, "kind", base)
    return None if isinstance(base, str) else base


def answers(model):
    graph, X, y = small(seed=1)
    return [
        *model.predict(return_std=True),
        *model.predict(return_std=True, known="predict"),
        *model.predict_interval(coverage=0.8),
        *model.predict(X, y, graph=graph, return_std=True),
        model.sample(2),
        model.outcome_.base_out_of_fold_error,
        model.outcome_.members,
        model.outcome_.out_of_sample,
    ]


@pytest.mark.parametrize("name", SAVED)
def test_a_loaded_network_answers_to_the_last_bit(name, tmp_path):
    model = quick(name)
    model.save(tmp_path / "model.residua")
    again = residua.load(tmp_path / "model.residua", module=module_of(name))
    for before, after in zip(answers(model), answers(again), strict=True):
        np.testing.assert_array_equal(before, after)
    assert repr(again.diagnose()) == repr(model.diagnose())
    again.save(tmp_path / "again.residua")
    assert (tmp_path / "again.residua").read_bytes() == (tmp_path / "model.residua").read_bytes()


def test_a_new_process_fits_and_loads_to_the_same_bits(tmp_path):
    names = ["sage", "hops", "mlp", "ensemble", "own"]
    expected = [fitted("sage", ensemble=2).predict()]
    for name in names:
        model = quick(name)
        model.save(tmp_path / name)
        expected += [*model.predict(return_std=True), *model.predict_interval()]
    code = (
        "import sys; sys.path[:0] = [sys.argv[1], sys.argv[1] + '/..']\n"
        "import residua, test_model_file_networks as t\n"
        "found = [t.fitted('sage', ensemble=2).predict()]\n"
        "for name in sys.argv[3:]:\n"
        "    model = residua.load(f'{sys.argv[2]}/{name}', module=t.module_of(name))\n"
        "    found += [*model.predict(return_std=True), *model.predict_interval()]\n"
        "for value in found:\n"
        "    print(value.tobytes().hex())"
    )
    command = [sys.executable, "-c", code, str(Path(__file__).parent), str(tmp_path), *names]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert printed == [value.tobytes().hex() for value in expected]


def test_settings_come_back_as_parameters(tmp_path):
    model = quick("settings")
    model.save(tmp_path / "model.residua")
    again = residua.load(tmp_path / "model.residua")
    assert isinstance(again.base, Network)
    assert again.base.get_params() | {"widths": [6, 4]} == model.base.get_params()
    assert again.base.widths == (6, 4)


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (None, r"not the module, which is code; build it as for the fit and give it: residua.load\(path, module=...\)"),
        (Own, "needs module= to be a torch module, not <class"),
        (torch.nn.Linear(2, 1), r"does not fit module Linear: weights \['T.bias'"),
        (
            Own(width=5),
            r"array base.weights.first.lin_l.weight.0 is float32 of shape \(4, 2\), not float32 of \(5, 2\)",
        ),
        (Own().double(), "is float32 of shape .*, not float64"),
    ],
)
def test_a_module_of_ones_own_has_to_be_handed_back(module, message, tmp_path):
    fitted(Own(), epochs=2).save(tmp_path / "model.residua")
    with pytest.raises(ModelFileError, match=message):
        residua.load(tmp_path / "model.residua", module=module)


def test_a_handed_back_module_is_not_changed(tmp_path):
    fitted(Own(), epochs=2).save(tmp_path / "model.residua")
    module = Own()
    before = copy.deepcopy(module.state_dict())
    residua.load(tmp_path / "model.residua", module=module)
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())


def forged(path, table=None, arrays=None):
    """A saved network with entries of its JSON part or arrays changed."""
    fitted("sage", epochs=2).save(path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    if table:
        content = json.loads(parts["model.json"])
        table(content)
        parts["model.json"] = json.dumps(content).encode()
    if arrays:
        content = {name: value.copy() for name, value in from_safetensors(parts["arrays.safetensors"]).items()}
        arrays(content)
        parts["arrays.safetensors"] = to_safetensors(content)
    with zipfile.ZipFile(path, "w") as archive:
        for name, value in parts.items():
            archive.writestr(name, value)


WEIGHT = "base.weights.layers.0.lin_l.weight.0"


@pytest.mark.parametrize(
    "change",
    [
        {"table": lambda t: t["base"]["settings"].update(kind="os.system")},
        {"table": lambda t: t["base"]["settings"].update(widths=[10**9, 10**9])},
        {"table": lambda t: t["base"]["settings"].update(widths="16")},
        {"table": lambda t: t["base"]["settings"].update(kind="hops", hops=10**12)},
        {"table": lambda t: t["base"]["settings"].update(other=1)},
        {"table": lambda t: t["base"].update(members=10**9)},
        {"table": lambda t: t["base"].update(members=0)},
        {"table": lambda t: t["base"].update(y_spread=0.0)},
        {"table": lambda t: t["base"].update(y_centre="nan")},
        {"table": lambda t: t["base"].update(training="quick")},
        {"table": lambda t: t["parameters"].update(training="quick")},
        {"table": lambda t: t["parameters"].update(ensemble=-1)},
        {"table": lambda t: t["parameters"].update(base={"network": {"kind": "sage"}})},
        {"arrays": lambda a: a.pop(WEIGHT)},
        {"arrays": lambda a: a.pop("starts")},
        {"arrays": lambda a: a.update({"base.weights.more.0": np.zeros(3)})},
        {"arrays": lambda a: a.update({WEIGHT: a[WEIGHT].astype(np.float64)})},
        {"arrays": lambda a: a.update({WEIGHT: a[WEIGHT][:-1]})},
        {"arrays": lambda a: a[WEIGHT].fill(np.nan)},
        {"arrays": lambda a: a["held"].fill(2)},
        {"arrays": lambda a: a["base.x_spread"].fill(0)},
    ],
)
def test_a_forged_network_is_refused(change, tmp_path):
    forged(tmp_path / "model.residua", **change)
    with pytest.raises(ModelFileError, match="damaged or no residua model") as error:
        residua.load(tmp_path / "model.residua")
    assert "\n" not in str(error.value)


def test_a_network_without_torch_gives_one_clear_line(tmp_path):
    fitted("sage", epochs=2).save(tmp_path / "model.residua")
    code = (
        "import sys, residua\n"
        "class NoTorch:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'torch': raise ImportError('No module named torch')\n"
        "sys.meta_path.insert(0, NoTorch())\n"
        "try:\n    residua.load(sys.argv[1])\n"
        "except residua.ModelFileError as error:\n    print(error)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "model.residua")]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    assert "holds a network, which needs PyTorch" in printed
    assert printed.endswith('in your checkout of residua run: pip install ".[gnn]".')
    assert "\n" not in printed
