import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.model_selection import check_cv

from span_hpo import AllRows

ROWS = np.arange(10.0).reshape(5, 2)


@pytest.mark.parametrize("rows", [ROWS, ROWS.tolist(), csr_array(ROWS), pd.DataFrame(ROWS)])
def test_one_split_of_all_rows(rows):
    """All rows are training and test rows, whatever holds them."""
    splitter = AllRows()
    ((train, test),) = splitter.split(rows, np.zeros(5), groups=np.arange(5))
    assert train.tolist() == test.tolist() == [0, 1, 2, 3, 4]
    assert splitter.get_n_splits(rows) == 1


def test_scikit_learn_takes_it():
    """It is a splitter by scikit-learn's rules, and shows its name."""
    splitter = AllRows()
    assert check_cv(splitter) is splitter
    assert repr(pickle.loads(pickle.dumps(splitter))) == "AllRows()"
