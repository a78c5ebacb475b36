"""What `python -m einrel` does: `lm` lets a language model write (docs/models.md)."""

import sys

from .models._command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
