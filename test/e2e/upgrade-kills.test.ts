import { testUpgradeKills } from "../lib/upgrade-kills.ts";

// An upgrade and a rollback; test/nightly has more rounds.
testUpgradeKills(2);
