"""Parameters of a layer: those of its parts are those of its matrices, one by one."""

import pytest

from iomodel.models.registry import list_models, model


@pytest.mark.parametrize("name", list_models())
@pytest.mark.parametrize("active", [False, True])
def test_the_weights_of_an_mlp_are_those_of_its_matrices(name, active):
    spec = model(name)
    for layer in spec.counted:
        if layer.mlp is None or layer.reused:
            continue
        alone = layer.model_copy(update={"attention": None, "recurrent": None, "side": (), "dtypes": {}})
        matrices = sum(
            matrix.in_features * matrix.out_features * (matrix.visited if active else matrix.times)
            for matrix in alone.linears(spec.hidden_size)
        )
        assert layer.mlp.matrices(spec.hidden_size, active) == matrices
