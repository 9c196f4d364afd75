"""Sends requests to SNMP agents with pysnmp, one after the other, and prints the answers of each agent as JSON:
snmp_client.py '[{"port", "login", "requests"}, ...]', with login {"community"} or {"user", "auth", "priv", "password",
"privPassword"} and requests [[OID], [OID, INTEGER], ...], of which those with a value are sets."""

import asyncio
import json
import sys

from pysnmp.hlapi.v3arch import asyncio as snmp

AUTH = {
    "MD5": snmp.usmHMACMD5AuthProtocol,
    "SHA": snmp.usmHMACSHAAuthProtocol,
    "SHA-224": snmp.usmHMAC128SHA224AuthProtocol,
    "SHA-256": snmp.usmHMAC192SHA256AuthProtocol,
    "SHA-384": snmp.usmHMAC256SHA384AuthProtocol,
    "SHA-512": snmp.usmHMAC384SHA512AuthProtocol,
}


def credentials(login):
    if "community" in login:
        return snmp.CommunityData(login["community"], mpModel=1)
    private = {"privKey": login["privPassword"], "privProtocol": snmp.usmAesCfb128Protocol} if login["priv"] else {}
    return snmp.UsmUserData(login["user"], login["password"], authProtocol=AUTH[login["auth"]], **private)


async def ask(engine, port, login, requests):
    target = await snmp.UdpTransportTarget.create(("127.0.0.1", port), timeout=5, retries=0)
    answers = []
    for oid, *value in requests:
        command = snmp.set_cmd if value else snmp.get_cmd
        varbind = snmp.ObjectType(snmp.ObjectIdentity(oid), *map(snmp.Integer32, value))
        failure, status, _, varbinds = await command(
            engine, credentials(login), target, snmp.ContextData(), varbind, lookupMib=False
        )
        if failure or status:
            answers.append(str(failure or status.prettyPrint()))
        else:
            answers.extend(found.prettyPrint() for _, found in varbinds)
    return answers


async def main():
    print(json.dumps([await ask(snmp.SnmpEngine(), **agent) for agent in json.loads(sys.argv[1])]))


asyncio.run(main())
