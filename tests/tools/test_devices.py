"""Would catch: live state that `thrice devices` does not show or shows of another card, a watch that does not refresh or end."""
import json
import os
import pty
import re
import subprocess
import time
import unittest

from command_line import EXECUTABLE, OK, USAGE, CommandLine

SCRIPT = """name Fake H200
temperature 61
sm_clock 1980
power_mw 123500
busy 40
memory_total 2147483648
memory_free 1073741824
throttle 0x4
process 77 1048576
gpm 1
sm_use 20
---
temperature 62
sm_use 35
---
temperature 63
error GpmSampleGet 3
---
error DeviceGetTemperature 15
"""


class Devices(CommandLine):
    def setUp(self):
        super().setUp()
        fake = EXECUTABLE.parent / "fake_nvml"
        if not (fake / "libnvidia-ml.so.1").exists():
            self.skipTest(f"{fake} is not built")
        (self.here / "script").write_text(SCRIPT)
        self.environment = self.environment | {"LD_LIBRARY_PATH": str(fake), "FAKE_NVML_SCRIPT": str(self.here / "script")}
        self.environment.pop("CUDA_VISIBLE_DEVICES", None)

    def lines(self, *arguments):
        code, out, err = self.thrice("devices", *arguments)
        self.assertEqual(code, OK, err)
        return out.splitlines()

    def test_table(self):
        lines = self.lines()
        host = next(line for line in lines if line.startswith("host "))
        self.assertRegex(host, r"CPU \d+% busy, load [\d.]+.* of .* free, network .*/s in, .*/s out")
        card = next(line for line in lines if line.startswith("cuda:0 "))
        for words in ("62 °C", "SM 1980 MHz", "124 W", "SM use 35%", "busy 40%", "1.0 GiB of 2.0 GiB free",
                      "slowed down: power cap", "processes 77 (1.0 MiB)"):
            self.assertIn(words, card)

    def test_json(self):
        live = json.loads("\n".join(self.lines("--json")))["live"]
        self.assertTrue(0 <= live["host"]["cpu_busy"] <= 1)
        self.assertGreater(live["host"]["memory_free_bytes"], 0)
        card = live["devices"][0]
        self.assertAlmostEqual(card["sm_use"], 0.35)
        self.assertEqual((card["temperature_c"], card["busy"], card["memory_clock_mhz"]), (62, 0.4, None))

    def test_watch(self):
        begin = time.monotonic()
        cards = [line for line in self.lines("--watch", "--count", "4") if line.startswith("cuda:0 ")]
        self.assertGreater(time.monotonic() - begin, 0.35)  # 100 ms each
        self.assertEqual(len(cards), 4)
        self.assertIn("62 °C", cards[0])
        self.assertIn("SM use 35%", cards[0])
        self.assertNotIn("SM use", cards[1])  # the counters failed: "busy" only
        self.assertIn("busy 40%", cards[1])
        self.assertIn("fell off the bus", cards[3])
        rows = [json.loads(line) for line in self.lines("--watch", "--count", "3", "--interval", "20ms", "--json")]
        self.assertEqual([row["devices"][0]["temperature_c"] for row in rows], [62, 63, None])

    def test_watch_redraws_on_a_terminal(self):
        reader, writer = pty.openpty()
        process = subprocess.Popen([EXECUTABLE, "devices", "--watch", "--count", "3", "--interval", "20ms"], env=self.environment,
                                   stdout=writer)
        self.assertEqual(process.wait(timeout=20), 0)
        os.close(writer)
        text = b""
        try:
            while chunk := os.read(reader, 65536):
                text += chunk
        except OSError:  # the other end is closed
            pass
        os.close(reader)
        self.assertEqual(len(re.findall(rb"\x1b\[2F\x1b\[J", text)), 2)

    def test_bad_flags(self):
        self.refused(USAGE, ["--interval", "10ms"], "devices", "--watch", "--interval", "1ms")
        self.refused(USAGE, ["--watch"], "devices", "--count", "3")
        self.refused(USAGE, ["--count"], "devices", "--watch", "--count", "-3")


if __name__ == "__main__":
    unittest.main()
