"""Tests of the test runner; suites are run with a shell script in place of a Rust test program."""

import contextlib
import io
import json
import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import flaky
import lanes
import leftovers
import libtest
import speed
import suite

OUTPUT = """
running 3 tests
test a::good ... ok <0.010s>
test b::slow ... printed by the test
ok <2.500s>
test b::bad - should panic ... FAILED <1.250s>

failures:

---- b::bad stdout ----
thread panicked
failures:
not a list

failures:
    b::bad

test result: FAILED. 2 passed; 1 failed; 4 ignored; 0 measured; 0 filtered out; finished in 2.51s
"""

# The test `once` fails unless it runs alone, `never` always fails.
PROGRAM = """#!/bin/sh
case "$*" in
"--exact once --ignored --test-threads 1"*) echo "test result: ok. 1 passed; 0 failed; 0 ignored;" ;;
"--exact"*) echo "test result: FAILED. 0 passed; 1 failed; 0 ignored;"; exit 101 ;;
*"crash"*) exit 139 ;;
*)
    printf 'test once ... FAILED <0.500s>\\n\\nfailures:\\n%s\\n' "$FAILURES"
    echo "test result: FAILED. 7 passed; $COUNT failed; 0 ignored;"
    exit 101
    ;;
esac
"""


class Libtest(unittest.TestCase):
    def test_reads_counts_failures_and_times(self):
        self.assertEqual(libtest.outcome(OUTPUT), libtest.Outcome(2, 1, 4, ("b::bad",)))
        self.assertEqual(libtest.seconds(OUTPUT, "b::bad"), 1.25)
        self.assertIsNone(libtest.seconds(OUTPUT, "b::other"))

    def test_a_program_that_ends_early_has_no_outcome(self):
        self.assertIsNone(libtest.outcome("running 3 tests\ntest a ... ok\n"))

    def test_runs_a_test_alone_with_the_options_that_it_needs(self):
        options = ["name", "--skip", "x", "--ignored", "--nocapture", "--test-threads", "6"]
        alone = ["--exact", "a::b", "--ignored", "--nocapture", "--test-threads", "1"]
        self.assertEqual(libtest.alone(options, "a::b"), alone)


class Speed(unittest.TestCase):
    def test_a_slow_machine_has_a_factor_above_one(self):
        factors = [speed.factor(seconds * speed.REFERENCE) for seconds in (0.5, 1, 2.5, 1000)]
        self.assertEqual(factors, [1.0, 1.0, 2.5, speed.HIGHEST])


