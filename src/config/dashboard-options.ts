import type { Option } from "./option.ts";

/** Where `ironfence dashboard` listens. */
export const DASHBOARD_PORT_OPTION: Option<number> = {
  name: "port",
  env: "IRONFENCE_DASHBOARD_PORT",
  defaultText: "0",
  placeholder: "number",
  brief: "Port on 127.0.0.1; 0 for any free port",
  parse: (text) => {
    const port = /^\d{1,5}$/.test(text) ? Number(text) : Infinity;
    if (port > 65_535) throw new Error("must be a port, or 0 for any free port");
    return port;
  },
};
