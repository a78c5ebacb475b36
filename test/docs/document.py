"""Commands in the documents, and comparing what a command prints with what a document says it prints."""

import dataclasses
import re

COMMAND = re.compile(
    r"(einrel|mpirun|salloc|srun|sbatch|cmake|ctest|python3|cat|cp|export|ls|rm|mkdir|apt-get|sudo|git"
    r"|(\./|tools/|bench/|build/|examples/)\S+)(\s|$)")


@dataclasses.dataclass
class Command:
    line: int  # from 1
    text: str
    output: list  # the lines that the document quotes; None where it quotes none
    code: int  # that it must end with

    def is_usage(self):
        """Whether it says what may be written, instead of being written so."""
        return re.search(r"\[--|\bPROGRAM\b| \.\.\. ", re.sub(r"(^|\s)#.*", "", self.text)) is not None


def code_blocks(lines):
    """(first line's number, lines) of every block of Markdown that is indented or fenced, without its indentation."""
    block, start, fenced = [], 0, False
    for number, line in enumerate([*lines, ""], 1):
        fence = line.startswith("```")
        if not fence and (fenced or line.startswith("    ") or (block and not line and lines[number:number + 1]
                                                                and lines[number].startswith("    "))):
            start = start if block else number
            block.append(line if fenced else line[4:])
            continue
        fenced = fenced != fence
        if block:
            yield start, block
        block = []


def comment_blocks(lines):
    """The same of the comments before a program."""
    for number, line in enumerate(lines, 1):
        if not line.startswith("#"):
            return
        if re.match("#   +", line):
            yield number, [line[1:].strip()]


def commands_of(lines, blocks):
    """The commands of blocks of code.

    A line `$ COMMAND` is followed by all that it prints, up to the next one or the end of the block. In blocks without such lines,
    a line that begins like a command is one. `<<'END'` takes the lines up to END along; `# exit code 1` says how it ends.
    """
    for start, block in blocks(lines):
        transcript = any(line.startswith("$ ") for line in block)
        at = 0
        while at < len(block):
            line, number = block[at], start + at
            at += 1
            if not (line.startswith("$ ") if transcript else COMMAND.match(line)):
                continue
            text = line.removeprefix("$ ")
            if "<<'END'" in text:
                end = block.index("END", at)
                text = "\n".join([text, *block[at:end + 1]])
                at = end + 1
            output = None
            if transcript:
                end = next((i for i in range(at, len(block)) if block[i].startswith("$ ")), len(block))
                output, at = block[at:end], end
                while output and not output[-1]:
                    output.pop()
            code = re.search(r"# exit code (\d)", text)
            yield Command(number, text, output, int(code[1]) if code else 0)


def matches(pattern, items, equal):
    """Whether the items are those of the pattern, in which "..." stands for any number of items."""
    pieces, piece = [], []
    for item in [*pattern, "..."]:
        if item == "...":
            pieces.append(piece)
            piece = []
        else:
            piece.append(item)

    def at(index, wanted):
        return len(items) - index >= len(wanted) and all(map(equal, wanted, items[index:index + len(wanted)]))

    if len(pieces) == 1:
        return len(items) == len(pieces[0]) and at(0, pieces[0])
    first, *middle, last = pieces
    if not at(0, first):
        return False
    index = len(first)
    for wanted in middle:
        while index <= len(items) and not at(index, wanted):
            index += 1
        if index > len(items):
            return False
        index += len(wanted)
    return len(items) - len(last) >= index and at(len(items) - len(last), last)


def same_word(wanted, found):
    """Words are equal, "..." in one standing for anything; numbers with a fraction may differ as much as machines round differently."""
    if wanted == found:
        return True
    if "..." in wanted:
        return re.fullmatch(".*".join(map(re.escape, wanted.split("..."))), found) is not None
    try:
        a, b = float(wanted.rstrip(",")), float(found.rstrip(","))
    except ValueError:
        return False
    return bool(re.search("[.e]", wanted)) and abs(a - b) <= 1e-4 * max(abs(a), abs(b))


def words_of(line):
    """What of a line is the same everywhere: not seconds, not the kernel that suits a machine, not how columns are set."""
    line = re.sub(r"^( +(\d+ x .*)?by) [a-z]+ \(.*on one thread.*", r"\1 <kernel>", line)
    return re.sub(r"(?<![\w.])\d[\d.]* (s|ms|us|ns|min)\b", "<time>", line).split()


def same_output(wanted, found):
    """Whether the lines that a command printed are those of a document, "..." standing for any words or lines."""

    def same_line(a, b):
        return matches(words_of(a), words_of(b), same_word)

    return matches(["..." if line.strip() == "..." else line for line in wanted], found, same_line)
