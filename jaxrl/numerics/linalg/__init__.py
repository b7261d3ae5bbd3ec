"""Linear algebra of small matrices: full-precision products, factorisations safe under `vmap`."""

from jaxrl.numerics.linalg.batching import all_at_once, one_at_a_time
from jaxrl.numerics.linalg.lapack import (
    eig,
    eigh,
    inverse,
    inverse_root,
    orthogonal_start,
    singular_values,
    svd,
)
from jaxrl.numerics.linalg.positive_definite import (
    log_determinant1p,
    root,
    root1p,
    root_and_coordinates,
    solve_lower,
    solve_positive,
)
from jaxrl.numerics.linalg.products import (
    FEW,
    matmul,
    matmul_of_few_columns,
    matmul_of_few_terms,
    sum_of_terms,
)

__all__ = [
    "FEW",
    "all_at_once",
    "eig",
    "eigh",
    "inverse",
    "inverse_root",
    "log_determinant1p",
    "matmul",
    "matmul_of_few_columns",
    "matmul_of_few_terms",
    "one_at_a_time",
    "orthogonal_start",
    "root",
    "root1p",
    "root_and_coordinates",
    "singular_values",
    "solve_lower",
    "solve_positive",
    "sum_of_terms",
    "svd",
]
