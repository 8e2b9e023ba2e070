"""progress_usage.py CAUSEWAY: commands show their progress on a terminal, take it away again, and write nothing of it into pipes or beside JSON."""
import os
import pty
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../mpi"))
from expectation import expect

causeway = os.path.abspath(sys.argv[1])
ERASE = b"\r\x1b[K"


def on_terminal(arguments):
    """Standard error is a terminal, output a pipe: what each got."""
    master, slave = pty.openpty()
    process = subprocess.Popen([causeway] + arguments, stdout=subprocess.PIPE, stderr=slave)
    os.close(slave)
    seen = b""
    while True:
        try:
            piece = os.read(master, 4096)
        except OSError:  # the last one on the other side is gone
            break
        if piece == b"":
            break
        seen += piece
    output = process.stdout.read()
    expect(process.wait() == 0, f"{arguments} works: {seen}")
    os.close(master)
    return output, seen


arguments = ["bench", "cost", "--duration", "50ms", "--sizes", "8"]
output, seen = on_terminal(arguments)
texts = [text for text in seen.split(ERASE) if text != b""]
expect(len(texts) > 0 and all(re.match(rb"bench cost: .*\d s", text) for text in texts), f"it shows progress: {seen}")
expect(seen.endswith(ERASE) and b"\n" not in seen, f"... and takes it away: {seen}")
expect(b"\x1b" not in output, f"the results have nothing of it: {output}")
piped = subprocess.run([causeway] + arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
expect(piped.returncode == 0 and piped.stderr == b"", f"nothing in a pipe: {piped.stderr}")
output, seen = on_terminal(arguments + ["--json"])
expect(seen == b"", f"nothing beside JSON: {seen}")
