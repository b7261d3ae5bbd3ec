"""Writes the tables of the documentation from the measurements in `bench/results/`.

It also lists every module on the pages of the API reference.

python -m bench.tables [--check]

A page in `docs/` marks where a table stands; the text between the marks is replaced:

    <!-- table: snake_speed -->
    <!-- end -->

With `--check` nothing is written, and the exit code is 1 if a page differs from the measurements.
Of several measurements of the same thing the latest is used; of active dynamics, that with the most
steps and seeds, the latest of equal ones.
"""

import argparse
import sys

from bench.tables import pages


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.tables",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if pages differ")
    options = parser.parse_args(arguments)
    new_texts = pages.changed_pages()
    for path, text in new_texts.items():
        print(f"{path.relative_to(pages.ROOT)} {'differs' if options.check else 'written'}")
        if not options.check:
            path.write_text(text, encoding="utf-8")
    return 1 if options.check and new_texts else 0


if __name__ == "__main__":
    sys.exit(main())
