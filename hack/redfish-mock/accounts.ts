import type { Random } from "../../src/runtime/random.ts";
import { Secret } from "../../src/runtime/secret.ts";

/** The privileges of the mock's roles (DSP0266, "Privilege model"). */
export const ROLES = {
  Administrator: ["Login", "ConfigureManager", "ConfigureUsers", "ConfigureComponents", "ConfigureSelf"],
  Operator: ["Login", "ConfigureComponents", "ConfigureSelf"],
  ReadOnly: ["Login", "ConfigureSelf"],
} as const satisfies Record<string, readonly string[]>;
export type RoleId = keyof typeof ROLES;
export type Privilege = (typeof ROLES)["Administrator"][number];

export interface Account {
  id: string;
  username: string;
  password: Secret;
  roleId: RoleId;
  enabled: boolean;
}

const ACCOUNTS_MAX = 16;

/** The accounts of one service. */
export class AccountTable {
  readonly #accounts = new Map<string, Account>();
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  /** @returns undefined if the table is full. */
  add(account: Omit<Account, "id">): Account | undefined {
    if (this.#accounts.size >= ACCOUNTS_MAX) return undefined;
    const added = { ...account, id: this.#random.uuid() };
    this.#accounts.set(added.id, added);
    return added;
  }

  get(id: string): Account | undefined {
    return this.#accounts.get(id);
  }

  delete(id: string): boolean {
    return this.#accounts.delete(id);
  }

  values(): IterableIterator<Account> {
    return this.#accounts.values();
  }

  find(username: string): Account | undefined {
    return [...this.#accounts.values()].find((account) => account.username === username);
  }

  /** The enabled account with this name and password. */
  authenticate(username: string, password: string): Account | undefined {
    const account = this.find(username);
    return account?.enabled === true && account.password.equals(new Secret(password)) ? account : undefined;
  }
}

/** Whether an account has `privilege`. */
export function isAllowed(account: Account, privilege: Privilege): boolean {
  const granted: readonly Privilege[] = ROLES[account.roleId];
  return granted.includes(privilege);
}
