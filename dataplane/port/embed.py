"""embed.py PROGRAM HEADER : the XDP program as an array of C, and where the constants lie in it that are written later."""
import struct
import sys

MAGIC = struct.pack("<Q", 0xD1B54A32D192ED03)  # CW_XDP_MAGIC of xdp_words.h

with open(sys.argv[1], "rb") as file:
    program = file.read()
if program.count(MAGIC) != 1:
    sys.exit(f"{sys.argv[1]}: the constants of the program are not found")
with open(sys.argv[2], "w", encoding="ascii") as file:
    file.write(f"enum {{ XDP_WORDS_AT = {program.index(MAGIC)} }};\n")
    file.write("static const uint8_t xdp_program[] = {\n")
    for at in range(0, len(program), 24):
        file.write("".join(f"{byte}," for byte in program[at:at + 24]) + "\n")
    file.write("};\n")
