"""Build the kernels; everything else about the package stands in pyproject.toml."""

import os
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

# Loops become vectors only if operations neither trap nor set errno. Without contraction, a product
# and a sum round in the same way in both versions of a loop, and as in NumPy. There are infinities.
FLAGS = ["-O3", "-g0", "-fno-trapping-math", "-fno-math-errno", "-ffp-contract=off"]
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "initializedcheck": False,
    "cdivision": True,
}


def kernels() -> list[Extension]:
    """Return an extension for each .pyx file of the package."""
    os.chdir(Path(__file__).resolve().parent)
    sources = sorted(Path("span_hpo").rglob("*.pyx"))
    extensions = [
        Extension(
            ".".join(source.with_suffix("").parts),
            [source.as_posix()],
            include_dirs=["span_hpo/runtime"],
            depends=["span_hpo/runtime/loops.h"],
            extra_compile_args=[] if sys.platform == "win32" else FLAGS,
        )
        for source in sources
    ]
    built: list[Extension] = cythonize(
        extensions, build_dir="build/cython", compiler_directives=DIRECTIVES
    )
    for extension in built:
        # `cythonize` forgets this. Without a C compiler, Python and NumPy do the same work.
        extension.optional = True
    return built


setup(ext_modules=kernels(), options={"build_ext": {"parallel": os.cpu_count()}})
