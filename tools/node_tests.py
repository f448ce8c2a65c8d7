#!/usr/bin/env python3
"""Prepares the ONNX node tests as folders, with an index.

    tools/node_tests.py BUILD_DIR [--debian FOLDER] [--force]

Writes BUILD_DIR/node_tests/debian/NAME (links to Debian's libonnx-testdata, opset 17 and older), BUILD_DIR/node_tests/onnx/NAME
(the node tests of the installed onnx package, in the same layout: model.onnx, test_data_set_0/input_I.pb and output_I.pb) and
BUILD_DIR/node_tests/index.json. A test of the onnx package whose graph, opset, name and number of data sets equal Debian's is left
out: it is the same test with other random numbers. Runs again only when the onnx package, Debian's package or this file changed.

index.json: {"tests": [{suite, name, path (relative to node_tests), opset, domains, operators (inner graphs and functions
included), functions, inputs, outputs (kinds: tensor, sequence, optional, map, sparse_tensor), types (element types of inputs and
outputs), random (holds an operator that draws numbers), rtol, atol}], ...}. rtol and atol are those that the test carries.
"""
import argparse
import hashlib
import json
import os
import pathlib
import shutil
import sys
import tempfile
import warnings

DEBIAN = pathlib.Path("/usr/share/libonnx-testdata/data/node")
# Of every node test of both packages, as their own runner compares them.
RTOL, ATOL = 1e-3, 1e-7
RANDOM_OPERATORS = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
SEED = 0


