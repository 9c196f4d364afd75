"""pyghmi's BMC side on a loopback port, with cipher suite 3 (as it is) or 17: pyghmi_bmc.py PORT SUITE GUID.

pyghmi answers with suite 3 whatever it is asked for. For suite 17 the algorithms of its Open Session answer, its hash and the
length of its codes are changed here; everything else is its own.
"""

import hashlib
import hmac
import sys
import uuid

import pyghmi.ipmi.bmc as bmc
import pyghmi.ipmi.private.constants as constants
import pyghmi.ipmi.private.serversession as serversession


class Host(bmc.Bmc):
    def __init__(self, port, guid):
        bmc.Bmc.__init__(self, {"admin": "password"}, port=port, address="127.0.0.1")
        self.guid = guid
        self.power = "on"
        self.boot_device = "default"

    def get_system_guid(self):
        return self.guid

    def get_power_state(self):
        return self.power

    def power_off(self):
        self.power = "off"

    def power_on(self):
        self.power = "on"

    def get_boot_device(self):
        return self.boot_device

    def set_boot_device(self, bootdevice):
        self.boot_device = bootdevice


class Sha256InPlaceOfSha1:
    def __getattr__(self, name):
        return getattr(hashlib, "sha256" if name == "sha1" else name)


class Suite17Session(serversession.ServerSession):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.currhashlib = hashlib.sha256
        self.currhashlen = 16

    def create_open_session_response(self, request):
        response = bytearray(super().create_open_session_response(request))
        response[16] = 3
        response[24] = 4
        return response

    def _send_rakp4(self, tagvalue, statuscode):
        message = bytes(self.Rm + self.managedsessionid + self.uuiddata)
        code = hmac.new(self.sik, message, hashlib.sha256).digest()[:16]
        payload = bytearray([tagvalue, statuscode, 0, 0]) + self.clientsessionid + code
        self.send_payload(payload, constants.payload_types["rakp4"], retry=False)
        self.confalgo = "aes"
        self.integrityalgo = "sha256"
        self.sequencenumber = 1
        self.sessionid = int.from_bytes(self.clientsessionid, "little")


if __name__ == "__main__":
    if sys.argv[2] == "17":
        serversession.hashlib = Sha256InPlaceOfSha1()
        serversession.ServerSession = Suite17Session
    Host(int(sys.argv[1]), uuid.UUID(sys.argv[3])).listen(timeout=3600)
