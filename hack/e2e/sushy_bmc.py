"""Starts sushy-emulator with its fake driver, made measurable.

The stock driver takes a random 0 to 11 s for a power change and tells nobody which orders it got. This one takes what
IRONFENCE_BMC_DELAY_S says and writes each order, with the time at which it was taken, to IRONFENCE_BMC_ORDERS as a line of
JSON. All else, the HTTP server and its answers above all, is the emulator's own.
"""

import json
import os
import sys
import time

from sushy_tools.emulator import main as emulator
from sushy_tools.emulator.resources.systems import fakedriver

DELAY_S = float(os.environ["IRONFENCE_BMC_DELAY_S"])
ORDERS_FILE = os.environ["IRONFENCE_BMC_ORDERS"]


class MeasuredDriver(fakedriver.FakeDriver):
    def set_power_state(self, identity, state):
        now = time.time()
        super().set_power_state(identity, state)
        system = self._get(identity)
        pending = system.get("pending_power")
        if pending:
            self._update(system, pending_power=dict(pending, apply_time=now + DELAY_S))
        with open(ORDERS_FILE, "a", encoding="utf-8") as orders:
            orders.write(json.dumps({"atMs": round(now * 1000, 3), "system": system["uuid"], "order": state}) + "\n")


fakedriver.FakeDriver = MeasuredDriver
sys.argv = ["sushy-emulator", *sys.argv[1:]]
sys.exit(emulator.main())
