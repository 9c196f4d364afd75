import { testUpgradeKills } from "../lib/upgrade-kills.ts";

// One upgrade and one rollback. test/nightly has more rounds.
testUpgradeKills(2);
