# SPDX-License-Identifier: Apache-2.0
"""`opennuma`, and `python -m opennuma`: hands over to the program in the package."""
import os
import sys
from typing import NoReturn

from ._places import command


def main() -> NoReturn:
    program = os.fspath(command())
    os.execv(program, ["opennuma", *sys.argv[1:]])


if __name__ == "__main__":
    main()
