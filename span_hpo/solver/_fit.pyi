from span_hpo.runtime import FloatArray

_Factor = tuple[FloatArray, float, float, FloatArray, float, float, FloatArray]
_Parts = tuple[FloatArray, FloatArray, float, float, FloatArray, _Factor | None, int, int]

def fitted(
    K: FloatArray, y: FloatArray, costs: FloatArray, tol: float, max_iter: int
) -> _Parts | int: ...
