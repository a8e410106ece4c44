"""Every example runs as it stands, in a fresh process and an empty folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.places import ROOT
from tests.processes import ended

SPECIES = ("setosa", "versicolor", "virginica")


def run(arguments, folder, warnings="error"):
    found = ended([sys.executable, *arguments], folder, PYTHONWARNINGS=warnings)
    assert found.returncode == 0, found.stderr
    if warnings == "error":
        assert "Warning" not in found.stderr, found.stderr  # raised where none can catch it
    return found.stdout


def test_all_examples_are_tested():
    """No example is left out below."""
    programs = [path for path in (ROOT / "examples").iterdir() if path.suffix in (".py", ".sh")]
    assert {path.stem for path in programs} == {
        "bounds",
        "drop_in",
        "exact_loo",
        "feature_relevance",
        "flaml_component",
        "from_the_shell",
        "gradient_sampler",
        "gradients",
        "grid_search",
        "imbalanced",
        "pareto",
        "pruning",
        "quickstart",
        "radius_margin",
        "ray_asha",
        "ray_cluster",  # in test_ray
        "resume",
        "score_to_costs",
        "self_tuning",
        "three_processes",
        "tpot_node",
    }


def test_every_example_is_listed():
    """The README of the examples links to every file beside it, once, and to nothing else."""
    readme = ROOT / "examples" / "README.md"
    linked = re.findall(r"\[(\S+)\]\((\S+)\)", readme.read_text(encoding="utf-8"))
    assert all(title == name for title, name in linked)
    files = {path.name for path in readme.parent.iterdir() if path.is_file()} - {readme.name}
    assert sorted(name for _, name in linked) == sorted(files)


def test_bounds(tmp_path):
    """With equal costs the bounds are above the exact error at every cost."""
    printed = run([ROOT / "examples" / "bounds.py"], tmp_path)
    rows = [list(map(float, line.split())) for line in printed.splitlines()[2:]]
    assert [row[0] for row in rows] == [0.01, 0.1, 1, 10, 100, 1000]
    for _, exact, _, xi_alpha, span_bound, support_vectors, _ in rows:
        assert exact <= min(xi_alpha, span_bound, support_vectors)


def test_gradients(tmp_path):
    """Two of 22 features get the largest widths, and the error is a small part of that with one."""
    printed = run([ROOT / "examples" / "gradients.py"], tmp_path)
    one, each = (float(error) for error in re.findall(r"test error ([\d.]+)", printed))
    assert each < 0.2 * one
    widths = re.search(r"largest widths: (gamma_\d+) = \S+, (gamma_\d+)", printed)
    assert set(widths.groups()) == {"gamma_0", "gamma_1"}
    gain, error = map(float, re.search(r"gain ([\d.]+), standard error ([\d.]+)", printed).groups())
    assert gain > 2 * error


def test_radius_margin(tmp_path):
    """Bounds take fewer evaluations than leave-one-out, and all three models are accurate."""
    printed = run([ROOT / "examples" / "radius_margin.py"], tmp_path)
    lines = [line.rsplit(maxsplit=4) for line in printed.splitlines()[1:]]
    counts = {title.strip(): int(count) for title, count, *_ in lines}
    assert max(counts["bound of the SVM"], counts["bound of the L2-SVM"]) < 40
    assert counts["leave-one-out"] == 60
    assert min(float(accuracy) for *_, accuracy in lines) > 0.93


def test_drop_in(tmp_path):
    """Both searches choose among the same candidates, and the honest error is above the best."""
    printed = run([ROOT / "examples" / "drop_in.py"], tmp_path)
    found = re.findall(r"best score ([\d.]+), test score ([\d.]+)", printed)
    best, tests = ([float(numbers[place]) for numbers in found] for place in (0, 1))
    assert abs(best[0] - best[1]) < 0.02
    assert abs(tests[0] - tests[1]) < 0.02
    pattern = r"error to expect on new rows: ([\d.]+), from ([\d.]+) to ([\d.]+)"
    error, low, high = (float(number) for number in re.search(pattern, printed).groups())
    assert low < error < high
    assert error > 1 - best[1]
    assert low < 1 - tests[1] < high


def test_exact_loo(tmp_path):
    """The exact methods agree in the number of errors, and the span-rule's bounds contain it."""
    printed = run([ROOT / "examples" / "exact_loo.py"], tmp_path)
    pattern = r"(\w+) +(\d+) +(\d+) +\[([\d.]+), ([\d.]+)\]"
    found = {name: numbers for name, *numbers in re.findall(pattern, printed)}
    assert set(found) == {"span", "exact", "stopping", "refit"}
    assert found["exact"] == found["stopping"] == found["refit"]
    errors = int(found["exact"][0]) / 569
    assert float(found["span"][2]) - 1e-4 <= errors <= float(found["span"][3]) + 1e-4


