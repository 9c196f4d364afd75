import { BigValueColorMode, ReduceDataOptionsBuilder } from "@grafana/grafana-foundation-sdk/common";
import type { Dashboard } from "@grafana/grafana-foundation-sdk/dashboard";
import {
  DashboardBuilder,
  DatasourceVariableBuilder,
  RowBuilder,
  ThresholdsConfigBuilder,
  ThresholdsMode,
} from "@grafana/grafana-foundation-sdk/dashboard";
import { DataqueryBuilder } from "@grafana/grafana-foundation-sdk/prometheus";
import { PanelBuilder as StatBuilder } from "@grafana/grafana-foundation-sdk/stat";
import { PanelBuilder as TimeseriesBuilder } from "@grafana/grafana-foundation-sdk/timeseries";
import type { Panel } from "./panels.ts";
import { ROWS } from "./panels.ts";

const DATASOURCE = { type: "prometheus", uid: "${datasource}" };
/** Grafana's grid has 24 columns. */
const SIZES = { stat: { width: 3, height: 4 }, timeseries: { width: 12, height: 8 } } as const;

/** The dashboard for Grafana. */
export function dashboard(): Dashboard {
  const builder = new DashboardBuilder("ironfence")
    .uid("ironfence")
    .tags(["ironfence"])
    .refresh("30s")
    .time({ from: "now-24h", to: "now" })
    .readonly()
    .withVariable(new DatasourceVariableBuilder("datasource").label("Data source").type("prometheus"));
  let id = 0;
  for (const { title, panels } of ROWS) {
    builder.withRow(new RowBuilder(title).id((id += 1)));
    for (const panel of panels) {
      const made = panel.kind === "stat" ? statOf(panel) : timeseriesOf(panel);
      builder.withPanel(made.id((id += 1)));
    }
  }
  return builder.build();
}

function statOf(panel: Panel): StatBuilder {
  const { width, height } = SIZES.stat;
  const builder = new StatBuilder()
    .title(panel.title)
    .description(panel.description)
    .datasource(DATASOURCE)
    .unit(panel.unit)
    .span(width)
    .height(height)
    .reduceOptions(new ReduceDataOptionsBuilder().calcs(["lastNotNull"]))
    .colorMode(panel.one === undefined ? BigValueColorMode.None : BigValueColorMode.Background);
  if (panel.one !== undefined) {
    const [below, from] = panel.one === "good" ? ["red", "green"] : ["green", "red"];
    builder.thresholds(
      new ThresholdsConfigBuilder().mode(ThresholdsMode.Absolute).steps([
        { value: null, color: below },
        { value: 1, color: from },
      ]),
    );
  }
  for (const query of queriesOf(panel)) builder.withTarget(query);
  return builder;
}

function timeseriesOf(panel: Panel): TimeseriesBuilder {
  const { width, height } = SIZES.timeseries;
  const builder = new TimeseriesBuilder()
    .title(panel.title)
    .description(panel.description)
    .datasource(DATASOURCE)
    .unit(panel.unit)
    .min(0)
    .span(width)
    .height(height);
  for (const query of queriesOf(panel)) builder.withTarget(query);
  return builder;
}

function queriesOf({ kind, queries }: Panel): DataqueryBuilder[] {
  return queries.map(({ expr, legend }, index) => {
    const query = new DataqueryBuilder()
      .refId(String.fromCharCode(65 + index))
      .expr(expr)
      .legendFormat(legend);
    return kind === "stat" ? query.instant() : query.range();
  });
}
