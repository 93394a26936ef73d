#!/usr/bin/env python3
"""Writes python/src/unicode_tables.rs: what CPython 3.12 (Unicode 15.0) says of characters.

    python3.12 scripts/python_unicode_tables.py > python/src/unicode_tables.rs
"""
import sys
import unicodedata


def ranges(holds):
    out, start = [], None
    for code in range(0x110001):
        inside = code < 0x110000 and not 0xD800 <= code <= 0xDFFF and holds(chr(code))
        if inside and start is None:
            start = code
        elif not inside and start is not None:
            out.append((start, code - 1))
            start = None
    return out


def table(name, doc, rows):
    print(f"/// {doc}\npub(crate) const {name}: &[(u32, u32)] = &[")
    for first, last in rows:
        print(f"    ({first:#x}, {last:#x}),")
    print("];")


print(f"//! What Unicode {unicodedata.unidata_version} says of characters, as CPython asks; written by")
print("//! `scripts/python_unicode_tables.py`.\n")
table("UNPRINTABLE", "First and last of the characters that `repr` escapes.", ranges(lambda c: not c.isprintable()))
print()
table("DIGITS", "First and last of the characters of which `str.isdigit` is true.", ranges(str.isdigit))
print()
zeros = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF and unicodedata.decimal(chr(c), -1) == 0]
assert all(unicodedata.decimal(chr(z + i)) == i for z in zeros for i in range(10))
print("/// The zeros that begin the ten decimal digits of a script.\npub(crate) const ZEROS: &[u32] = &[")
for zero in zeros:
    print(f"    {zero:#x},")
print("];")
sys.stdout.flush()