def test_quickstart(tmp_path):
    """The first example tunes a model that is better on new rows than the untuned one."""
    printed = run([ROOT / "examples" / "quickstart.py"], tmp_path)
    tuned, untuned = (float(score) for score in re.findall(r"test accuracy, .+ ([\d.]+)", printed))
    assert tuned > untuned
    loss = float(re.search(r"leave-one-out error +([\d.]+)", printed)[1])
    assert abs(loss - (1 - tuned)) < 0.02


def test_grid_search(tmp_path):
    """The stock search reports the leave-one-out error of its best model with its bounds."""
    printed = run([ROOT / "examples" / "grid_search.py"], tmp_path)
    numbers = re.search(r"error ([\d.]+) \+- ([\d.]+), .* ([\d.]+) and ([\d.]+)", printed)
    error, standard_error, low, high = map(float, numbers.groups())
    assert low <= error <= high
    test_error = float(re.search(r"test error ([\d.]+)", printed)[1])
    assert abs(test_error - error) < 4 * standard_error


@pytest.mark.slow
def test_imbalanced(tmp_path):
    """Each search is the best of all models at the metric it was run for."""
    printed = run([ROOT / "examples" / "imbalanced.py"], tmp_path)
    pattern = r"^(\S.+?) {2,}(0\.\d{4}) +(0\.\d{4})$"
    losses = {
        title: (float(balanced), float(auc))
        for title, balanced, auc in re.findall(pattern, printed, flags=re.MULTILINE)
    }
    assert len(losses) == 4
    for column, metric in enumerate(("balanced_error", "auc")):
        assert min(losses, key=lambda title: losses[title][column]) == f"tuned for {metric}"


@pytest.mark.slow
def test_score_to_costs(tmp_path):
    """Costs from confidence remove most of the harm that the wrong labels do."""
    printed = run([ROOT / "examples" / "score_to_costs.py"], tmp_path)
    ignored, weighted = (float(error) for error in re.findall(r"test error ([\d.]+)", printed))
    assert weighted < 0.7 * ignored
    for name in "ABC":
        assert re.search(rf"costs from the score.* {name} [\d.]+", printed)


@pytest.mark.slow
def test_pruning(tmp_path):
    """Pruning ends trials, and hardly changes the loss."""
    printed = run([ROOT / "examples" / "pruning.py"], tmp_path)
    pattern = r"^(all rows|with pruning) +(\d+) +(\d+) +([\d.]+) +([\d.]+)$"
    found = {
        title: [float(number) for number in numbers]
        for title, *numbers in re.findall(pattern, printed, flags=re.MULTILINE)
    }
    plain, halved = found["all rows"], found["with pruning"]
    assert plain[:2] == [0, 60]
    assert halved[0] > 20
    assert halved[0] + halved[1] == 60
    assert abs(halved[3] - plain[3]) < 0.01


@pytest.mark.slow
def test_pareto(tmp_path):
    """On the front fewer support vectors cost more errors, and the limit is kept."""
    printed = run([ROOT / "examples" / "pareto.py"], tmp_path)
    lines = re.findall(r"^ +(\d+) +([\d.]+)$", printed, flags=re.MULTILINE)
    supports, errors = ([float(number) for number in column] for column in zip(*lines, strict=True))
    assert len(lines) > 3
    assert supports == sorted(set(supports))
    assert errors == sorted(set(errors), reverse=True)
    limit, error, support = re.search(
        r"at most (\d+) .* error ([\d.]+) with (\d+)", printed
    ).groups()
    assert int(support) <= int(limit) < max(supports)
    assert min(errors) <= float(error) < max(errors)


@pytest.mark.slow
def test_gradient_sampler(tmp_path):
    """Steps along gradients lower the loss and the test error of a study that only draws."""
    printed = run([ROOT / "examples" / "gradient_sampler.py"], tmp_path)
    found = re.findall(r"loss ([\d.]+), test error ([\d.]+)", printed)
    drawn, refined, followed = ([float(number) for number in pair] for pair in found)
    for better in (refined, followed):
        assert better[0] < drawn[0]
        assert better[1] < drawn[1]
    assert "40 of 60 trials were steps" in printed


@pytest.mark.slow
def test_resume(tmp_path):
    """The second session has the trials of the first, enqueues nothing and is never worse."""
    printed = run([ROOT / "examples" / "resume.py"], tmp_path)
    pattern = r"found (\d+) trials, enqueued (\d+) .* now (\d+) trials; .* loss ([\d.]+)"
    first, second = (
        [float(number) for number in numbers] for numbers in re.findall(pattern, printed)
    )
    assert (first[0], first[2]) == (0, 20)
    assert first[1] > 0
    assert second[:3] == [20, 0, 40]
    assert second[3] <= first[3]
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_self_tuning(tmp_path):
    """Flipped labels are among the first suspects, and without them the model is no worse."""
    printed = run([ROOT / "examples" / "self_tuning.py"], tmp_path)
    assert int(re.search(r"(\d+) of the first 12 suspects are flipped", printed)[1]) >= 8
    with_them, without = (
        float(score)
        for score in re.findall(r"test accuracy.* (0\.9\d+)", printed.replace(", log", "\n"))
    )
    assert without >= with_them
    low, high = (
        float(bound) for bound in re.search(r"between ([\d.]+) and ([\d.]+)", printed).groups()
    )
    assert low <= float(re.search(r"leave-one-out error ([\d.]+)", printed)[1]) <= high


