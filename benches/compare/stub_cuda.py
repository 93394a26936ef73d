#!/usr/bin/env python3
"""Stand-ins for the CUDA libraries that PyTorch's wheel is linked with.

    stub_cuda.py SITE_PACKAGES

The wheel on PyPI needs several gigabytes of CUDA libraries merely to be imported. A run on the CPU only
registers kernels with them: libraries with the same names and symbols are enough, in which registering does
nothing and all else says that there is no device.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

# Which library a symbol without a version belongs to.
UNVERSIONED = [
    ("nccl", "libnccl"),
    ("nvshmem", "libnvshmem_host"),
    ("cudnn", "libcudnn"),
    ("cusparseLt", "libcusparseLt"),
    ("cusparse", "libcusparse"),
    ("cusolver", "libcusolver"),
    ("cufft", "libcufft"),
    ("cuFile", "libcufile"),
    ("cublasLt", "libcublasLt"),
    ("cublas", "libcublas"),
    ("cupti", "libcupti"),
    ("nvrtc", "libnvrtc"),
    ("cuda", "libcudart"),
    ("cu", "libcuda"),
]

# What a run on the CPU does ask.
ANSWERS = {
    "cudaGetErrorString": "const char *cudaGetErrorString(int e) { return \"no CUDA, only a stand-in\"; }",
    "cudaGetErrorName": "const char *cudaGetErrorName(int e) { return \"cudaErrorNoDevice\"; }",
    "cudaGetDeviceCount": "int cudaGetDeviceCount(int *count) { *count = 0; return 100; }",
    "cudaStreamIsCapturing": "int cudaStreamIsCapturing(void *s, int *status) { *status = 0; return 0; }",
}


def output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def function(symbol: str) -> str:
    # 100 is `cudaErrorNoDevice`, and an error everywhere else.
    result = 0 if symbol.startswith("__cuda") else 100
    return ANSWERS.get(symbol, f"long {symbol}(void) {{ return {result}; }}")


def main(site_packages: Path) -> None:
    folder = site_packages / "torch" / "lib"
    # Library -> version node (or none) -> symbols.
    stubs: dict[str, dict[str | None, set[str]]] = {}
    for library in sorted(folder.glob("libtorch*.so")) + sorted(folder.glob("libc*.so")):
        for line in output("readelf", "-d", str(library)).splitlines():
            needed = re.search(r"NEEDED.*\[(lib(cu|nccl|nvrtc|nvshmem)[^\]]*)\]", line)
            if needed:
                stubs.setdefault(needed[1], {})
    by_stem = {name.split(".so")[0]: name for name in stubs}
    for library in sorted(folder.glob("libtorch*.so")) + sorted(folder.glob("libc*.so")):
        names = output("nm", "-D", "--undefined-only", "--with-symbol-versions", str(library))
        for line in names.splitlines():
            symbol, _, version = line.split()[-1].partition("@")
            version = version.lstrip("@") or None
            if version in stubs:
                stubs[version].setdefault(version, set()).add(symbol)
                continue
            for prefix, stem in UNVERSIONED:
                if symbol.startswith(prefix) and stem in by_stem:
                    stubs[by_stem[stem]].setdefault(version, set()).add(symbol)
                    break
    with tempfile.TemporaryDirectory() as scratch:
        source, script = Path(scratch, "stub.c"), Path(scratch, "stub.map")
        for name, versions in stubs.items():
            symbols = sorted(set().union(*versions.values()))
            source.write_text("\n".join(map(function, symbols)))
            nodes = [
                f"{version} {{ global: {'; '.join(sorted(names))}; }};\n"
                for version, names in versions.items()
                if version is not None
            ]
            script.write_text("".join(nodes))
            flags = [f"-Wl,--version-script={script}"] if nodes else []
            output("gcc", "-w", "-shared", "-fPIC", "-fno-builtin", *flags, f"-Wl,-soname,{name}",
                   "-o", str(folder / name), str(source))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
