import { testUpgradeKills } from "../lib/upgrade-kills.ts";

testUpgradeKills(6);
