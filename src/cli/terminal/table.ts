/** Lays rows out in columns as wide as their widest cell, two spaces apart, the way kubectl does. */
export function renderTable(header: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const widths = header.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => (row[column] ?? "").length)),
  );
  return [header, ...rows].map((row) =>
    header
      .map((_title, column) => (row[column] ?? "").padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd(),
  );
}
