"""Read and write files: tables of rows, models, and LIBSVM's formats."""

from span_hpo.io.atomic import write_text
from span_hpo.io.dialects import Dialect
from span_hpo.io.encoding import IMPUTE, Encoding, as_impute, learned_encoding
from span_hpo.io.ensemble import EnsemblePredictor
from span_hpo.io.libsvm_text import libsvm_entries, read_libsvm
from span_hpo.io.numbering import Numbering
from span_hpo.io.predictor import Predictor
from span_hpo.io.samples import Samples, read_samples
from span_hpo.io.scaling import Scaling
from span_hpo.io.table_files import file_format, read_table
from span_hpo.io.tables import Table, category_text, listed

__all__ = [
    "IMPUTE",
    "Dialect",
    "Encoding",
    "EnsemblePredictor",
    "Numbering",
    "Predictor",
    "Samples",
    "Scaling",
    "Table",
    "as_impute",
    "category_text",
    "file_format",
    "learned_encoding",
    "libsvm_entries",
    "listed",
    "read_libsvm",
    "read_samples",
    "read_table",
    "write_text",
]