def test_feature_relevance(tmp_path):
    """The three columns that matter come first, and widths of their own halve the test error."""
    printed = run([ROOT / "examples" / "feature_relevance.py"], tmp_path)
    one, each, few = map(float, re.findall(r"test error ([\d.]+)", printed))
    assert each < 0.5 * one
    assert few < 0.5 * one
    names = re.findall(r"^(\w+(?: \d+)?) +0\.\d{4}$", printed, re.MULTILINE)
    assert len(names) == 13
    assert set(names[:2]) == {"temperature", "vibration"}
    assert names[2] == "shift"


@pytest.mark.slow
def test_three_processes(tmp_path):
    """Three processes do their share, and no trial is lost."""
    printed = run([ROOT / "examples" / "three_processes.py"], tmp_path)
    done = re.findall(r"^process (\d+): (\d+) trials$", printed, flags=re.MULTILINE)
    assert len({process for process, _ in done}) == 3
    assert [int(trials) for _, trials in done] == [15, 15, 15]
    best = re.search(r"^45 trials .* by process (\d+), .* error ([\d.]+)$", printed, re.MULTILINE)
    assert best[1] in {process for process, _ in done}
    assert float(best[2]) < 0.05


def test_from_the_shell(tmp_path):
    """Two lines of a shell tune a model from a CSV file and predict with it."""
    script = ROOT / "examples" / "from_the_shell.sh"
    commands = [line for line in script.read_text().splitlines() if line.startswith("span-hpo ")]
    assert len(commands) == 2
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    found = subprocess.run(
        ["sh", script],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    assert "proven" in found.stdout
    lines = (tmp_path / "predictions.csv").read_text().splitlines()
    assert len(lines) == 151
    names = lines[0].split(",")
    assert names == ["prediction", *(f"probability of {name}" for name in SPECIES)]
    assert {line.split(",")[0] for line in lines[1:]} == set(SPECIES)


@pytest.mark.slow
def test_ray_asha(tmp_path):
    """Trials end at each budget, and the model is good on new rows."""
    pytest.importorskip("ray")
    printed = run([ROOT / "examples" / "ray_asha.py"], tmp_path, warnings="default")
    rows = dict(re.findall(r"(\d+): (\d+)", printed))
    assert set(rows) <= {"125", "250", "500", "1000"}
    assert sum(map(int, rows.values())) == 48
    assert int(rows["1000"]) < 30
    assert float(re.search(r"test error ([\d.]+)", printed)[1]) < 0.03


@pytest.mark.slow
def test_flaml_component(tmp_path):
    """All learners compete, and the chosen one is good on new rows."""
    pytest.importorskip("flaml.automl.model")
    printed = run([ROOT / "examples" / "flaml_component.py"], tmp_path, warnings="default")
    losses = dict(re.findall(r"^(\w+) +error (0\.\d+)$", printed, re.MULTILINE))
    losses.pop("test")
    assert set(losses) == {"span", "lgbm"}
    chosen = re.search(r"^chosen (\w+):", printed, re.MULTILINE)[1]
    assert losses[chosen] == min(losses.values())
    assert float(re.search(r"test error ([\d.]+)", printed)[1]) < 0.05


@pytest.mark.slow
def test_tpot_node(tmp_path):
    """A pipeline that TPOT has evolved around our SVM is good on new rows."""
    pytest.importorskip("tpot")
    printed = run([ROOT / "examples" / "tpot_node.py"], tmp_path, warnings="default")
    assert "LooSVC" in printed
    assert float(re.search(r"test error ([\d.]+)", printed)[1]) < 0.1


PAGES = ["README.md", *sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md"))]
FRAMEWORKS = {"docs/automl.md": "flaml.automl.model", "docs/ray.md": "ray"}


def programs(page):
    """Return the blocks of Python code of a page."""
    return re.findall(
        r"^```python\n(.*?)^```$", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE
    )


def test_readme_programs_are_short():
    """Both programs of the README have at most ten lines."""
    assert [len(program.splitlines()) <= 10 for program in programs("README.md")] == [True, True]


def with_programs():
    """Return the pages with programs; those of Ray start clusters, which takes long."""
    pages = [page for page in PAGES if programs(page)]
    slow = pytest.mark.slow
    return [pytest.param(page, marks=slow) if page == "docs/ray.md" else page for page in pages]


@pytest.mark.parametrize("page", with_programs())
def test_documentation_code_runs(page, tmp_path):
    """The programs of a page run one after the other, in one process and an empty folder."""
    if page in FRAMEWORKS:
        pytest.importorskip(FRAMEWORKS[page])
    script = tmp_path / "page.py"
    script.write_text("\n".join(programs(page)))
    assert run([script], tmp_path)
