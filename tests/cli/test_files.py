import errno
import gzip
import io
import json
import os
import re
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_iris

from span_hpo import Predictor
from span_hpo.cli import main
from tests.cli.program import NOT_FEATURES, call, hashes, moons_table, run
from tests.problems import two_moons


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_libsvm_files(kind, capsys):
    """LIBSVM's format goes in; a test file may have other features than the training rows."""
    X, y = load_iris(return_X_y=True)
    if kind == "sparse":
        X = np.hstack([X * (X > 2), np.zeros((150, 20))])
        X[0, -1] = 1.0
    dump_svmlight_file(X[::2], y[::2], "train", zero_based=False)
    more = np.hstack([X[1::2], np.ones((75, 1))])  # a feature that no training row has
    dump_svmlight_file(more, y[1::2], "test", zero_based=False)
    tuned = call("tune", "train", "--trials", 10, "--seed", 0, "--json", capsys=capsys)
    assert json.loads(tuned)["classes"] == {"0": 25, "1": 25, "2": 25}
    found = json.loads(call("predict", "model.json", "test", "--json", "--proba", capsys=capsys))
    assert found["error"] < 0.1
    assert found["error"] == np.mean(np.array(found["prediction"]) != y[1::2])
    total = sum(np.array(found[f"probability of {label}"]) for label in (0, 1, 2))
    np.testing.assert_allclose(total, 1.0)
    svmutil = pytest.importorskip("libsvm.svmutil")
    by_text = json.loads(call("predict", "model.libsvm", "test", "--json", capsys=capsys))
    labels, rows = svmutil.svm_read_problem("test")  # features that nobody has scaled
    theirs, _, _ = svmutil.svm_predict(labels, rows, svmutil.svm_load_model("model.libsvm"), "-q")
    assert by_text["prediction"] == theirs


def test_nothing_is_replaced_unasked(tmp_path, capsys):
    """A model, a study and predictions stay unless --force (or --resume) says otherwise."""
    command = ("tune", "rows.csv", "--target", "label", "--trials", 3, "--seed", 0)
    call(*command, capsys=capsys)
    call("predict", "model.json", "rows.csv", "--out", "out.csv", capsys=capsys)
    before = hashes(tmp_path)
    assert "exists already" in call(*command, capsys=capsys, code=2)
    again = ("predict", "model.json", "rows.csv", "--out", "out.csv")
    assert "out.csv exists already" in call(*again, capsys=capsys, code=2)
    Path("model.json").unlink()
    Path("model.libsvm").unlink()
    assert "has a study 'model' already" in call(*command, capsys=capsys, code=2)
    assert hashes(tmp_path).items() <= before.items()
    found = json.loads(call(*command, "--force", "--json", capsys=capsys))
    assert found["trials"] == 3
    call(*again, "--force", capsys=capsys)


def test_models_and_files_must_match(capsys):
    """A model of a table wants a table with its columns, one of numbered features wants these."""
    call("tune", "rows.csv", "--target", "label", "--trials", 2, "--seed", 0, capsys=capsys)
    dump_svmlight_file(*load_iris(return_X_y=True), "iris", zero_based=False)
    call("tune", "iris", "--trials", 2, "--seed", 0, "--out", "iris_model", capsys=capsys)
    error = call("predict", "model.json", "iris", capsys=capsys, code=2)
    assert "must be a table with the columns x, z, town" in error
    error = call("predict", "iris_model.json", "rows.csv", capsys=capsys, code=2)
    assert "must hold 4 numbered features" in error
    moons_table().drop(columns="z").to_csv("short.csv", index=False)
    error = call("predict", "model.json", "short.csv", capsys=capsys, code=2)
    assert "must have the columns 'z'" in error


def test_files_that_are_read_are_not_written(tmp_path, capsys):
    """Not even --force replaces the input, the model, or one output by another."""
    dump_svmlight_file(*two_moons(40), "rows.libsvm", zero_based=False)
    call("tune", "rows.csv", "--target", "label", "--trials", 2, "--seed", 0, capsys=capsys)
    before = hashes(tmp_path)
    for arguments in (
        ("tune", "rows.libsvm", "--out", "rows", "--force"),
        ("tune", "rows.csv", "--target", "label", "--out", "h", "--storage", "h.json"),
        ("tune", "rows.csv", "--target", "label", "--out", "h", "--storage", "rows.csv"),
        ("predict", "model.json", "rows.csv", "--out", "rows.csv", "--force"),
        ("predict", "model.json", "rows.csv", "--out", "model.json", "--force"),
        ("predict", "model.json", "rows.csv", "--out", "x", "--features", "x"),
    ):
        error = call(*arguments, capsys=capsys, code=2)
        assert "must be another file" in error
    assert hashes(tmp_path) == before


