"""Fences a System with sushy and prints what it saw as JSON: sushy_client.py URL CA_FILE session|basic USER PASSWORD SYSTEM."""

import json
import sys
import time

import sushy
from sushy import auth

url, ca_file, kind, user, password, name = sys.argv[1:]
login = {"session": auth.SessionAuth, "basic": auth.BasicAuth}[kind](user, password)
system = sushy.Sushy(url, verify=ca_file, auth=login).get_system(f"/redfish/v1/Systems/{name}")


def power_once_it_is(wanted):
    for _ in range(300):
        system.refresh(force=True)
        if system.power_state == wanted:
            break
        time.sleep(0.1)
    return system.power_state.value


seen = {"uuid": system.uuid, "before": system.power_state.value}
system.reset_system(sushy.RESET_FORCE_OFF)
seen["off"] = power_once_it_is(sushy.POWER_STATE_OFF)
system.set_system_boot_options(target=sushy.BOOT_SOURCE_TARGET_PXE, enabled=sushy.BOOT_SOURCE_ENABLED_ONCE)
system.refresh(force=True)
seen["bootTarget"] = system.boot.target.value
seen["bootEnabled"] = system.boot.enabled.value
system.reset_system(sushy.RESET_ON)
seen["after"] = power_once_it_is(sushy.POWER_STATE_ON)
seen["resetTypes"] = sorted(reset_type.value for reset_type in system.get_allowed_reset_system_values())
login.close()
print(json.dumps(seen))