def graphs_of(graph):
    """`graph` and every graph inside its nodes' attributes."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in ([attribute.g] if attribute.HasField("g") else []) + list(attribute.graphs):
                yield from graphs_of(inner)


def operators_of(model) -> list[str]:
    """Names of all operators used, those of local functions included; other domains as domain::name."""
    found = set()
    for graph in [*graphs_of(model.graph), *model.functions]:
        for node in graph.node:
            found.add(node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}::{node.op_type}")
    return sorted(found)


def kind_and_type(value) -> tuple[str, str]:
    """(kind, element type name) of a graph input or output."""
    import onnx

    kind = (value.type.WhichOneof("value") or "tensor_type").removesuffix("_type")
    inner = value.type
    while inner.WhichOneof("value") in ("sequence_type", "optional_type"):
        inner = getattr(inner, inner.WhichOneof("value")).elem_type
    element = inner.tensor_type.elem_type if inner.HasField("tensor_type") else 0
    return kind, onnx.TensorProto.DataType.Name(element).lower()


def describe(suite: str, name: str, model, rtol: float, atol: float) -> dict:
    """One entry of the index."""
    operators = operators_of(model)
    inputs = [kind_and_type(value) for value in model.graph.input]
    outputs = [kind_and_type(value) for value in model.graph.output]
    opsets = {entry.domain or "ai.onnx": entry.version for entry in model.opset_import}
    return {
        "suite": suite,
        "name": name,
        "path": f"{suite}/{name}",
        "opset": opsets.get("ai.onnx", 0),
        "domains": opsets,
        "operators": operators,
        "functions": len(model.functions),
        "inputs": [kind for kind, _ in inputs],
        "outputs": [kind for kind, _ in outputs],
        "types": sorted({element for _, element in inputs + outputs}),
        "random": bool(RANDOM_OPERATORS.intersection(operators)),
        "rtol": rtol,
        "atol": atol,
    }


def content_of(model) -> bytes:
    """What makes two models the same test: everything but who wrote it, and the format version."""
    import onnx

    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for field in ("ir_version", "producer_name", "producer_version", "doc_string"):
        copy.ClearField(field)
    return copy.SerializeToString(deterministic=True)


def serialized(value, info) -> bytes:
    """One input or output as the protobuf message that its declared kind asks for."""
    import onnx
    from onnx import numpy_helper

    if isinstance(value, (onnx.TensorProto, onnx.SparseTensorProto, onnx.SequenceProto, onnx.OptionalProto)):
        return value.SerializeToString()
    convert = {
        "map_type": numpy_helper.from_dict,
        "sequence_type": numpy_helper.from_list,
        "optional_type": numpy_helper.from_optional,
    }.get(info.type.WhichOneof("value"), numpy_helper.from_array)
    return convert(value, info.name).SerializeToString()


def write_case(folder: pathlib.Path, case) -> None:
    """model.onnx and the data sets of one test of the onnx package."""
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    for number, (inputs, outputs) in enumerate(case.data_sets):
        data_set = folder / f"test_data_set_{number}"
        data_set.mkdir()
        for word, values, infos in (("input", inputs, case.model.graph.input), ("output", outputs, case.model.graph.output)):
            for index, (value, info) in enumerate(zip(values, infos, strict=True)):
                (data_set / f"{word}_{index}.pb").write_bytes(serialized(value, info))


def prepare(target: pathlib.Path, debian: pathlib.Path) -> dict:
    """Fills the new folder `target` and returns the index."""
    import numpy
    import onnx
    from onnx.backend.test.case.node import collect_testcases

    tests, contents = [], {}
    (target / "debian").mkdir(parents=True)
    (target / "onnx").mkdir()
    for source in sorted(debian.iterdir()) if debian.is_dir() else []:
        if not (source / "model.onnx").is_file():
            continue
        model = onnx.load(source / "model.onnx", load_external_data=False)
        contents[source.name] = (content_of(model), len(list(source.glob("test_data_set_*"))))
        (target / "debian" / source.name).symlink_to(source)
        tests.append(describe("debian", source.name, model, RTOL, ATOL))

    numpy.random.seed(SEED)
    same = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # many tests overflow or divide by zero on purpose
        cases = collect_testcases(None)
    for case in sorted(cases, key=lambda case: case.name):
        if contents.get(case.name) == (content_of(case.model), len(case.data_sets)):
            same += 1
            continue
        write_case(target / "onnx" / case.name, case)
        tests.append(describe("onnx", case.name, case.model, case.rtol, case.atol))
    return {"onnx_version": onnx.__version__, "numpy_version": numpy.__version__, "same_as_debian": same, "tests": tests}


def key_of(debian: pathlib.Path) -> str:
    """Digest of everything the result depends on."""
    from importlib import metadata

    names = "\n".join(f"{path.name} {(path / 'model.onnx').stat().st_mtime_ns}" for path in sorted(debian.glob("test_*")))
    parts = [metadata.version("onnx"), metadata.version("numpy"), names, str(debian), pathlib.Path(__file__).read_text()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--debian", type=pathlib.Path, default=DEBIAN)
    parser.add_argument("--force", action="store_true", help="write everything anew")
    arguments = parser.parse_args()

    target = arguments.build / "node_tests"
    index_path = target / "index.json"
    key = key_of(arguments.debian)
    index = json.loads(index_path.read_text()) if index_path.is_file() else {}
    if arguments.force or index.get("key") != key:
        arguments.build.mkdir(parents=True, exist_ok=True)
        fresh = pathlib.Path(tempfile.mkdtemp(prefix="node_tests.", dir=arguments.build))
        try:
            index = {"key": key, **prepare(fresh, arguments.debian)}
            (fresh / "index.json").write_text(json.dumps(index, indent=1))
            os.chmod(fresh, 0o755)
            if target.exists():
                shutil.rmtree(target)
            fresh.rename(target)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)

    counts = {suite: sum(test["suite"] == suite for test in index["tests"]) for suite in ("debian", "onnx")}
    if counts["debian"] == 0:
        print(f"skipped: no node tests of Debian in {arguments.debian} (apt-get install libonnx-testdata)")
    print(
        f"node_tests: {counts['debian']} of Debian, {counts['onnx']} of onnx {index['onnx_version']} "
        f"({index['same_as_debian']} more are the same as Debian's) in {target}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