def wide_rows():
    """Return rows of which one has a feature with a large number, in LIBSVM's format."""
    rng = np.random.default_rng(0)
    lines = [
        f"{1 - 2 * (i % 2)} 1:{i % 2 + rng.random():.3f} 3:{rng.random():.3f}" for i in range(20)
    ]
    return "\n".join([*lines, "1 1:0.5 9999999:2"]) + "\n"


def test_features_that_no_row_uses_cost_nothing(tmp_path, capsys):
    """A number of a feature in the millions changes neither memory, files nor answers."""
    fixed = ("--C", 2, "--gamma", 1, "--scale", "minmax")
    found = []
    for name, last in (("narrow", 30), ("wide", 9_999_999)):
        Path(name).write_text(wide_rows().replace("9999999", str(last)))
        Path("new").write_text(f"1 1:1\n-1 1:0.5 2:3\n1 {last}:1\n-1 {last}:1 {last + 1}:5\n")
        call("tune", name, *fixed, "--out", name, capsys=capsys)  # compiles at the first time
        tracemalloc.start()
        tuned = json.loads(
            call("tune", name, *fixed, "--out", name, "--force", "--json", capsys=capsys)
        )
        models = [f"{name}.json", f"{name}.libsvm"]
        values = [call("predict", model, "new", "--values", capsys=capsys) for model in models]
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
        tracemalloc.stop()
        assert tuned["features"] == last
        found.append((tuned["exact_error"], tuned["loo_error"], values))
    assert found[0] == found[1]
    assert sum(file.stat().st_size for file in tmp_path.glob("wide*")) < 10_000
    svmutil = pytest.importorskip("libsvm.svmutil")
    labels, rows = svmutil.svm_read_problem("new")
    theirs, _, _ = svmutil.svm_predict(labels, rows, svmutil.svm_load_model("wide.libsvm"), "-q")
    by_text = json.loads(call("predict", "wide.libsvm", "new", "--json", capsys=capsys))
    assert by_text["prediction"] == theirs


@pytest.mark.parametrize("name", ["rows.csv", "rows", "rows.csv.gz", "rows.parquet"])
def test_files_that_cannot_be_read_end_with_one_line(name, tmp_path, capsys, monkeypatch):
    """A file that fails while it is read is named; one that disappears meanwhile is read."""
    target = () if name == "rows" else ("--target", "label")
    path = tmp_path / name
    if name == "rows.parquet":
        moons_table(40).to_parquet(path)
    elif name != "rows.csv":
        path.write_bytes(gzip.compress(b"x,label\n1,a\n2,b\n") if target else b"1 1:2\n-1 1:3\n")
    real = Path.open

    def opened(self, *arguments, **options):
        file = real(self, *arguments, **options)
        if self.name == name:
            path.unlink()
        return file

    class Failing(io.RawIOBase):
        def readable(self):
            return True

        def seekable(self):
            return True

        def readinto(self, buffer):
            raise OSError(errno.EIO, "Input/output error")

        def seek(self, *_):
            raise OSError(errno.EIO, "Input/output error")

    def failing(self, *arguments, **options):
        wanted = self.name == name
        return io.BufferedReader(Failing()) if wanted else real(self, *arguments, **options)

    monkeypatch.setattr(Path, "open", failing)
    error = call("loo", name, *target, capsys=capsys, code=2)
    assert "Input/output error" in error
    monkeypatch.setattr(Path, "open", opened)
    # A file that is open stays until it has been read.
    call("loo", name, *target, "--C", 1, "--gamma", 1, capsys=capsys)
    monkeypatch.undo()
    os.chdir(tmp_path)
    assert f"{name}: No such file" in call("loo", name, *target, capsys=capsys, code=2)


