#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""on_terminal.py PROGRAM [ARGUMENT...]: run a program on a terminal, as Wine makes a Windows console of one only then.

Its output without the terminal's escape sequences, and its exit status.
"""
import os
import pty
import re
import sys

output = bytearray()


def keep(terminal):
    data = os.read(terminal, 65536)
    output.extend(data)
    return data


with open(os.devnull, "r+b", buffering=0) as nowhere:
    kept = os.dup(1)
    os.dup2(nowhere.fileno(), 1) # pty.spawn copies all that it reads there
    status = pty.spawn(sys.argv[1:], keep)
    os.dup2(kept, 1)
text = re.sub(rb"\x1b(\[[0-9;?]*[A-Za-z]|\][^\x07]*\x07|[=>])", b"", bytes(output)).replace(b"\r", b"")
os.write(1, text)
sys.exit(os.waitstatus_to_exitcode(status))
