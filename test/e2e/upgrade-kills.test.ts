import { testUpgradeKills } from "../lib/upgrade-kills.ts";

// An upgrade; test/nightly has more rounds, in both directions.
testUpgradeKills(1);