class Runs(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.use(tempfile.TemporaryDirectory()))
        self.program = {"executable": str(self.folder / "program"), "folder": str(self.folder), "unit": True}
        Path(self.program["executable"]).write_text(PROGRAM)
        os.chmod(self.program["executable"], 0o755)
        for name, value in {"RUNS": self.folder, "FLAKY": self.folder / "flaky.jsonl"}.items():
            self.use(mock.patch.object(flaky, name, value))
        self.use(mock.patch.object(lanes, "LOGS", self.folder))
        self.use(mock.patch.object(suite, "build", lambda _: [self.program]))
        self.use(mock.patch.object(speed, "measure", lambda: None))

    def use(self, context):
        value = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return value

    def run_suite(self, failures, *options, later=None):
        environment = {"FAILURES": "\n".join(f"    {name}" for name in failures), "COUNT": str(len(failures))}
        if later:
            environment[suite.LATER] = str(later)
        output = io.StringIO()
        with mock.patch.dict(os.environ, environment), contextlib.redirect_stdout(output):
            if not later:
                os.environ.pop(suite.LATER, None)
            code = suite.main(["demo", "--test", "demo", "--", "--ignored", *options])
        return code, output.getvalue()

    def test_a_test_that_passes_alone_is_flaky(self):
        code, output = self.run_suite(["once"])
        self.assertEqual(code, 0, output)
        self.assertIn("7 passed, 1 failed, 0 ignored", output)
        (entry,) = flaky.entries()
        self.assertEqual((entry["suite"], entry["test"], entry["failed_after"]), ("demo", "once", 0.5))
        self.assertIn("== once more, alone\ntest result: ok", Path(entry["log"]).read_text())

    def test_a_test_that_fails_alone_fails_the_suite(self):
        code, _ = self.run_suite(["never", "once"])
        self.assertEqual((code, [entry["test"] for entry in flaky.entries()]), (1, ["once"]))

    def test_many_failures_are_not_retried(self):
        code, output = self.run_suite(["once", "a", "b", "c"])
        self.assertEqual((code, flaky.entries()), (1, []))
        self.assertNotIn("once more", output)

    def test_a_crash_fails_the_suite(self):
        code, output = self.run_suite([], "crash")
        self.assertEqual(code, 1)
        self.assertIn("ended before it counted its tests", output)

    def test_lanes_retry_after_all_of_them_have_ended(self):
        later = self.folder / "later"
        code, output = self.run_suite(["once"], later=later)
        self.assertEqual((code, flaky.entries()), (1, []))
        self.assertNotIn("once more", output)
        recipe = self.recipe(output, json.loads(later.read_text()))
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertTrue(lanes.once_more(recipe))
        self.assertEqual(len(flaky.entries()), 1)

    def test_a_recipe_without_a_suite_is_repeated_as_a_whole(self):
        with mock.patch.object(lanes, "run", lambda _: self.recipe("equal", passed=True)):
            with contextlib.redirect_stdout(io.StringIO()):
                self.assertTrue(lanes.once_more(self.recipe("12 cases differ")))
                self.assertFalse(lanes.once_more(self.recipe("7 passed, 4 failed, 0 ignored")))
                self.assertFalse(lanes.once_more(self.recipe("error: could not compile `x`")))
        self.assertEqual([entry["test"] for entry in flaky.entries()], ["(the whole recipe)"])

    def recipe(self, output, failed=None, passed=False):
        log = self.folder / "recipe.log"
        log.write_text(output)
        return lanes.Recipe("_it demo", passed, 1.0, log, failed)

    def test_more_than_three_flaky_tests_fail_the_run(self):
        def check():
            with contextlib.redirect_stdout(io.StringIO()) as output:
                return flaky.main(["--check"]), output.getvalue()

        self.assertEqual(check(), (0, "0 flaky tests in the last run\n"))
        for number in range(flaky.MOST):
            flaky.add("envoy", f"test{number}", None, 2.0, "some.log")
        code, output = check()
        self.assertEqual(code, 0)
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual((flaky.main([]), flaky.main(["--none"])), (0, 1))
        self.assertIn("flaky: envoy test0: failed after ? s, passed alone after 2.0 s, log: some.log", output)
        flaky.add("envoy", "one more", 1.0, 2.0, "some.log")
        self.assertEqual(check()[0], 1)
        flaky.main(["--begin"])
        self.assertEqual(check()[0], 0)

    def test_counts_are_summed_over_the_suites_of_a_recipe(self):
        self.assertEqual(lanes.counted("1 passed, 2 failed, 3 ignored\nx\n4 passed, 0 failed, 1 ignored"), "5 passed, 2 failed, 4 ignored")
        self.assertEqual(lanes.counted("500 cases\nall equal"), "all equal")


class Leftovers(unittest.TestCase):
    def test_orphans_of_the_checkout_are_found(self):
        with tempfile.TemporaryDirectory() as folder:
            proc = Path(folder)
            for number, name, parent, program in [
                (1, "systemd", 0, "/sbin/init"),
                (20, "tini", 1, "/usr/bin/tini"),
                (30, "agent", 1, "/checkout/target/debug/agent"),
                (31, "envoy", 20, "/checkout/.tools/envoy-1/envoy"),
                (32, "just", 1, "/checkout/.tools/venv/bin/just"),
                (33, "agent", 30, "/checkout/target/debug/agent"),
                (34, "agent", 1, "/other/target/debug/agent"),
            ]:
                (proc / str(number)).mkdir()
                (proc / str(number) / "status").write_text(f"Name:\t{name}\nPPid:\t{parent}\n")
                (proc / str(number) / "exe").symlink_to(program)
            found = leftovers.leftovers(proc, ["/checkout/target", "/checkout/.tools"])
            self.assertEqual([process for process, _ in found], ["30", "31"])


if __name__ == "__main__":
    unittest.main()
