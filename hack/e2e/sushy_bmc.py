"""Starts sushy-emulator with its fake driver, with a fixed delay and a record of requests.

The stock driver takes a random 0 to 11 s for a power change and records no requests. This one takes
IRONFENCE_BMC_DELAY_S. It writes each power order, and each reading of "Off" by a client other than the harness, with its
time to IRONFENCE_BMC_RECORD as a line of JSON. Everything else, above all the HTTP server and its answers, is that of
the emulator.
"""

import json
import os
import sys
import time

import flask
from sushy_tools.emulator import main as emulator
from sushy_tools.emulator.resources.systems import fakedriver

DELAY_S = float(os.environ["IRONFENCE_BMC_DELAY_S"])
RECORD_FILE = os.environ["IRONFENCE_BMC_RECORD"]
HARNESS = "ironfence-harness"


def record(now, **what):
    with open(RECORD_FILE, "a", encoding="utf-8") as file:
        file.write(json.dumps({"atMs": round(now * 1000, 3), **what}) + "\n")


class MeasuredDriver(fakedriver.FakeDriver):
    def set_power_state(self, identity, state):
        now = time.time()
        super().set_power_state(identity, state)
        system = self._get(identity)
        pending = system.get("pending_power")
        if pending:
            self._update(system, pending_power=dict(pending, apply_time=now + DELAY_S))
        record(now, kind="order", system=system["uuid"], value=state)

    def get_power_state(self, identity):
        now = time.time()
        state = super().get_power_state(identity)
        if state == "Off" and flask.request.headers.get("User-Agent") != HARNESS:
            record(now, kind="read", system=self.uuid(identity), value=state)
        return state


fakedriver.FakeDriver = MeasuredDriver
sys.argv = ["sushy-emulator", *sys.argv[1:]]
sys.exit(emulator.main())
