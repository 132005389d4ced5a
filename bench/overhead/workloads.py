"""The rows: which commands are traced, and what has to be there before each run."""

FIND = (1000, 30)  # directories, files in each
RM = (100, 1000)


class Workload:
    """A command. `repeat`: runs a block and tracer, of which the median counts; short commands need more."""

    def __init__(self, name, title, repeat=1):
        self.name = name
        self.title = title
        self.repeat = repeat
        self.calls = None  # set where the row is about the cost of one call
        self.is_whole = False  # set where the tracer's own start and end count, too

    def prepare(self, shop):
        """Before each run, not timed."""

    def argv(self, shop, calls=None):
        raise NotImplementedError


class Find(Workload):
    def __init__(self, name, title, *tests):
        super().__init__(name, title, repeat=3)
        self.tests = list(tests)

    def prepare(self, shop):
        tree = shop.ext4 / "find"
        if not tree.exists():
            shop.must([shop.fixture("maketree"), str(tree), *map(str, FIND)])
            shop.must(["sync", "-f", str(tree)])
            shop.must(["find", str(tree), "-size", "+1k"])  # once: from here on everything is in memory

    def argv(self, shop, calls=None):
        return ["find", str(shop.ext4 / "find"), *self.tests]


class Rm(Workload):
    def __init__(self, name, title, place):
        super().__init__(name, title)
        self.place = place

    def _tree(self, shop):
        return getattr(shop, self.place) / "rm"

    def prepare(self, shop):
        shop.must([shop.fixture("maketree"), str(self._tree(shop)), *map(str, RM)])
        shop.must(["sync", "-f", str(getattr(shop, self.place))])

    def argv(self, shop, calls=None):
        return ["rm", "-rf", str(self._tree(shop))]


class Dd(Workload):
    """Two cheap calls for each byte: nearly all of it is the cost of entering and leaving the kernel."""

    def __init__(self, name, title, blocks):
        super().__init__(name, title)
        self.blocks = blocks
        self.calls = 2 * blocks

    def argv(self, shop, calls=None):
        blocks = self.blocks if calls is None else calls // 2
        return ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", f"count={blocks}", "status=none"]


class Switches(Workload):
    """A program that mostly leaves its CPU."""

    def __init__(self, name, title, words):
        super().__init__(name, title)
        self.words = words

    def argv(self, shop, calls=None):
        program, *arguments = self.words
        return [shop.fixture(program), *arguments]


class PingPong(Switches):
    """On one CPU, so that each round is two switches and nobody is woken on another."""

    def argv(self, shop, calls=None):
        return ["taskset", "--cpu-list", "0", *super().argv(shop)]


class Start(Workload):
    """A command that does nothing: what counts is all of it, from the start of the tracer to its end."""

    def __init__(self, name, title):
        super().__init__(name, title, repeat=5)
        self.is_whole = True

    def argv(self, shop, calls=None):
        return ["true"]


ALL = [
    Find("find", "`find`, 30,000 files, warm"),
    Find("find-stat", "`find -size +1k`, the same", "-size", "+1k"),
    Rm("rm-tmpfs", "`rm -rf`, 100,000 files, tmpfs", "tmpfs"),
    Rm("rm-ext4", "`rm -rf`, 100,000 files, ext4", "ext4"),
    Dd("dd", "`dd bs=1 count=1000000`", 1_000_000),
    PingPong("ping-pong", "ping-pong through pipes, 100,000 rounds on one CPU", ["ping_pong", "100000"]),
    Switches("yields", "8 threads yield 50,000 times each", ["yields", "50000"]),
    Start("start", "`true`, from the tracer's start to its end"),
]
