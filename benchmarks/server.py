"""What a change costs in an editor: `ta-lint server`, from the change of a file to its diagnostics.

    python benchmarks/corpus.py && python benchmarks/server.py

The CPU time of the whole server process, threads and messages included, beside that of `libcst.parse_module` on the same
text, in turns. Each round writes a line at the end of the file, so that no text comes twice. Linux alone.
"""

import argparse
import asyncio
import gc
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import libcst
from lsprotocol import types
from pygls.lsp.client import LanguageClient

HERE = Path(__file__).parent
FILES = (
    "denoising-diffusion-pytorch-2.3.4/denoising_diffusion_pytorch/guided_diffusion.py",
    "audiolm-pytorch-2.4.0/audiolm_pytorch/soundstream.py",
)
ROUNDS = 30
WARM_UP = 3

_OF_ALL_THREADS = 2  # Linux: the kind of clock that counts the CPU time of a process


@dataclass(frozen=True)
class Cost:
    """Milliseconds, the median of all rounds, and the median of the ratios within a round."""

    server: float
    parse: float
    ratio: float
    findings: int


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path, help="Python files instead of the two of the corpora")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    arguments = parser.parse_args()
    files = arguments.files or [HERE / "corpora" / name for name in FILES]
    missing = [path for path in files if not path.is_file()]
    if missing:
        sys.exit(f"{missing[0]} is not there: run benchmarks/corpus.py first")
    print("| file | lines | findings | change to diagnostics, ms | libcst parse, ms | ratio |")
    print("|---|---:|---:|---:|---:|---:|")
    for path in files:
        text = path.read_text(encoding="utf-8")
        with TemporaryDirectory() as elsewhere:  # where no project has settings
            cost = asyncio.run(_measured(path.name, text, arguments.rounds, elsewhere))
        numbers = f"{cost.server:.0f} | {cost.parse:.0f} | {cost.ratio:.2f}"
        print(f"| {path.name} | {text.count(chr(10))} | {cost.findings} | {numbers} |", flush=True)


async def _measured(name: str, text: str, rounds: int, elsewhere: str) -> Cost:
    client = LanguageClient("benchmark", "1")
    published: asyncio.Queue[types.PublishDiagnosticsParams] = asyncio.Queue()

    def publish(params: types.PublishDiagnosticsParams) -> None:
        published.put_nowait(params)

    client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(publish)
    await client.start_io(sys.executable, "-m", "ta_lint", "server", cwd=elsewhere)
    assert client._server is not None
    clock = (~client._server.pid << 3) | _OF_ALL_THREADS
    await client.initialize_async(types.InitializeParams(types.ClientCapabilities()))
    client.initialized(types.InitializedParams())
    uri = Path(elsewhere, name).as_uri()
    item = types.TextDocumentItem(uri, "python", 0, text)
    client.text_document_did_open(types.DidOpenTextDocumentParams(item))
    await published.get()
    servers, parses = [], []
    found = 0
    for number in range(1, WARM_UP + rounds + 1):
        text += f"# round {number}\n"
        parses.append(_parse(text))
        changed = types.DidChangeTextDocumentParams(
            types.VersionedTextDocumentIdentifier(number, uri),
            [types.TextDocumentContentChangeWholeDocument(text)],
        )
        before = time.clock_gettime_ns(clock)
        client.text_document_did_change(changed)
        found = len((await published.get()).diagnostics)
        servers.append((time.clock_gettime_ns(clock) - before) / 1e6)
    await client.shutdown_async(None)
    client.exit(None)
    await client._server.wait()
    del servers[:WARM_UP], parses[:WARM_UP]
    ratio = median(server / parse for server, parse in zip(servers, parses, strict=True))
    return Cost(median(servers), median(parses), ratio, found)


def _parse(text: str) -> float:
    gc.collect()
    before = time.process_time_ns()
    libcst.parse_module(text)
    return (time.process_time_ns() - before) / 1e6


if __name__ == "__main__":
    main()
