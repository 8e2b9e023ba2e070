"""extract.py PAGE FILE...: writes the page's blocks of C to files, one each, for the test that runs them."""
import re
import sys

page = open(sys.argv[1], encoding="utf-8").read()
blocks = re.findall(r"^```c\n(.*?)^```$", page, re.M | re.S)
assert len(blocks) == len(sys.argv) - 2, f"{sys.argv[1]}: {len(blocks)} blocks of C, wanted are {len(sys.argv) - 2}"
for name, block in zip(sys.argv[2:], blocks):
    open(name, "w", encoding="utf-8").write(block)
