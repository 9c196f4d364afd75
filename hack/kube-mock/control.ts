import { z } from "zod";
import type { ApiRequest, ApiServer } from "./api-server.ts";

/** The endpoint that injects faults: `POST <CONTROL_PATH>` with one command as JSON. */
export const CONTROL_PATH = "/kube-mock/control";

const matchSchema = z.strictObject({
  method: z.string().optional(),
  verbs: z.array(z.enum(["get", "list", "watch", "create", "update", "patch", "delete"])).optional(),
  resource: z.string().optional(),
  pathPrefix: z.string().optional(),
  client: z.string().optional(),
  watch: z.boolean().optional(),
});

const commandSchema = z.discriminatedUnion("command", [
  z.strictObject({
    command: z.literal("inject"),
    match: matchSchema.prefault({}),
    times: z.int().min(1).default(1),
    action: z.discriminatedUnion("kind", [
      z.strictObject({
        kind: z.literal("status"),
        status: z.int().min(400).max(599),
        retryAfterSeconds: z.int().min(0).optional(),
      }),
      z.strictObject({ kind: z.literal("hang") }),
      z.strictObject({ kind: z.literal("drop") }),
      z.strictObject({ kind: z.literal("loseAnswer") }),
      z.strictObject({ kind: z.literal("delay"), delayMs: z.int().min(0) }),
      z.strictObject({ kind: z.literal("late"), delayMs: z.int().min(0) }),
    ]),
  }),
  z.strictObject({ command: z.literal("lagWatches"), match: matchSchema.prefault({}), lagMs: z.int().min(0) }),
  z.strictObject({ command: z.literal("cutWatches"), match: matchSchema.prefault({}) }),
  z.strictObject({ command: z.literal("compact") }),
  z.strictObject({ command: z.literal("clear") }),
]);

/** Runs one command. */
export function control(server: ApiServer, { method, body }: ApiRequest): { status: number; text: string } {
  if (method !== "POST") return reply(405, { error: "POST a command" });
  let sent: unknown;
  try {
    sent = JSON.parse(body);
  } catch {
    return reply(400, { error: "the body is not valid JSON" });
  }
  const parsed = commandSchema.safeParse(sent);
  if (!parsed.success) return reply(400, { error: z.prettifyError(parsed.error) });
  const command = parsed.data;
  switch (command.command) {
    case "inject":
      server.faults.inject(command);
      break;
    case "lagWatches":
      server.faults.lagWatches(command.match, command.lagMs);
      break;
    case "cutWatches":
      return reply(200, { cut: server.faults.cutWatches(command.match) });
    case "compact":
      server.compact();
      break;
    case "clear":
      server.faults.clear();
      break;
  }
  return reply(200, {});
}

function reply(status: number, content: object): { status: number; text: string } {
  return { status, text: `${JSON.stringify(content)}\n` };
}
