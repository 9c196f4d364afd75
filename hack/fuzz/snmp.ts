import { must } from "./target.ts";
import type { FuzzTarget } from "./target.ts";
import { integer, octets, oid, tlv, TAG } from "../snmp-mock/ber.ts";
import { readStatus, statusOids } from "../../src/bmc/snmp/outlet-status.ts";
import { decodeVarbinds } from "../../src/bmc/snmp/session/decode.ts";
import { readEnvelope } from "../../src/bmc/snmp/session/envelope.ts";
import { OUTLET_TABLES, oidOf } from "../../src/bmc/snmp/tables/tables.ts";
import { BmcError } from "../../src/bmc/interface/errors.ts";
import { MIBS } from "../../src/bmc/interface/mibs.ts";

// Fuzzes answers of PDUs. They come from PDUs, and from any machine that can forge their packets.

function message(flags: number, tag: number): Buffer {
  const engine = Buffer.from("8000013e0461", "hex");
  const varbind = tlv(TAG.sequence, oid("1.3.6.1.6.3.15.1.1.4.0"), integer(1, TAG.counter));
  const pdu = tlv(tag, integer(9), integer(0), integer(0), tlv(TAG.sequence, varbind));
  const scoped = tlv(TAG.sequence, octets(engine), octets(""), pdu);
  const security = tlv(
    TAG.sequence,
    octets(engine),
    integer(7),
    integer(99),
    octets("fence"),
    octets("mac"),
    octets("salt"),
  );
  const header = tlv(TAG.sequence, integer(4_711), integer(65_507), octets(Buffer.from([flags])), integer(3));
  return tlv(TAG.sequence, integer(3), header, octets(security), (flags & 2) === 0 ? scoped : octets("encrypted"));
}

const envelopes: FuzzTarget = {
  name: "SNMP message",
  seeds: [
    message(0, TAG.report),
    message(1, TAG.report),
    message(1, TAG.response),
    message(3, TAG.response),
    tlv(TAG.sequence, integer(1), octets("public"), tlv(TAG.response, integer(1))),
  ],
  run: (input) => {
    const envelope = readEnvelope(input);
    if (envelope === undefined || envelope.version === 1) return;
    must(!envelope.isEncrypted || envelope.report === undefined, "what is encrypted is not read");
    must(envelope.report === undefined || /^\d+(?:\.\d+)+$/.test(envelope.report), "a Report names an object");
    must(/^(?:[0-9a-f]{2})*$/.test(envelope.engineId), "an engine ID is bytes");
  },
};

const PRINTABLE = /^[^\p{Cc}]{0,1000}$/u;
/** The tags of values. A digit of the input selects one. */
const TAGS = [0x02, 0x04, 0x06, 0x42, 0x43, 0x80, 0x81, 0x41, 0x46, 0x05];

/**
 * An input has a table, whether the outlet has a meter, and the values. A value is a digit for the tag and a text or
 * number.
 */
const statuses: FuzzTarget = {
  name: "outlet status",
  seeds: MIBS.flatMap((mib, at) => {
    const table = OUTLET_TABLES[mib];
    const texts = [oidOf(table.serial, "1"), oidOf(table.label, "1")];
    // Uptime, engine ID and the values of one outlet that is off, on the only unit. The other rows are empty.
    const values = (off: string): string[] =>
      statusOids(table, "1").map((oid, field) => {
        if (field < 2) return ["4500000", "1abcdef"][field] ?? "";
        if (oid === oidOf(table.state, "1")) return off;
        return texts.includes(oid) ? "1SN" : "01";
      });
    return [
      Buffer.from(`${at}1;${values("01").join(";")}`),
      Buffer.from(`${at}0;${values("02").join(";").replaceAll(";01", ";00")}`),
    ];
  }),
  run: (input) => {
    const [head = "", ...values] = input.toString("latin1").split(";");
    const mib = MIBS[Number(head[0])] ?? "APC-rPDU2";
    const table = OUTLET_TABLES[mib];
    const outlet = table.index.map(() => "1").join(".");
    const oids = statusOids(table, outlet);
    const varbinds = oids.map((name, at) => {
      const [digit = "5", ...rest] = values[at] ?? "";
      const type = TAGS[Number(digit)] ?? 0x80;
      const content = rest.join("");
      return {
        oid: name,
        type,
        value: type === 0x04 ? Buffer.from(content, "latin1") : type === 0x06 ? content : Number(content),
      };
    });
    try {
      const wasMetered = head[1] === "1";
      const status = readStatus(table, outlet, decodeVarbinds("read", oids, varbinds), { what: "read", wasMetered });
      const { reading, meter, label, pdu } = status;
      must(
        reading.state !== "Off" || (reading.bmcUpMs ?? 0) >= 30_000,
        "an Off is of a PDU that has been up for a while",
      );
      must(reading.state !== "Off" || meter.kind !== "unreadable", "an Off has a meter that can be read, or none");
      must(reading.state !== "Off" || meter.kind !== "value" || meter.value === 0, "an Off has a meter at 0");
      must(
        reading.state !== "Off" || meter.kind !== "none" || !wasMetered,
        "an Off of an outlet with a meter needs it",
      );
      for (const text of [reading.raw, label ?? "", pdu])
        must(PRINTABLE.test(text), "what is kept is short and printable");
    } catch (error) {
      must(!(error instanceof BmcError) || PRINTABLE.test(error.message), "a refusal is short and printable");
      throw error;
    }
  },
};

export const SNMP_TARGETS: readonly FuzzTarget[] = [envelopes, statuses];