@pytest.mark.slow
def test_bad_files_in_a_process(tmp_path):
    """Bombs, half models and wide numbers end a process with one line and exit code 2."""
    Path("bomb.csv.gz").write_bytes(gzip.compress(bytes(2**20)) * 2000)
    error = run("tune", "bomb.csv.gz", "--target", "label", folder=tmp_path, code=2)
    assert "SPAN_HPO_UNPACK_LIMIT" in error
    Path("model.json").write_text(
        '{"format": "span_hpo model", "version": 1, "kernel": [' + "[" * 99_999
    )
    assert "must be a model in JSON" in run(
        "predict", "model.json", "rows.csv", folder=tmp_path, code=2
    )


def mutations(content, count, seed):
    """Yield damaged copies of a file."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        data = bytearray(content)
        kind = number % 8
        place = int(rng.integers(len(data)))
        if kind == 0:  # truncated
            del data[place:]
        elif kind == 1:  # binary noise
            data[place : place + 20] = rng.bytes(20)
        elif kind == 2:  # a few bits
            for spot in rng.integers(len(data), size=3):
                data[spot] ^= 1 << int(rng.integers(8))
        elif kind == 3:  # huge numbers
            huge = rng.choice([b"1e400", b"-1e308", b"9" * 400, b"nan", b"1e-320", b"99999999999"])
            numbers = [found.span() for found in re.finditer(rb"\d+", bytes(data))]
            start, end = numbers[int(rng.integers(len(numbers)))]
            data[start:end] = huge
        elif kind == 4:  # a wrong column, row or key
            words = [found.span() for found in re.finditer(rb"[^\s,:\"]+", bytes(data))]
            start, end = words[int(rng.integers(len(words)))]
            del data[start : end + 1]
        elif kind == 5:  # something twice
            data[place:place] = data[place : place + int(rng.integers(1, 200))]
        elif kind == 6:  # separators
            data[place : place + 1] = rng.choice([b",", b"\n", b'"', b"\0", b":", b"[", b"{", b"-"])
        else:  # a part is missing
            del data[place : place + int(rng.integers(1, 300))]
        yield bytes(data)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of poor fits to damaged data
@pytest.mark.parametrize(
    "kind", ["table", "parquet", "rows", "model.json", "model.libsvm", "new.csv", "study"]
)
def test_damaged_files(kind, tmp_path, capsys):
    """100 mutations of every kind of file: an answer or one clear line, never a traceback."""
    moons_table(40).to_csv("rows.csv", index=False)
    fixed = ("--C", 1, "--gamma", 1)
    call("tune", "rows.csv", "--target", "label", "--trials", 2, "--seed", 0, capsys=capsys)
    if kind == "parquet":
        moons_table(40).to_parquet("rows.parquet")
    if kind == "rows":
        dump_svmlight_file(*two_moons(40), "rows", zero_based=False)
    source, command = {
        "table": ("rows.csv", ("tune", "damaged.csv", "--target", "label", *fixed)),
        "parquet": ("rows.parquet", ("tune", "damaged.parquet", "--target", "label", *fixed)),
        "rows": ("rows", ("tune", "damaged", *fixed)),
        "model.json": ("model.json", ("predict", "damaged.json", "rows.csv")),
        "model.libsvm": ("model.libsvm", ("predict", "damaged.libsvm", "numbers")),
        "new.csv": ("rows.csv", ("predict", "model.json", "damaged.csv")),
        "study": (
            "model.journal",
            ("tune", "rows.csv", "--target", "label", "--resume", "--trials", 2),
        ),
    }[kind]
    if kind == "model.libsvm":
        dump_svmlight_file(np.ones((3, 7)), [1, 0, 1], "numbers", zero_based=False)
    if kind == "study":
        command += ("--storage", "damaged.journal", "--out", "model")
    else:
        command += ("--out", "out")
    Path("out.json").write_text("precious")
    damaged = next(Path(str(part)) for part in command if str(part).startswith("damaged"))
    content = Path(source).read_bytes()
    codes = []
    for mutation in mutations(content, 100, seed=len(kind)):
        damaged.write_bytes(mutation)
        before = hashes(tmp_path)
        arguments = command if kind == "study" else (*command, "--force")
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        code = ended.value.code
        codes.append(code)
        assert code in (0, 1, 2)
        assert "Traceback" not in printed.err
        if code:
            assert printed.out == ""
            assert printed.err.splitlines()[-1].startswith("span-hpo: ")
            after = hashes(tmp_path)
            if kind == "study":  # a journal may grow, if it can be read
                assert damaged.read_bytes().startswith(mutation)
                after.pop(tmp_path / damaged)
                before.pop(tmp_path / damaged)
            assert after == before
    assert codes.count(2) >= 20


def gaps_table(rows=120):
    """Return the table of the tests with missing numbers and categories."""
    frame = moons_table(rows)
    rng = np.random.default_rng(1)
    for name in ("x", "town"):
        frame.loc[rng.random(rows) < 0.1, name] = None
    return frame


def test_missing_values_are_told_at_once(capsys):
    """Without an option, one line names all columns with missing values and the options."""
    gaps_table().to_csv("gaps.csv", index=False)
    error = call("tune", "gaps.csv", "--target", "label", capsys=capsys, code=2)
    assert re.search(
        r"got none in 'x' \(\d+ of 120 rows, .* line \d+\), 'town' \(\d+ of 120", error
    )
    assert error.endswith(
        "Fill them in with --impute median, leave these rows out with --drop-rows, or these "
        "columns with --drop.\n"
    )


@pytest.mark.parametrize("impute", ["median", "most_frequent", "indicator"])
def test_models_fill_in_missing_values(impute, capsys):
    """`predict` answers rows with missing values as Python does, also in a column without any."""
    frame = gaps_table()
    frame.to_csv("gaps.csv", index=False)
    command = ("tune", "gaps.csv", "--target", "label", "--trials", 3, "--seed", 0, *NOT_FEATURES)
    found = json.loads(call(*command, "--impute", impute, "--json", capsys=capsys))
    assert (found["rows"], found["features"]) == (120, 7 if impute == "indicator" else 5)
    new = frame.drop(columns="label").assign(z=None)
    new.to_csv("new.csv", index=False)
    found = json.loads(call("predict", "model.json", "new.csv", "--json", capsys=capsys))
    assert found["prediction"] == Predictor.load("model.json").predict(new).tolist()


def test_rows_with_missing_values_are_left_out(capsys):
    """The number of rows that are left out is printed, and new rows with gaps are refused."""
    frame = gaps_table()
    frame.to_csv("gaps.csv", index=False)
    command = ("tune", "gaps.csv", "--target", "label", "--trials", 2, "--seed", 0, *NOT_FEATURES)
    with pytest.raises(SystemExit):
        main([*map(str, command), "--drop-rows", "--json"])
    printed = capsys.readouterr()
    kept = len(frame.dropna())
    assert json.loads(printed.out)["rows"] == kept
    note = f"Note: {120 - kept} of 120 rows are left out because values are missing."
    assert note in printed.err.splitlines()
    error = call("predict", "model.json", "gaps.csv", capsys=capsys, code=2)
    assert "got none in 'x'" in error
    assert "Fill them in, or fit with --impute if such rows are to be predicted." in error


def test_groups_are_no_features(capsys):
    """A note says that the column of the groups is not used, and the model does not need it."""
    with pytest.raises(SystemExit):
        main(["loo", "rows.csv", "--target", "label", "--group", "clinic", "--json"])
    printed = capsys.readouterr()
    note = "Note: column 'clinic' holds the groups, and is not used as a feature."
    assert note in printed.err.splitlines()
    assert json.loads(printed.out)["features"] == 6


@pytest.mark.filterwarnings("always")  # the program prints warnings
def test_quantities_are_refused_unless_insisted(capsys):
    """A column of numbers is no target, and with --classify its many classes are counted."""
    frame = moons_table(60)
    frame["size"] = np.arange(60) // 2
    frame.to_csv("sizes.csv", index=False)
    command = ("loo", "sizes.csv", "--target", "size", "--no-refit", "--drop", "label")
    error = call(*command, capsys=capsys, code=2)
    assert "got 30 different numbers from 0 to 29 in 60 rows, which look like a quantity" in error
    assert error.endswith("or use --classify if each number is a class.\n")
    with pytest.raises(SystemExit):
        main([*command, "--classify", "--json"])
    printed = capsys.readouterr()
    assert "Warning: column 'size' of sizes.csv holds 30 classes with 2 rows each" in printed.err
    assert json.loads(printed.out)["rows"] == 60


def test_files_in_other_dialects(capsys):
    """Encoding, decimal comma and delimiter are suggested, and read by both commands."""
    frame = moons_table().drop(columns=["trust", "clinic"])
    call(
        "tune",
        "rows.csv",
        "--target",
        "label",
        "--trials",
        2,
        "--seed",
        0,
        *NOT_FEATURES,
        "--out",
        "usual",
        capsys=capsys,
    )
    call("predict", "usual.json", "rows.csv", "--out", "usual.csv", capsys=capsys)
    frame.to_csv("other.csv", index=False, sep=":", decimal=",", encoding="latin-1")
    text = Path("other.csv").read_text(encoding="latin-1").replace("town", "größe")
    Path("other.csv").write_text(text, encoding="latin-1")
    command = ["tune", "other.csv", "--target", "label", "--trials", 2, "--seed", 0]
    error = call(*command, capsys=capsys, code=2)
    assert "Set --encoding latin-1 to read it." in error
    dialect = ["--encoding", "latin-1"]
    error = call(*command, *dialect, "--delimiter", ":", capsys=capsys, code=2)
    assert (
        "looks like numbers with decimal commas. Set --decimal ',' to read them, or name" in error
    )
    dialect += ["--delimiter", ":", "--decimal", ","]
    call(*command, *dialect, capsys=capsys)
    call("predict", "model.json", "other.csv", *dialect, "--out", "other_out.csv", capsys=capsys)
    assert Path("other_out.csv").read_text() == Path("usual.csv").read_text()


def test_columns_of_new_rows_can_be_dropped(capsys):
    """`predict` takes --drop for columns that the model does not need, such as old labels."""
    call(
        "tune",
        "rows.csv",
        "--target",
        "label",
        "--trials",
        2,
        "--seed",
        0,
        *NOT_FEATURES,
        capsys=capsys,
    )
    predict = ("predict", "model.json", "rows.csv", "--json")
    assert json.loads(call(*predict, capsys=capsys))["error"] < 0.5
    found = json.loads(call(*predict, "--drop", "label", *NOT_FEATURES, capsys=capsys))
    assert found["error"] is None
    error = call(*predict, "--drop", "town", capsys=capsys, code=2)
    assert "--drop must not name a column that the model needs, got 'town'." in error
    error = call(*predict, "--drop", "lable", capsys=capsys, code=2)
    assert "--drop must be a column of rows.csv, one of 'x', 'z'" in error
    dump_svmlight_file(*two_moons(40), "rows.libsvm", zero_based=False)
    for option, value in (("--drop", "x"), ("--decimal", ",")):
        arguments = ("predict", "model.json", "rows.libsvm", option, value)
        error = call(*arguments, capsys=capsys, code=2)
        assert f"{option} must not be given for a file in LIBSVM's format" in error


def test_timestamps_get_advice(capsys):
    """A column of dates says what can be made of it, and which options there are."""
    frame = moons_table()
    frame["day"] = [f"2024-{i % 12 + 1:02}-{i % 28 + 1:02}" for i in range(len(frame))]
    frame.to_csv("days.csv", index=False)
    error = call("tune", "days.csv", "--target", "label", capsys=capsys, code=2)
    assert "column 'day' of days.csv must hold numbers or categories, got timestamps" in error
    assert "Leave the column out with --drop or name it in --category if every" in error


@pytest.mark.filterwarnings("always")  # the program prints warnings
def test_a_first_line_that_looks_like_data(capsys):
    """A table without names is recognised, whatever column is asked for."""
    Path("bare.csv").write_text("5.1,x,a\n4.9,x,a\n6.2,y,b\n6.1,y,b\n")
    error = call("tune", "bare.csv", "--target", "label", capsys=capsys, code=2)
    assert error.endswith("one of '5.1', 'x', 'a', got 'label' (header missing?).\n")
    with pytest.raises(SystemExit):
        main(["loo", "bare.csv", "--target", "a", "--no-refit"])
    assert "Warning: the first line of bare.csv looks like data" in capsys.readouterr().err
